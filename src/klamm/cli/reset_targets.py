"""Where `klamm group reset-offsets` sends a group: the words of the options made into offsets.

Everything here is a function of what it is given. Times without a zone are UTC, as in Kafka's own tool; an offset
outside of its log is brought to the nearer end of it, and the person is told.
"""

import csv
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from klamm.cli.group_asking import Refused
from klamm.cli.options import Misused
from klamm.ids import TopicPartition

DURATION = re.compile(
    r"P(?:(?P<weeks>\d+)W)?(?:(?P<days>\d+)D)?"
    r"(?:T(?=\d)(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+(?:[.,]\d{1,9})?)S)?)?",
    re.IGNORECASE,
)
MS_IN = {"weeks": 604_800_000, "days": 86_400_000, "hours": 3_600_000, "minutes": 60_000, "seconds": 1_000}
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Move:
    """One partition's committed offset: what it is (None for not yet), and what it is to be."""

    partition: TopicPartition
    before: int | None
    after: int
    wanted: int
    """What was asked for; other than `after` where the log does not reach so far."""

    @property
    def change(self) -> int | None:
        return None if self.before is None else self.after - self.before


def moves(
    wanted: Mapping[TopicPartition, int],
    committed: Mapping[TopicPartition, int],
    starts: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, int],
) -> list[Move]:
    """Every wish brought into its log."""
    return [
        Move(each, committed.get(each), in_range(offset, starts[each], ends[each]), offset)
        for each, offset in sorted(wanted.items())
    ]


def in_range(offset: int, start: int, end: int) -> int:
    return min(max(offset, start), end)


def shifted(
    partitions: Collection[TopicPartition], committed: Mapping[TopicPartition, int], by: int
) -> dict[TopicPartition, int]:
    without = sorted(set(partitions) - committed.keys())
    if without:
        raise Refused(f"nothing is committed for {listed(without)} that could be shifted")
    return {each: committed[each] + by for each in partitions}


def time_ms_of(text: str, option: str = "--to-datetime") -> int:
    """`2026-11-16T06:30`, with or without seconds, fractions and zone, in milliseconds since 1970."""
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise Misused(
            f"{option} {text}: expected an ISO 8601 time, as 2026-11-16T06:30:00.000, "
            "2026-11-16T06:30Z or 2026-11-16T08:30+02:00 (UTC if no zone is given)"
        ) from None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (moment - EPOCH) // timedelta(milliseconds=1)


def duration_ms_of(text: str) -> int:
    """`P1DT2H30M`. Years and months are refused: nobody knows how long they are."""
    found = DURATION.fullmatch(text.strip())
    parts = {unit: number for unit, number in found.groupdict().items() if number} if found else {}
    if not parts:
        raise Misused(
            f"--by-duration {text}: expected an ISO 8601 duration of weeks, days, hours, minutes and seconds, "
            "as P1D, PT30M or P1DT2H"
        )
    return int(sum(Decimal(number.replace(",", ".")) * MS_IN[unit] for unit, number in parts.items()))


def chosen_partitions(option: str, texts: Iterable[str]) -> dict[str, set[int] | None]:
    """`T` and `T:0,1`, repeated: for each topic the partitions that were named, None for all of them."""
    chosen: dict[str, set[int] | None] = {}
    for text in texts:
        topic, colon, numbers = text.partition(":")
        parts = [part.strip() for part in numbers.split(",")] if colon else []
        if not topic or not all(part.isascii() and part.isdigit() for part in parts):
            raise Misused(f"{option} {text}: expected TOPIC or TOPIC:PARTITION,…, as {option} invoice:0,3")
        before = chosen.get(topic, set())
        chosen[topic] = None if before is None or not colon else before | set(map(int, parts))
    return chosen


def plan_of(group: str, lines: Iterable[str], file: str) -> dict[TopicPartition, int]:
    """What a CSV file wants for this group: `topic,partition,offset` or `group,topic,partition,offset`."""
    plan: dict[TopicPartition, int] = {}
    for number, row in enumerate(csv.reader(lines), start=1):
        cells = [cell.strip() for cell in row]
        if not any(cells):
            continue
        its_group, *rest = cells if len(cells) == 4 else [group, *cells]
        if len(rest) != 3 or not rest[0] or not all(re.fullmatch(r"[0-9]{1,19}", cell) for cell in rest[1:]):
            raise Misused(f"{file}, line {number}: expected topic,partition,offset, found {','.join(row)}")
        if its_group == group:
            plan[TopicPartition(rest[0], int(rest[1]))] = int(rest[2])
    if not plan:
        raise Misused(f"{file} has no line for group {group!r}")
    return plan


def csv_of(planned: Sequence[Move]) -> str:
    return "\n".join(f"{each.partition.topic},{each.partition.partition},{each.after}" for each in planned)


def warnings(planned: Sequence[Move]) -> list[str]:
    return [
        f"{each.partition}: offset {each.wanted} is {_where(each)} of the log, {each.after} is taken instead"
        for each in planned
        if each.wanted != each.after
    ]


def listed(partitions: Sequence[TopicPartition], at_most: int = 5) -> str:
    names = [str(each) for each in partitions[:at_most]]
    more = len(partitions) - len(names)
    return ", ".join(names) + (f" and {more} more" if more else "")


def _where(move: Move) -> str:
    return "beyond the end" if move.wanted > move.after else "before the beginning"
