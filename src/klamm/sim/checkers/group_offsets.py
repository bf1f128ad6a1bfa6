"""Committed offsets: what was acknowledged is what anybody reads, until somebody asks for something else.

I26. A committed offset is a register: whoever reads it is given the last commit that was acknowledged before it asked,
or one that was under way since. A commit without an answer may count, at once, late or never; but once somebody has
read it, it stands. Also a broker that has not heard yet that another one looks after the group has to keep quiet: it
knows when the controller has heard of it last. In the end, what is told is what the log of
`__consumer_offsets` adds up to. And nobody commits under an epoch when another one was told, under a later epoch, that
it owns the partition.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from klamm.ids import BrokerId, Offset
from klamm.records.record import records_of
from klamm.sim.checkers.compaction import batches_of
from klamm.sim.clients.group_history import Commit, GroupHistory, Reading, Spot, Standing
from klamm.sim.clients.history import Fate, Key
from klamm.sim.cluster import Cluster
from klamm.sim.promise import broken
from klamm.sim.topics import OFFSETS

OF_OFFSETS = (0, 1)
"""The versions of keys that name a group and a partition; others are of groups and their members."""
FIRST_COMPACT = 4
"""From this version on values have strings of the shorter kind."""


@dataclass(frozen=True, slots=True)
class Told:
    who: str
    joins: int
    epoch: int
    heard_ms: float
    is_late: bool
    """It has heard of it so late that the group may have been gone since, and begun anew."""


class GroupOffsets:
    def __init__(self, cluster: Cluster, history: GroupHistory, may_lose: set[Key]) -> None:
        self._cluster = cluster
        self._history = history
        self._may_lose = may_lose
        self._told: dict[Spot, list[Told]] = {}
        """Who was told to own a partition, under which epoch."""
        self.latest: dict[Spot, tuple[Offset, str]] = {}
        """What was read last."""
        history.on_read = self.read
        history.on_acknowledged = self.acknowledged
        history.on_refused = self.refused
        history.is_behind = self.is_behind

    def is_behind(self, broker: BrokerId, group: str) -> bool:
        index = self._index(group)
        latest = self._cluster.latest_image().partition(OFFSETS, index)
        machine = self._cluster.machines[broker]
        known = machine.broker.image.partition(OFFSETS, index) if machine.is_running else None
        return latest is None or known is None or known.leader_epoch < latest.leader_epoch

    def told(self, standing: Standing, epoch: int, spots: list[Spot], now_ms: float) -> None:
        is_late = now_ms >= standing.until_ms
        for spot in spots:
            told = self._told.setdefault(spot, [])
            if not any((each.who, each.joins, each.epoch) == (standing.who, standing.joins, epoch) for each in told):
                told.append(Told(standing.who, standing.joins, epoch, now_ms, is_late))

    def acknowledged(self, commit: Commit) -> None:
        told = self._owner_since(commit)
        if told is not None and not self.is_excused(commit.spot[0]):
            broken(
                "I26",
                f"{commit.name} ({_named(commit.spot)}) was acknowledged under epoch {commit.epoch}, and {told.who} "
                f"had been told under {told.epoch} that it owns the partition",
            )

    def refused(self, commit: Commit) -> None:
        self._history.reached["commit of a former owner refused"] += self._owner_since(commit) is not None

    def _owner_since(self, commit: Commit) -> Told | None:
        """Another one, if it had heard that it owns the partition when this was sent, under a later epoch, and after
        this one had. (A group that was empty may begin anew with the first epoch, if it changes its protocol.)"""
        told = self._told.get(commit.spot, ())
        own_ms = max(
            (each.heard_ms for each in told if each.who == commit.who and each.epoch <= commit.epoch), default=0
        )
        for each in told:
            is_later = each.epoch > commit.epoch and own_ms < each.heard_ms < commit.sent_ms
            if each.who != commit.who and is_later and not each.is_late:
                return each
        return None

    def read(self, reading: Reading, now_ms: float) -> None:
        self.latest[reading.spot] = (reading.offset, reading.name)
        if self.is_excused(reading.spot[0]):
            return
        commit = self._history.commits.get(reading.name)
        if reading.offset >= 0:
            if commit is None or (commit.spot, commit.offset) != (reading.spot, reading.offset):
                broken("I26", f"{reading.reader} is told {reading.offset} for {_named(reading.spot)}: {commit}")
            if commit.fate is Fate.REFUSED:
                broken("I26", f"{reading.reader} is told {_named(reading.spot)} is at {commit}, which was refused")
        since_ms = -1.0 if commit is None else commit.answered_ms
        for other in self._history.of_spot.get(reading.spot, ()):
            if other.sent_ms > since_ms and other.answered_ms < reading.asked_ms:
                self._is_old(reading, commit, other)
                return
        if commit is not None:
            commit.answered_ms = min(commit.answered_ms, now_ms)

    def _is_old(self, reading: Reading, commit: Commit | None, other: Commit) -> None:
        told = "nothing" if commit is None else f"{commit.offset} of {commit.name}"
        broken(
            "I26",
            f"{reading.reader} is told {told} for {_named(reading.spot)}, and {other.offset} of {other.name} was "
            f"known to be committed since{' (the broker had not heard of a new leader)' if reading.was_behind else ''}",
        )

    def at_end(self, group: str) -> None:
        """After everything that was committed was asked for once more: it is what its log adds up to."""
        if self.is_excused(group):
            return
        replayed = self._replayed(group)
        latest = {spot: told for spot, told in self.latest.items() if spot[0] == group and told[0] >= 0}
        if replayed != latest:
            spots = [spot for spot in sorted({*replayed, *latest}) if replayed.get(spot) != latest.get(spot)]
            spot = spots[0]
            broken("I26", f"{_named(spot)} is told to be at {latest.get(spot)}, and its log says {replayed.get(spot)}")

    def _replayed(self, group: str) -> dict[Spot, tuple[Offset, str]]:
        index = self._index(group)
        state = self._cluster.latest_image().topics[OFFSETS].partitions[index]
        partition = self._cluster.machines[state.leader].broker.partitions.get(OFFSETS, index)
        assert partition is not None
        found: dict[Spot, tuple[Offset, str]] = {}
        for _, raw in batches_of(partition):
            for record in records_of(raw):
                spot = decoded_key(record.key or b"")
                if spot is None or spot[0] != group or record.offset >= partition.high_watermark:
                    continue
                if record.value is None:
                    found.pop(spot, None)
                else:
                    found[spot] = decoded_value(record.value)
        return found

    def is_excused(self, group: str) -> bool:
        """Whether its coordinator's log may have lost something."""
        topic = self._cluster.latest_image().topics.get(OFFSETS)
        return topic is not None and (topic.topic_id, self._index(group)) in self._may_lose

    def _index(self, group: str) -> int:
        topic = self._cluster.latest_image().topics.get(OFFSETS)
        return 0 if topic is None else partition_for(group, len(topic.partitions))


