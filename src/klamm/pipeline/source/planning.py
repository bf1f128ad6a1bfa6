"""Planning without a cluster: which offsets a trigger may take, how ranges become tasks, which records are lost.

All of it is computed from values: where the stream stands, and what the cluster has (`Standing`). The shares of
maxOffsetsPerTrigger and the splits of minPartitions follow the connector's arithmetic, so that both formats make the
same batches of the same topic.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from klamm.ids import ZERO_UUID, TopicPartition, uuid_from_text
from klamm.pipeline.kafka.ranges import Range
from klamm.pipeline.source.losses import CREATED_AGAIN, CUT, DELETED, LATE, RETENTION, Loss
from klamm.pipeline.source.position import Position
from klamm.pipeline.source.problems import WrongOption

Offsets = Mapping[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class Standing:
    """What the cluster has at one moment, of the partitions that the query wants."""

    cluster: str
    topics: dict[str, str]
    earliest: dict[TopicPartition, int]
    latest: dict[TopicPartition, int]

    def position(self, offsets: Offsets) -> Position:
        return Position(self.cluster, dict(self.topics), dict(sorted(offsets.items())))

    def has_all_of(self, known: Position) -> bool:
        """Whether the topics and partitions of a position are there, are the same ones, and reach as far."""
        is_there = all(self.latest.get(key, -1) >= offset for key, offset in known.offsets.items())
        return is_there and not any(_is_other(topic, known, self) for topic in known.topics)


def begins(start: Position, now: Standing) -> dict[TopicPartition, int]:
    """Per partition that is there, the first offset that can still be read."""
    found = {}
    for key, earliest in now.earliest.items():
        begin = start.offsets.get(key)
        found[key] = earliest if begin is None or _is_other(key.topic, start, now) else max(begin, earliest)
    return found


def end_of_trigger(start: Position, now: Standing, most: int | None) -> dict[TopicPartition, int]:
    """Where the trigger ends: at the end of everything, or at its share of `most` offsets."""
    return dict(now.latest) if most is None else shared(most, begins(start, now), now.latest)


def shared(most: int, begin: Offsets, latest: Offsets) -> dict[TopicPartition, int]:
    """`most` offsets in proportion to what each partition has; nobody with something to read gets nothing."""
    sizes = {key: end - begin[key] for key, end in latest.items() if key in begin and end > begin[key]}
    total = float(sum(sizes.values()))
    ends = {}
    for key, end in latest.items():
        share = most * (sizes[key] / total) if key in sizes else 0.0
        whole = math.ceil(share) if share < 1 else math.floor(share)
        ends[key] = min(end, begin[key] + whole) if key in sizes else end
    return ends


def available(start: Position, now: Standing) -> int:
    begin = begins(start, now)
    return sum(max(0, end - begin[key]) for key, end in now.latest.items() if key in begin)


def losses(start: Position, end: Position, now: Standing) -> list[Loss]:
    """What cannot be read of the batch from `start` up to `end`."""
    found = []
    for key, begin in sorted(start.offsets.items()):
        until = end.offsets.get(key)
        is_other = _is_other(key.topic, start, now)
        if is_other:
            # Nobody knows what stood behind `begin`, if anything did. It is another topic all the same.
            found.append(Loss(*key, begin, None, CREATED_AGAIN))
        elif key not in now.earliest:
            found.append(Loss(*key, begin, until - 1 if until is not None and until > begin else None, DELETED))
        elif until is not None and until < begin:
            found.append(Loss(*key, until, begin - 1, CUT))
        elif begin < now.earliest[key]:
            last = now.earliest[key] - 1
            found.append(Loss(*key, begin, last if until is None else min(last, until - 1), RETENTION))
    for key, earliest in sorted(now.earliest.items()):
        if key not in start.offsets and key in end.offsets and earliest > 0:
            found.append(Loss(*key, 0, earliest - 1, LATE))
    return [loss for loss in found if loss.last is None or loss.first <= loss.last]


def ranges(start: Position, end: Position, now: Standing) -> list[Range]:
    """What is there to read of the batch from `start` up to `end`, one range a partition."""
    begin = begins(start, now)
    found = []
    for key, until in sorted(end.offsets.items()):
        # A topic that was created again after the batch was planned has nothing of what was planned.
        if key in begin and begin[key] < until and not _is_other(key.topic, end, now):
            found.append(Range(*key, begin[key], until, _topic_id(now, key.topic)))
    return found


def batch_ranges(start: Offsets, end: Offsets, now: Standing, may_begin_later: bool) -> list[Range]:
    """The ranges of a batch query, which has no position but what its options say."""
    found = []
    for key in sorted(start.keys() & end.keys()):
        if end[key] > now.latest[key]:
            raise WrongOption(
                f"{key} is to be read up to offset {end[key]}, and ends at {now.latest[key]}. Lower its ending offset, "
                "or use -1 (latest)."
            )
        if start[key] > end[key]:
            raise WrongOption(
                f"{key} would start at offset {start[key]} and end before that, at {end[key]}. Correct the starting or "
                "the ending options; the topic may also be shorter than you think."
            )
        found.append(Range(*key, start[key], end[key], _topic_id(now, key.topic), may_begin_later))
    return found


def check_start(start: Offsets, now: Standing) -> None:
    """A new stream does not start where nothing will be for a while: that is a slip, or another cluster's offset."""
    for key, offset in sorted(start.items()):
        if offset > now.latest[key]:
            raise WrongOption(
                f"{key} is to start at offset {offset}, and ends at {now.latest[key]}. Lower its starting offset, or "
                "use -1 (latest)."
            )


def split(pieces: Iterable[Range], min_partitions: int | None, max_records: int | None) -> list[Range]:
    """Ranges cut into tasks: none above `max_records`, and about `min_partitions` of them, the large ones cut first."""
    found = [piece for piece in pieces if piece.size > 0]
    if max_records is not None:
        found = [part for piece in found for part in _cut(piece, math.ceil(piece.size / max_records))]
    if min_partitions is None or len(found) >= min_partitions:
        return found
    total = sum(piece.size for piece in found)
    whole = {id(piece) for piece in found if _parts(piece.size, total, min_partitions) == 1}
    # What stays whole takes no part in the division of the rest.
    total -= sum(piece.size for piece in found if id(piece) in whole)
    wanted = max(min_partitions - len(whole), 1)
    cut = [(piece, 1 if id(piece) in whole else _parts(piece.size, total, wanted)) for piece in found]
    return [part for piece, parts in cut for part in _cut(piece, parts)]


def _parts(size: int, total: int, wanted: int) -> int:
    # Java rounds a half up, Python to the even neighbour.
    return max(math.floor(size / total * wanted + 0.5), 1)


def _cut(piece: Range, parts: int) -> list[Range]:
    found, start = [], piece.start
    for left in range(parts, 0, -1):
        end = start + (piece.end - start) // left
        if end > start:
            first = start == piece.start
            found.append(replace(piece, start=start, end=end, may_begin_later=piece.may_begin_later and first))
        start = end
    return found


def _is_other(topic: str, position: Position, now: Standing) -> bool:
    """Whether the topic of this name is not the one that the position knew."""
    known, found = position.topics.get(topic, ""), now.topics.get(topic, "")
    return bool(known and found and known != found)


def _topic_id(now: Standing, topic: str) -> bytes:
    text = now.topics.get(topic, "")
    return uuid_from_text(text) if text else ZERO_UUID
