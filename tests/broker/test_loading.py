"""Loading a shard from its log: the last record of each key counts, slice by slice, whatever else stands there."""

from random import Random
from typing import Any

import pytest

from klamm.broker import loading
from klamm.broker.loading import Loading
from klamm.coordinator.records import (
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    GroupMetadataKey,
    GroupMetadataValue,
    GroupRecord,
    OffsetCommitKey,
    OffsetCommitValue,
    encoded,
)
from klamm.coordinator.settings import GroupSettings
from klamm.coordinator.shard import Shard
from klamm.coordinator.wishes import OffsetsWish
from klamm.ids import Now
from klamm.metadata.image import EMPTY
from klamm.records.builder import BatchBuilder

NOW = Now(0.0, 0)


class Read:
    """What a log gives: whole batches from an offset on."""

    def __init__(self, data: bytes, next_offset: int) -> None:
        self.data = data
        self.next_offset = next_offset

    def __bytes__(self) -> bytes:
        return self.data


class ToyLog:
    """Batches in a list; compaction has left holes, and the first ones are gone."""

    def __init__(self) -> None:
        self.batches: list[tuple[int, bytes]] = []
        self.start_offset = self.end_offset = 5
        self.reads = 0

    def append(self, *records: tuple[bytes | None, bytes | None]) -> None:
        builder = BatchBuilder()
        for key, value in records:
            builder.append(key, value, 0)
        data = bytearray(builder.build())
        data[:8] = self.end_offset.to_bytes(8, "big")
        self.batches.append((self.end_offset, bytes(data)))
        self.end_offset += len(records)

    def read(self, offset: int, size: int, end: int) -> Read:
        self.reads += 1
        data = b""
        for number, (_, batch) in enumerate(self.batches):
            following = self.batches[number + 1][0] if number + 1 < len(self.batches) else self.end_offset
            if following > offset:
                data += batch
                if len(data) >= size:
                    return Read(data, following)
        return Read(data, self.end_offset)


def loaded(log: ToyLog, replay: Any, skipped: list[str] | None = None) -> tuple[Loading, int]:
    """And in how many steps."""
    found = Loading(log, replay, (skipped if skipped is not None else []).append)  # type: ignore[arg-type]
    steps = 1
    while not found.step():
        steps += 1
    return found, steps


def offset_of(group: str, partition: int, offset: int) -> GroupRecord:
    return GroupRecord(OffsetCommitKey(group, "t", partition), OffsetCommitValue(offset=offset))


def test_the_last_record_of_a_key_counts_and_groups_come_first() -> None:
    log = ToyLog()
    log.append(encoded(offset_of("g", 0, 1)), encoded(offset_of("g", 1, 1)))
    log.append(encoded(offset_of("g", 0, 2)), encoded(GroupRecord(OffsetCommitKey("g", "t", 1), None)))
    log.append(encoded(GroupRecord(GroupMetadataKey("g"), GroupMetadataValue("consumer", 3))))
    replayed: list[GroupRecord] = []
    found, _ = loaded(log, replayed.append)
    assert [(type(key), getattr(value, "offset", None)) for key, value in replayed] == [
        (GroupMetadataKey, None),
        (OffsetCommitKey, 2),
    ]
    assert found.count == 2


def test_the_order_is_that_of_the_last_records() -> None:
    log = ToyLog()
    for name in ("a", "b", "a"):
        log.append(encoded(GroupRecord(GroupMetadataKey(name), GroupMetadataValue("consumer", 1))))
    replayed: list[GroupRecord] = []
    loaded(log, replayed.append)
    assert [record.key for record in replayed] == [GroupMetadataKey("b"), GroupMetadataKey("a")]


def test_an_empty_log_is_loaded_at_once() -> None:
    found, steps = loaded(ToyLog(), pytest.fail)
    assert (found.count, steps) == (0, 1)


def test_whatever_cannot_be_read_is_told_and_passed_over() -> None:
    log = ToyLog()
    log.append((b"\0\1", b"x"), (b"\0\2\0\1g", b"\0\x09"), (b"\0\x0bshare", b"x"), (None, b"x"))
    log.append(encoded(offset_of("g", 0, 1)))
    skipped: list[str] = []
    replayed: list[GroupRecord] = []
    loaded(log, replayed.append, skipped)
    assert replayed == [offset_of("g", 0, 1)] and len(skipped) == 2


def test_a_large_log_is_loaded_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "REPLAYED_AT_ONCE", 10)
    monkeypatch.setattr(loading, "SLICE_BYTES", 500)
    log = ToyLog()
    for number in range(100):
        log.append(encoded(offset_of("g", number % 35, number)))
    replayed: list[GroupRecord] = []
    _, steps = loaded(log, replayed.append)
    assert len(replayed) == 35
    assert steps >= log.reads + 35 // 10 * 2 and log.reads > 10, "reading, decoding and replaying each take turns"


@pytest.mark.parametrize("seed", range(25))
def test_it_comes_to_the_same_as_replaying_everything(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "REPLAYED_AT_ONCE", 7)
    monkeypatch.setattr(loading, "SLICE_BYTES", 400)
    random, log = Random(seed), ToyLog()
    naive, folded = shard(), shard()
    for _ in range(80):
        records = [drawn(random) for _ in range(random.randint(1, 4))]
        for record in records:
            naive.replay(record)
        log.append(*map(encoded, records))
        if random.random() < 0.1:
            log.end_offset += random.randrange(3)
    loaded(log, folded.replay)
    assert everything(folded) == everything(naive)


def shard() -> Shard:
    return Shard(GroupSettings(), Random(0), EMPTY)


def drawn(random: Random) -> GroupRecord:
    """Offsets of groups that are classic, of the newer protocol, or of nobody; a group never changes its kind here."""
    number = random.randrange(6)
    name = f"group-{number}"
    is_gone = random.random() < 0.2
    if random.random() < 0.7:
        record = offset_of(name, random.randrange(4), random.randrange(1_000))
    elif number < 3:
        record = GroupRecord(GroupMetadataKey(name), GroupMetadataValue("consumer", random.randrange(9)))
        is_gone = False
    else:
        record = GroupRecord(ConsumerGroupMetadataKey(name), ConsumerGroupMetadataValue(random.randrange(9)))
        is_gone = False
    return GroupRecord(record.key, None if is_gone else record.value)


def everything(shard: Shard) -> dict[str, object]:
    """Groups that hold nothing but offsets are there while they have any; the naive one does not take them away."""
    found: dict[str, object] = {}
    for number in range(6):
        name = f"group-{number}"
        [(_, offsets)] = shard.offsets(OffsetsWish(name), "ticket", NOW).response
        group = shard._groups.get(name)
        is_real = group is not None and group.listed().protocol_type != ""
        found[name] = (offsets, repr(group) if is_real else None)
    return found
