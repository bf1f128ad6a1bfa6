"""Opening after a crash, and opening what somebody has damaged: each a story with one broken thing."""

import tracemalloc
from dataclasses import replace
from random import Random

import pytest

from klamm.errors import ErrorCode
from klamm.facts import Fact
from klamm.log.log import Log
from klamm.log.recovery import FlushedRecordsMissing, LogDamaged, TailCut
from klamm.log.walking import Damaged
from klamm.sim.disk import Disk
from tests.log.making import DIRECTORY, NOW, SMALL, batch_of, everything, later, opened, values_of

YOUNGEST = 50


def written(disk: Disk, count: int = 60) -> Log:
    log = opened(disk)
    for number in range(count):
        put(log, number)
    return log


def put(log: Log, number: int) -> None:
    """The youngest record is neither the first nor the last of its segment."""
    timestamp = NOW.wall_ms - abs(YOUNGEST - number)
    batch = batch_of(b"%d" % number * 10, timestamp=timestamp, producer=(number % 2, 0, number // 2))
    log.append_as_leader(batch, number // 20, NOW)


def flushed(disk: Disk, log: Log) -> None:
    files, up_to = log.files_to_flush()
    disk.flush(files)
    log.flushed(up_to)


def content(log: Log) -> tuple[object, ...]:
    producers = [(key, state.epoch, state.batches) for key, state in log.producers.items()]
    return [stored.data for stored in everything(log)], log.epochs.entries(), producers, log.start_offset


def path_of(disk: Disk, ending: str, number: int = -1) -> str:
    return f"{DIRECTORY}/{[name for name in disk.listing(DIRECTORY) if name.endswith(ending)][number]}"


def bytes_of(disk: Disk, path: str) -> bytearray:
    """To be damaged."""
    return disk.names[path].content


def test_a_torn_tail_is_cut() -> None:
    """F18. Cut the last segment at each byte of its last batch: the log ends before it."""
    disk = Disk()
    log = written(disk, 5)
    expected = values_of(log)[:4]
    size, last = log.size_bytes, len(everything(log)[-1].data)
    whole = bytes(bytes_of(disk, path_of(disk, ".log")))
    for cut in range(size - last, size):
        bytes_of(disk, path_of(disk, ".log"))[:] = whole[:cut]
        told: list[Fact] = []
        log = opened(disk, told=told)
        assert values_of(log) == expected
        assert log.size_bytes == size - last
        assert bool(told) == (cut > size - last)
    log.append_as_leader(batch_of(b"goes on"), 3, NOW)
    assert values_of(opened(disk)) == [*expected, (4, b"goes on")]


def test_what_follows_a_hole_is_cut_with_it() -> None:
    """Blocks of a file need not reach the disk in order, and files do not."""
    disk = Disk()
    log = written(disk)
    assert len(log.segments.all) > 2
    second = log.segments.all[1]
    data = bytes_of(disk, second.log.path)
    data[len(data) // 2 : len(data) // 2 + 10] = bytes(10)
    told: list[Fact] = []
    log = opened(disk, told=told)
    assert second.base_offset <= log.end_offset < 60
    assert [offset for offset, _ in values_of(log)] == list(range(log.end_offset))
    assert any(isinstance(fact, TailCut) for fact in told)
    assert log.segments.all[-1].base_offset == second.base_offset


def test_a_segment_that_lost_its_end_at_a_batch_is_noticed() -> None:
    """F17: the rolled segment forgot whole batches, the next one did not. There must be no hole."""
    disk = Disk()
    log = written(disk)
    second = log.segments.all[1]
    last = second.place_of(log.segments.all[2].base_offset - 1)
    assert last is not None
    del bytes_of(disk, second.log.path)[last.position :]
    log = opened(disk)
    assert [offset for offset, _ in values_of(log)] == list(range(log.end_offset))
    assert log.end_offset == last.offset


@pytest.mark.parametrize("clean", [True, False])
def test_records_that_come_back_bring_their_epochs(clean: bool) -> None:
    """Where a log begins is noted later than its epochs. After a crash in between, what was deleted is there again."""
    disk = Disk()
    log = written(disk)
    before = log.epochs.entries()
    log.advance_start_offset(45)
    flushed(disk, log)
    assert log.epochs.entries() != before
    assert opened(disk, clean=clean, recovery_point=60).epochs.entries() == before


@pytest.mark.parametrize("damage", ["flipped", "cut", "garbage", "emptied", "removed", "stale"])
@pytest.mark.parametrize("kind", [".index", ".timeindex", ".snapshot", "leader-epoch-checkpoint"])
@pytest.mark.parametrize("clean", [True, False])
def test_indexes_epochs_and_snapshots_are_never_believed(kind: str, damage: str, clean: bool) -> None:
    """F20, F21, F22: whatever happens to them, the log says the same. They are compared with it, or rebuilt."""
    random = Random(f"{kind} {damage}")
    disk = Disk()
    log = written(disk, 30)
    flushed(disk, log)
    stale = {name: bytes(disk.names[f"{DIRECTORY}/{name}"].content) for name in disk.listing(DIRECTORY)}
    for number in range(30, 60):
        put(log, number)
    expected = content(log)
    log.close_cleanly()
    for name in [name for name in disk.listing(DIRECTORY) if name.endswith(kind)]:
        data = bytes_of(disk, f"{DIRECTORY}/{name}")
        if damage == "flipped":
            data[random.randrange(len(data))] ^= 1 << random.randrange(8)
        elif damage == "cut":
            del data[random.randrange(len(data)) :]
        elif damage == "garbage":
            data[:] = random.randbytes(len(data))
        elif damage == "emptied":
            data.clear()
        elif damage == "removed":
            del disk.names[f"{DIRECTORY}/{name}"]
        elif name in stale:
            data[:] = stale[name]
    log = opened(disk, clean=clean, recovery_point=60)
    assert content(log) == expected
    for offset in range(60):
        assert log.read(offset, 1, 60).first_offset == offset
    assert log.offset_for_time(NOW.wall_ms - 20) == (30, NOW.wall_ms - 20, 1)
    assert log.offset_of_max_timestamp() == (YOUNGEST, NOW.wall_ms, 2)
    assert all(segment.largest_timestamp_ms <= NOW.wall_ms for segment in log.segments.all)
    log.append_as_leader(batch_of(b"next", producer=(0, 0, 30)), 5, NOW)
    log.truncate_to(45)
    assert log.producers.items()[0][1].next_sequence == 23


def test_damage_in_the_middle_of_what_was_flushed_is_not_cut_away() -> None:
    """I18, and NATS's bug #17: a failed checksum is not a shorter log. The replica stays out."""
    disk = Disk()
    log = written(disk, 10)
    flushed(disk, log)
    place = log.segments.all[0].place_of(3)
    assert place is not None
    bytes_of(disk, path_of(disk, ".log"))[place.position + 70] ^= 1
    with pytest.raises(LogDamaged) as refused:
        opened(disk, recovery_point=10)
    assert refused.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert "00000000000000000000.log is damaged at byte" in str(refused.value)
    assert len(bytes_of(disk, path_of(disk, ".log"))) == log.size_bytes, "it is left as it was found"


def test_a_flushed_tail_that_is_gone_is_reported() -> None:
    """The disk lied about a flush, or somebody cut the file (F21)."""
    disk = Disk()
    log = written(disk, 10)
    flushed(disk, log)
    data = bytes_of(disk, path_of(disk, ".log"))
    del data[len(data) - 5 :]
    told: list[Fact] = []
    log = opened(disk, recovery_point=10, told=told)
    assert log.end_offset == 9
    assert FlushedRecordsMissing(DIRECTORY, 9, 10) in told


def test_a_checkpoint_that_knows_more_than_the_log_makes_everything_be_checked() -> None:
    disk = Disk()
    log = written(disk)
    del bytes_of(disk, log.segments.all[1].log.path)[-3:]
    log = opened(disk, recovery_point=1000)
    assert [offset for offset, _ in values_of(log)] == list(range(log.end_offset))
    assert log.end_offset < 60
    assert log.recovery_point == 0


def test_damage_in_an_old_segment_is_found_when_it_is_read() -> None:
    """Below the recovery point nothing is scanned. A header that cannot be is never served."""
    disk = Disk()
    log = written(disk)
    log.close_cleanly()
    first = log.segments.all[0]
    place = first.place_of(5)
    assert place is not None
    data = bytes_of(disk, first.log.path)
    for position, value in ((8, 0x7F), (8, 0xFF), (11, 0x01), (16, 1), (0, 0x7F)):
        whole = data[place.position + position]
        data[place.position + position] = value
        log = opened(disk, clean=True, recovery_point=60)
        assert log.read(0, 1, 60).size > 0
        with pytest.raises(Damaged) as refused:
            log.read(0, 10**6, 60)
        assert (refused.value.code, refused.value.position) == (ErrorCode.CORRUPT_MESSAGE, place.position)
        data[place.position + position] = whole
    assert opened(disk, clean=True, recovery_point=60).read(0, 10**6, 60).size == first.size


def test_damage_in_an_old_segment_does_not_stop_retention() -> None:
    disk = Disk()
    log = written(disk)
    log.close_cleanly()
    first = log.segments.all[0]
    bytes_of(disk, first.log.path)[500:600] = bytes(100)
    bytes_of(disk, first.log.path.replace(".log", ".timeindex")).clear()
    log = opened(disk, replace(SMALL, retention_ms=1000), clean=True, recovery_point=60)
    assert log.delete_expired_segments(later(1000), 60) == []
    assert log.delete_expired_segments(later(1001), 60)[0].base_offset == 0


def test_a_clean_shutdown_that_was_none_is_recovered() -> None:
    disk = Disk()
    log = written(disk)
    log.close_cleanly()
    bytes_of(disk, path_of(disk, ".log")).extend(b"torn")
    told: list[Fact] = []
    log = opened(disk, clean=True, recovery_point=60, told=told)
    assert log.end_offset == 60
    assert len(everything(log)) == 60
    assert told


def test_leftovers_go() -> None:
    disk = Disk()
    log = written(disk, 3)
    for name in (".log.deleted", ".log.cleaned", ".snapshot.tmp"):
        disk.write_whole(f"{DIRECTORY}/00000000000000000000{name}", b"left")
    for name in ("00000000000000000009.index", "leader-epoch-checkpoint.tmp", "partition.metadata.tmp"):
        disk.write_whole(f"{DIRECTORY}/{name}", b"left")
    for name in ("partition.metadata", "somebodys.tmp"):
        disk.write_whole(f"{DIRECTORY}/{name}", b"stays")
    log = opened(disk)
    assert log.end_offset == 3
    disk.remove_discarded()
    assert disk.listing(DIRECTORY) == [
        "00000000000000000000.index",
        "00000000000000000000.log",
        "00000000000000000000.timeindex",
        "partition.metadata",
        "somebodys.tmp",
    ]


def test_snapshots_that_no_segment_needs_go() -> None:
    disk = Disk()
    for _ in range(3):
        log = opened(disk, clean=True)
        log.append_as_leader(batch_of(b"a"), 0, NOW)
        log.close_cleanly()
    assert [name for name in disk.listing(DIRECTORY) if name.endswith(".snapshot")] == [
        "00000000000000000002.snapshot",
        "00000000000000000003.snapshot",
    ]


def test_a_log_that_ends_before_it_begins_is_empty() -> None:
    disk = Disk()
    written(disk, 10)
    log = opened(disk, start_offset=50)
    assert (log.start_offset, log.end_offset, log.size_bytes) == (50, 50, 0)
    assert log.append_as_leader(batch_of(b"a"), 9, NOW).base_offset == 50


def test_recovery_flushes_later_what_it_found() -> None:
    disk = Disk()
    log = written(disk)
    log = opened(disk)
    assert log.recovery_point == 0
    files, up_to = log.files_to_flush()
    assert up_to == 60
    assert {file.path for file in files} >= {segment.log.path for segment in log.segments.all}
    disk.flush(files)
    log.flushed(up_to)
    assert log.recovery_point == 60
    assert not log.has_unflushed_segments


def test_no_flipped_bit_is_ever_served() -> None:
    """F20 over bytes that were never flushed: whatever bit flips, the log opens, and a reader sees a prefix of what was
    written. Only the leader epoch, which no checksum covers, may be wrong, and never goes back."""
    disk = Disk()
    log = written(disk, 40)
    expected = [(stored.data[:12], stored.data[16:]) for stored in everything(log)]
    paths = [segment.log.path for segment in log.segments.all]
    whole = {path: bytes(inode.content) for path, inode in disk.names.items()}
    random = Random(20)
    for _ in range(400):
        path = random.choice(paths)
        bit = random.randrange(len(whole[path]) * 8)
        bytes_of(disk, path)[bit // 8] ^= 1 << bit % 8
        log = opened(disk)
        found = everything(log)
        assert [(stored.data[:12], stored.data[16:]) for stored in found] == expected[: len(found)]
        epochs = [stored.header.leader_epoch for stored in found]
        assert epochs == sorted(epochs)
        disk = Disk()
        disk.make_directory(DIRECTORY)
        for name, content in whole.items():
            disk.write_whole(name, content)


def test_what_an_empty_log_costs() -> None:
    """Acceptance 6: ten thousand partitions on one node."""
    disk = Disk()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    logs = [opened(disk) for _ in range(200)]
    used = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert used / len(logs) < 3_000
