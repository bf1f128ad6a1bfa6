"""Where `klamm consume` begins and ends: the words of --from and --until made into an offset of each partition.

    beginning  end  42  -10  2026-11-16T06:30  '1h ago'  1h30m  PT90S  now

A number is an offset, a negative one counts back from the end of each partition. Times are those of the records: the
first record at that time or later is meant, and where no record is so young, the end. Without a zone they are UTC.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from klamm.cli.group_asking import EARLIEST, LATEST, Cluster, Refused
from klamm.cli.options import Misused
from klamm.cli.reset_targets import MS_IN, duration_ms_of, in_range, time_ms_of
from klamm.ids import TopicPartition

AGO = re.compile(r"(?:\d+(?:\.\d+)?\s*[smhdw]\s*)+(?:ago)?", re.IGNORECASE)
AGO_PART = re.compile(r"(\d+(?:\.\d+)?)\s*([smhdw])", re.IGNORECASE)
UNITS = {unit[0]: unit for unit in MS_IN}


@dataclass(frozen=True, slots=True)
class Bound:
    """A place in a log: an offset, so many before the end, or a time. The beginning and the end are times, too."""

    offset: int | None = None
    before_end: int | None = None
    time_ms: int | None = None


class NoLeader(Refused):
    def __init__(self, topic: str, partition: int) -> None:
        super().__init__(
            f"partition {partition} of {topic} has no leader that answers; `klamm topic describe {topic}` shows why, "
            "--partition reads others"
        )
        self.partition = partition


BEGINNING, END = Bound(time_ms=EARLIEST), Bound(time_ms=LATEST)


def bound_of(option: str, text: str, now_ms: int) -> Bound:
    word = text.strip()
    if word in ("beginning", "earliest", "end", "latest"):
        return BEGINNING if word in ("beginning", "earliest") else END
    if word == "now":
        return Bound(time_ms=now_ms)
    if re.fullmatch(r"-?[0-9]{1,18}", word):
        number = int(word)
        return Bound(before_end=-number) if word.startswith("-") else Bound(offset=number)
    if AGO.fullmatch(word):
        parts = AGO_PART.findall(word)
        return _at(now_ms - sum(float(number) * MS_IN[UNITS[unit.lower()]] for number, unit in parts))
    try:
        if word[:1] in ("P", "p"):
            return _at(now_ms - duration_ms_of(word))
        return _at(time_ms_of(word, option))
    except Misused:
        raise Misused(
            f"{option} {text}: expected beginning, end, an offset, -N for the last N, a time as 2026-11-16T06:30, "
            "or how long ago, as '1h ago' or 90s"
        ) from None


def _at(time_ms: float) -> Bound:
    """Before 1970 there are no records, and the protocol has other meanings for such times."""
    return BEGINNING if time_ms < 0 else Bound(time_ms=int(time_ms))


@dataclass(frozen=True, slots=True)
class Extent:
    """What the logs hold at the moment, by partition: from here, and up to here."""

    starts: Mapping[int, int]
    ends: Mapping[int, int]


def extent_of(cluster: Cluster, topic: str, partitions: Collection[int], isolation: int) -> Extent:
    """Refused where a partition has no leader: its records would be missing without a word."""
    wanted = [TopicPartition(topic, number) for number in partitions]
    starts, ends = (cluster.offsets_at(wanted, time_ms, isolation) for time_ms in (EARLIEST, LATEST))
    silent = sorted(each.partition for each in wanted if each not in starts or each not in ends)
    if silent:
        raise NoLeader(topic, silent[0])
    return Extent(
        {each.partition: offset for each, offset in starts.items()},
        {each.partition: offset for each, offset in ends.items()},
    )


def offsets_of(
    bound: Bound, cluster: Cluster, topic: str, extent: Extent, *, beyond_end: bool = False
) -> dict[int, int]:
    """For each partition, within its log; with `beyond_end` an offset that is yet to come will do."""
    found = {}
    at_time = _offsets_at(bound, cluster, topic, extent)
    for partition, start in extent.starts.items():
        end = extent.ends[partition]
        if bound.offset is not None:
            found[partition] = max(bound.offset, start) if beyond_end else in_range(bound.offset, start, end)
        elif bound.before_end is not None:
            found[partition] = in_range(end - bound.before_end, start, end)
        else:
            found[partition] = at_time[partition]
    return found


def _offsets_at(bound: Bound, cluster: Cluster, topic: str, extent: Extent) -> Mapping[int, int]:
    if bound.time_ms is None:
        return {}
    if bound in (BEGINNING, END):
        return extent.starts if bound == BEGINNING else extent.ends
    wanted = [TopicPartition(topic, number) for number in extent.ends]
    said = {each.partition: offset for each, offset in cluster.offsets_at(wanted, bound.time_ms).items()}
    return {
        partition: in_range(said[partition], extent.starts[partition], end) if said.get(partition, -1) >= 0 else end
        for partition, end in extent.ends.items()
    }
