"""A disk that fails (F19): no false acknowledgement, nothing more is taken, and reopening recovers."""

import errno

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from klamm.errors import ErrorCode, KafkaError
from klamm.log.files import DiskFailed, DiskFull
from klamm.log.log import Log
from klamm.log.settings import LogSettings
from klamm.sim.disk import Disk
from tests.log.making import DIRECTORY, NOW, SMALL, batch_of, opened, values_of


def test_a_full_disk_refuses_the_append_and_the_log_goes_on_when_there_is_room() -> None:
    disk = Disk()
    log = opened(disk)
    log.append_as_leader(batch_of(b"a"), 0, NOW)
    disk.fail_once("append")
    with pytest.raises(DiskFull) as full:
        log.append_as_leader(batch_of(b"b"), 0, NOW)
    assert full.value.errno == errno.ENOSPC
    assert (log.failed, log.end_offset) == (None, 1)
    log.append_as_leader(batch_of(b"c"), 0, NOW)
    assert values_of(log) == [(0, b"a"), (1, b"c")]
    assert values_of(opened(disk)) == [(0, b"a"), (1, b"c")]


def test_a_follower_finds_no_room_and_goes_on_when_there_is_some() -> None:
    """The metadata log is one as well: a node must not end because its disk is full for a moment."""
    leader = opened(Disk())
    for text in (b"a", b"b"):
        leader.append_as_leader(batch_of(text), 0, NOW)
    disk = Disk()
    follower = opened(disk)
    follower.append_as_follower(memoryview(bytes(leader.read(0, 1, 2))), NOW)
    disk.fail_once("append")
    with pytest.raises(DiskFull):
        follower.append_as_follower(memoryview(bytes(leader.read(1, 1_000, 2))), NOW)
    assert (follower.failed, follower.end_offset) == (None, 1)
    follower.append_as_follower(memoryview(bytes(leader.read(1, 1_000, 2))), NOW)
    assert values_of(follower) == values_of(opened(disk)) == [(0, b"a"), (1, b"b")]


@pytest.mark.parametrize("known", [True, False], ids=["known producer", "new producer"])
@pytest.mark.parametrize("fails", ["append", "rolling"])
def test_what_comes_after_a_batch_without_room_waits_for_it(known: bool, fails: str) -> None:
    """A client with several batches in flight that is told OUT_OF_ORDER_SEQUENCE_NUMBER takes a new epoch, and sends
    again what other partitions have stored."""
    disk = Disk()
    log = opened(disk)
    first = 0
    if known:
        log.append_as_leader(batch_of(b"0", producer=(7, 0, 0)), 0, NOW)
        first = 1
    else:
        log.append_as_leader(batch_of(b"0"), 0, NOW)
    if fails == "append":
        disk.fail_once("append")
    else:
        log.settings = LogSettings(segment_bytes=100)
        disk.failure = lambda call, path: DiskFull(path) if call in ("append", "write_whole") else None
    with pytest.raises(DiskFull):
        log.append_as_leader(batch_of(b"1", producer=(7, 0, first)), 0, NOW)
    for sequence in (first + 1, first + 2):
        with pytest.raises(KafkaError) as refused:
            log.append_as_leader(batch_of(b"later", producer=(7, 0, sequence)), 0, NOW)
        assert refused.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    disk.failure = None
    if log.failed is not None:
        log = log.reopened(NOW)
        with pytest.raises(KafkaError) as refused:
            log.append_as_leader(batch_of(b"later", producer=(7, 0, first + 1)), 0, NOW)
        assert refused.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    if known:
        again = log.append_as_leader(batch_of(b"0", producer=(7, 0, 0)), 0, NOW)
        assert (again.base_offset, again.duplicate) == (0, True), "what is stored is still recognised"
    for number in range(3):
        log.append_as_leader(batch_of(b"%d" % (number + 1), producer=(7, 0, first + number)), 0, NOW)
    assert [value for _, value in values_of(log)] == [b"0", b"1", b"2", b"3"]
    with pytest.raises(KafkaError) as refused:
        log.append_as_leader(batch_of(b"?", producer=(7, 0, first + 9)), 0, NOW)
    assert refused.value.code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, "that is over"


def test_a_new_log_remembers_what_it_had_no_directory_for() -> None:
    disk = Disk()
    log = Log.new(DIRECTORY, disk, SMALL, lambda: disk.make_directory(DIRECTORY))
    disk.failure = lambda call, path: DiskFull(path)
    with pytest.raises(DiskFull):
        log.append_as_leader(batch_of(b"a", producer=(7, 0, 0)), 0, NOW)
    disk.failure = None
    log = log.reopened(NOW)
    with pytest.raises(KafkaError) as refused:
        log.append_as_leader(batch_of(b"b", producer=(7, 0, 1)), 0, NOW)
    assert refused.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    for number in range(2):
        log.append_as_leader(batch_of(b"%d" % number, producer=(7, 0, number)), 0, NOW)


