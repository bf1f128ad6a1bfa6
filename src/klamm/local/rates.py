"""How quickly records come and go, from looks at a cluster some seconds apart.

What comes in is how far the ends of the partitions moved, counted for who leads them now. What goes out is how far
consumer groups say they have read; they say it every few seconds, so it is taken over a longer while, and a reader that
belongs to no group is not seen. Bytes are those on disk.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from klamm.ids import TopicPartition
from klamm.local.look import Look, named
from klamm.local.view import PartitionSeen

IN_SECONDS, OUT_SECONDS = 4.0, 12.0


@dataclass(slots=True)
class Rates:
    """Of one broker, each a second."""

    records_in: float = 0.0
    bytes_in: float = 0.0
    records_out: float = 0.0
    bytes_out: float = 0.0

    def add(self, other: "Rates") -> None:
        self.records_in += other.records_in
        self.bytes_in += other.bytes_in
        self.records_out += other.records_out
        self.bytes_out += other.bytes_out


class Recently:
    """The looks of the last seconds."""

    def __init__(self) -> None:
        self._looks: deque[Look] = deque()

    def note(self, look: Look) -> None:
        self._looks.append(look)
        while len(self._looks) > 2 and look.at_seconds - self._looks[1].at_seconds >= OUT_SECONDS:
            self._looks.popleft()

    def rates(self) -> dict[int, Rates]:
        """By broker; of those that lead something."""
        return rates(tuple(self._looks))


def rates(looks: Sequence[Look]) -> dict[int, Rates]:
    if len(looks) < 2:
        return {}
    now = looks[-1]
    found: dict[int, Rates] = {}
    lately = next(look for look in looks if now.at_seconds - look.at_seconds <= IN_SECONDS or look is looks[-2])
    for each in now.own:
        if not each.is_offline:
            its_own = found.setdefault(each.leader, Rates())
            _add_in(its_own, each, lately, now)
            _add_out(its_own, each, looks[0], now)
    return found


def total(of_brokers: dict[int, Rates]) -> Rates:
    found = Rates()
    for each in of_brokers.values():
        found.add(each)
    return found


def _add_in(found: Rates, partition: PartitionSeen, before: Look, now: Look) -> None:
    place, seconds = named(partition), max(1e-3, now.at_seconds - before.at_seconds)
    if place in before.partitions:
        found.records_in += max(0, now.ends.get(place, 0) - before.ends.get(place, 0)) / seconds
        found.bytes_in += max(0, _size(now, partition) - _size(before, partition)) / seconds


def _add_out(found: Rates, partition: PartitionSeen, before: Look, now: Look) -> None:
    place, seconds = named(partition), max(1e-3, now.at_seconds - before.at_seconds)
    read = sum(
        max(0, offsets[place] - before.committed[group][place])
        for group, offsets in now.committed.items()
        if place in offsets and place in before.committed.get(group, {})
    )
    found.records_out += read / seconds
    found.bytes_out += read * _bytes_of_a_record(now, partition, place) / seconds


def _size(look: Look, partition: PartitionSeen) -> int:
    """Of the log of who leads now, also where it did not lead then: copies are equal."""
    return look.sizes.get(partition.leader, {}).get(named(partition), 0)


def _bytes_of_a_record(look: Look, partition: PartitionSeen, place: TopicPartition) -> float:
    """Of those that are still there, on average."""
    return _size(look, partition) / max(1, look.ends.get(place, 0) - look.starts.get(place, 0))