def partition_for(group: str, count: int) -> int:
    """Java's hash of the name, without its sign."""
    number = 0
    for letter in group:
        number = (31 * number + ord(letter)) & 0xFFFF_FFFF
    return (number & 0x7FFF_FFFF) % count


def decoded_key(data: bytes) -> Spot | None:
    (version,) = struct.unpack_from(">h", data)
    if version not in OF_OFFSETS:
        return None
    fields = _strings(data, 2)
    group, position = next(fields)
    topic, position = next(fields)
    (index,) = struct.unpack_from(">i", data, position)
    return group, topic, index


def decoded_value(data: bytes) -> tuple[Offset, str]:
    version, offset = struct.unpack_from(">hq", data)
    if version >= FIRST_COMPACT:
        # One byte says one more than how long it is: names of commits are short.
        size = data[14] - 1
        return offset, data[15 : 15 + size].decode()
    metadata, _ = next(_strings(data, 14 if version >= 3 else 10))
    return offset, metadata


def _strings(data: bytes, position: int) -> Iterator[tuple[str, int]]:
    """One after the other, each with where the next field begins."""
    while True:
        (size,) = struct.unpack_from(">h", data, position)
        position += 2 + size
        yield data[position - size : position].decode(), position


def _named(spot: Spot) -> str:
    return f"{spot[0]}'s {spot[1]}-{spot[2]}"