def test_a_log_that_begins_anew_knows_nothing_of_what_it_refused() -> None:
    disk = Disk()
    log = opened(disk)
    log.append_as_leader(batch_of(b"a", producer=(7, 0, 4)), 0, NOW)
    disk.fail_once("append")
    with pytest.raises(DiskFull):
        log.append_as_leader(batch_of(b"b", producer=(7, 0, 5)), 0, NOW)
    log.truncate_fully_and_start_at(500)
    assert log.append_as_leader(batch_of(b"z", producer=(7, 0, 100)), 3, NOW).base_offset == 500


def test_an_index_that_finds_no_room_waits_and_the_append_stands() -> None:
    disk = Disk()
    log = opened(disk, LogSettings(index_interval_bytes=0))
    disk.failure = lambda call, path: DiskFull(path) if call == "append" and path.endswith("index") else None
    for number in range(200):
        assert log.append_as_leader(batch_of(b"%d" % number), 0, NOW).base_offset == number
    disk.failure = lambda call, path: None
    log.append_as_leader(batch_of(b"200"), 0, NOW)
    assert [offset for offset, _ in values_of(log)] == list(range(201))
    log.close_cleanly()
    assert opened(disk, clean=True).read(150, 1, 201).first_offset == 150


def test_an_append_that_fails_fails_the_log() -> None:
    disk = Disk()
    log = opened(disk)
    log.append_as_leader(batch_of(b"a"), 0, NOW)
    disk.failure = lambda call, path: DiskFailed(f"{path}: input/output error", errno.EIO)
    with pytest.raises(DiskFailed):
        log.append_as_leader(batch_of(b"b"), 0, NOW)
    disk.failure = lambda call, path: None
    assert log.failed is not None and "input/output error" in log.failed
    for attempt in (lambda: log.append_as_leader(batch_of(b"c"), 0, NOW), lambda: log.roll(NOW)):
        with pytest.raises(KafkaError) as refused:
            attempt()
        assert refused.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert log.end_offset == 1
    assert values_of(log) == [(0, b"a")], "what it has can still be read"
    log.close_cleanly()
    assert values_of(log.reopened(NOW)) == [(0, b"a")]


def test_a_failed_flush_moves_nothing_and_is_not_tried_again() -> None:
    disk = Disk()
    log = opened(disk)
    log.append_as_leader(batch_of(b"a"), 0, NOW)
    files, _ = log.files_to_flush()
    disk.fail_once("flush")
    with pytest.raises(DiskFailed) as failed:
        disk.flush(files)
    log.fail(str(failed.value))
    assert log.recovery_point == 0
    with pytest.raises(KafkaError):
        log.append_as_leader(batch_of(b"b"), 0, NOW)


def test_an_unreadable_segment_is_an_error_of_the_reader_alone() -> None:
    disk = Disk()
    log = opened(disk)
    log.append_as_leader(batch_of(b"a"), 0, NOW)
    disk.fail_once("read")
    with pytest.raises(DiskFailed):
        log.read(0, 100, 1)
    assert log.failed is None
    assert values_of(log) == [(0, b"a")]


CALLS = ("append", "truncate", "remove", "rename", "write_whole", "flush", "read", "read_whole")


@given(
    st.sampled_from(CALLS),
    st.integers(0, 30),
    st.lists(st.sampled_from(["append", "roll", "flush", "truncate", "delete"]), min_size=1, max_size=40),
)
@settings(deadline=None, max_examples=150)
def test_whatever_call_fails_acknowledged_records_are_there_after_reopening(
    call: str, number: int, history: list[str]
) -> None:
    disk = Disk()
    log = opened(disk)
    acknowledged: list[tuple[int, bytes]] = []
    disk.fail_once(call, number)
    for what in history:
        try:
            _do(disk, log, what, acknowledged)
        except DiskFailed:
            assert log.failed is not None or call in ("append", "read", "read_whole", "flush")
        except KafkaError as error:
            assert log.failed is not None and error.code == ErrorCode.KAFKA_STORAGE_ERROR
    disk.failure = lambda call, path: None
    log = opened(disk, start_offset=log.start_offset)
    found = dict(values_of(log))
    for offset, value in acknowledged:
        assert offset < log.start_offset or found[offset] == value


def _do(disk: Disk, log: Log, what: str, acknowledged: list[tuple[int, bytes]]) -> None:
    if what == "append":
        value = b"%d" % len(acknowledged) * 100
        appended = log.append_as_leader(batch_of(value, producer=(1, 0, log.end_offset)), 0, NOW)
        acknowledged.append((appended.base_offset, value))
    elif what == "roll":
        log.roll(NOW)
    elif what == "flush":
        files, up_to = log.files_to_flush()
        disk.flush(files)
        log.flushed(up_to)
    elif what == "truncate":
        end = max(log.end_offset - 2, log.start_offset)
        # From here on nobody counts on these records any more, whether or not truncating them works.
        acknowledged[:] = [(offset, value) for offset, value in acknowledged if offset < end]
        log.truncate_to(end)
    else:
        log.advance_start_offset(min(log.start_offset + 3, log.end_offset))
        log.delete_expired_segments(NOW, log.end_offset)


def test_settings_of_a_failed_log_may_still_change() -> None:
    log = opened(Disk())
    log.fail("broken")
    log.settings = SMALL
    assert log.delete_expired_segments(NOW, 0) == []
    assert "failed: broken" in repr(log)
