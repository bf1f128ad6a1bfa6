"""What has to come back once everything is mended: a controller, leaders, replicas in sync and alike, new writes."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from klamm.chaos.verdict import Place, Stamp
from klamm.local.asking import Address, NoAnswer
from klamm.local.view import UnknownTopic, cluster_seen
from klamm.records.batch import batches

LOOK_AGAIN_SECONDS = 0.05
ASK_SECONDS = 2.0


class NotBack(Exception):  # noqa: N818
    """What did not come in time."""


def wait_until(problem: Callable[[], str | None], deadline: float) -> None:
    """Until there is no problem any more; NotBack with the last one at the deadline."""
    while (text := problem()) is not None:
        if time.monotonic() > deadline:
            raise NotBack(text)
        time.sleep(LOOK_AGAIN_SECONDS)


def out_of_sync(addresses: Sequence[Address], topics: Sequence[str]) -> str | None:
    """What any of the brokers says that is not as it should be, or None."""
    for number, address in enumerate(addresses):
        try:
            seen = cluster_seen([address], ASK_SECONDS, topics)
        except (NoAnswer, UnknownTopic) as problem:
            return f"broker {number} does not answer: {problem!r}"
        if seen.controller is None:
            return f"broker {number} knows of no controller"
        fenced = [each.broker_id for each in seen.brokers if each.is_fenced]
        if fenced or len(seen.brokers) != len(addresses):
            return f"broker {number} knows {len(seen.brokers)} brokers, of them fenced: {fenced}"
        for part in seen.partitions:
            if part.is_offline or part.is_under_replicated:
                where = f"{part.topic}-{part.partition} led by {part.leader}, in sync {part.in_sync}"
                return f"broker {number} says: {where} of {part.replicas}"
    return None


def stamps_of(directories: Sequence[Path], places: Sequence[Place]) -> dict[Place, dict[int, Stamp]]:
    """Who sent what, as the logs on disk say; of every partition the first replica that is found."""
    return {
        place: _stamps(next(filter(None, (_bytes_of(each, place) for each in directories)), b"")) for place in places
    }


def _stamps(data: bytes) -> dict[int, Stamp]:
    found = {}
    for _, batch in batches(memoryview(data)):
        stamp = Stamp(batch.producer_id, batch.producer_epoch)
        found.update(dict.fromkeys(range(batch.base_offset, batch.next_offset), stamp))
    return found


def different_replicas(directories: Sequence[Path], addresses: Sequence[Address], topics: Sequence[str]) -> str | None:
    """A partition whose replicas do not hold the same bytes, or None."""
    try:
        partitions = cluster_seen(addresses, ASK_SECONDS, topics).partitions
    except NoAnswer as problem:
        return str(problem)
    for part in partitions:
        place = Place(part.topic, part.partition)
        if len({_bytes_of(directories[number], place) for number in part.replicas}) > 1:
            return f"the replicas of {place} on {part.replicas} differ"
    return None


def _bytes_of(directory: Path, place: Place) -> bytes:
    return b"".join(path.read_bytes() for path in sorted((directory / str(place)).glob("*.log")))
