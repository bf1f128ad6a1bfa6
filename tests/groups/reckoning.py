"""What has to be true of everything the members of one group have told.

1. A partition has one owner at a time: from when a member says that it was assigned until it says that it let go, or
   was killed, or was paused (who sleeps beyond its session does not know that it has lost everything). Who is late to
   say that it let go, but has handled nothing since, has done no harm. (Two librdkafka members of the newer protocol
   both claimed a partition for two thirds of a second once, with Apache Kafka under load; why is not known.)
2. What is handled is handled by the owner.
3. An owner begins where the one before it committed, or later, but never beyond what was handled: no commit is lost or
   moved back, and no record is skipped.
4. In the end every record was handled. What was handled twice was not committed the first time.
"""

import itertools
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple, Protocol

from tests.groups.member import Told

FOR_EVER = float("inf")


class Teller(Protocol):
    """Whoever has told something."""

    @property
    def name(self) -> str: ...

    @property
    def told(self) -> list[Told]: ...


class Member(NamedTuple):
    """What one of them has told, in the order it happened: the last words of who was killed are heard afterwards."""

    name: str
    told: list[Told]


class Tenure(NamedTuple):
    """One member's time with one partition."""

    partition: int
    member: str
    begin: float
    end: float
    last_handled: float


class Reckoned(NamedTuple):
    records: int
    twice: int


def reckoned(tellers: Iterable[Teller], ends: Mapping[int, int]) -> Reckoned:
    """Checks all of it; `ends` are the partitions' end offsets. How many were handled, and how many once more."""
    members = [Member(one.name, sorted(one.told, key=lambda told: told.at)) for one in tellers]
    tenures = [tenure for member in members for tenure in _tenures(member)]
    _check_one_owner(tenures)
    for member in members:
        _check_handled_by_the_owner(member)
    return _checked_course(members, ends)


def _tenures(member: Member) -> Iterable[Tenure]:
    since: dict[int, float] = {}
    last: dict[int, float] = {}
    for told in member.told:
        if told.what == "assigned":
            for partition in told.partitions:
                last[partition] = since.setdefault(partition, told.at)
        elif told.what == "handled":
            last[told.partitions[0]] = told.at
        elif told.what in ("revoked", "lost", "killed", "closed", "paused"):
            going = set(told.partitions) if told.what in ("revoked", "lost") else set(since)
            for partition in going & set(since):
                yield Tenure(partition, member.name, since.pop(partition), told.at, last[partition])
    for partition, begin in since.items():
        yield Tenure(partition, member.name, begin, FOR_EVER, last[partition])


def _check_one_owner(tenures: list[Tenure]) -> None:
    by_partition = defaultdict(list)
    for tenure in sorted(tenures, key=lambda one: one.begin):
        by_partition[tenure.partition].append(tenure)
    for known in by_partition.values():
        for before, after in itertools.pairwise(known):
            harmless = before.end <= after.begin or before.last_handled <= after.begin
            assert harmless, f"two at a time: {before} and {after}"


def _check_handled_by_the_owner(member: Member) -> None:
    """A paused member may go on for a moment when it wakes, until it hears what has become of it."""
    owned: set[int] = set()
    excused = False
    for told in member.told:
        if told.what == "assigned":
            owned |= set(told.partitions)
            excused = False
        elif told.what in ("revoked", "lost"):
            owned -= set(told.partitions)
        elif told.what == "paused":
            excused = True
        elif told.what == "handled":
            assert excused or set(told.partitions) <= owned, f"{member.name} does not own what it handled: {told}"


class Happening(NamedTuple):
    """Something handled or committed: by whom, in which of its tenures, and whether it had slept and not heard yet."""

    told: Told
    member: str
    tenure: int
    slept: bool


def _course(member: Member) -> Iterable[Happening]:
    tenures: dict[int, int] = defaultdict(int)
    slept = False
    for told in member.told:
        if told.what == "assigned":
            slept = False
            for partition in told.partitions:
                tenures[partition] += 1
        elif told.what == "paused":
            slept = True
        elif told.what == "handled":
            yield Happening(told, member.name, tenures[told.partitions[0]], slept)
        elif told.what == "committed":
            yield Happening(told, member.name, 0, slept)


def _checked_course(members: list[Member], ends: Mapping[int, int]) -> Reckoned:
    """Goes through what all have told in the order of time."""
    seen: dict[int, set[int]] = defaultdict(set)
    committed: dict[int, int] = defaultdict(int)
    expected: dict[tuple[str, int, int], int] = {}
    records = 0
    for told, name, tenure, slept in sorted(
        (one for member in members for one in _course(member)), key=lambda one: one.told.at
    ):
        if told.what == "committed":
            for partition, offset in told.offsets:
                assert slept or offset >= committed[partition], f"{name} moved {partition} back: {told}, {committed}"
                committed[partition] = max(committed[partition], offset)
            continue
        (partition,) = told.partitions
        goes_on = expected.get((name, partition, tenure))
        if goes_on is None:
            reached = max(seen[partition], default=-1) + 1
            assert told.first <= reached, f"{name} skipped {reached} to {told.first} of partition {partition}"
            begins = f"{name} began partition {partition} at {told.first}"
            assert slept or told.first >= committed[partition], f"{begins}, committed was {committed[partition]}"
        else:
            assert told.first == goes_on, f"{name} went from {goes_on} to {told.first} in partition {partition}"
        expected[name, partition, tenure] = told.last + 1
        seen[partition] |= set(range(told.first, told.last + 1))
        records += told.last - told.first + 1
    missing = {partition: sorted(set(range(end)) - seen[partition])[:5] for partition, end in ends.items()}
    assert not any(missing.values()), f"never handled, of each partition at most five: {missing}"
    return Reckoned(records, records - sum(len(offsets) for offsets in seen.values()))
