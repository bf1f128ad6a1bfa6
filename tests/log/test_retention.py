"""Retention: the oldest segments go, whole, and never what is not committed."""

import copy
from random import Random

import pytest

from klamm.log.settings import LogSettings
from klamm.records.batch import HEADER_BYTES
from klamm.sim.disk import Disk
from tests.log.making import DIRECTORY, NOW, batch_of, batch_of_size, later, opened, values_of

TEN_A_SEGMENT = LogSettings(segment_bytes=1000, retention_ms=-1, file_delete_delay_ms=1000)


def test_segments_go_when_their_youngest_record_is_too_old() -> None:
    log = opened(Disk(), LogSettings(segment_bytes=200, retention_ms=100))
    for age_ms in (500, 50, 400, 10):
        log.append_as_leader(batch_of_size(200, timestamp=NOW.wall_ms - age_ms), 0, NOW)
    deleted = log.delete_expired_segments(NOW, log.end_offset)
    assert [fact.base_offset for fact in deleted] == [0], "the third is old enough, but the second is in its way"
    assert "retention.ms=100" in str(deleted[0])
    assert (log.start_offset, log.end_offset) == (1, 4)


def test_segments_go_while_the_log_stays_as_large_as_retention_bytes() -> None:
    log = opened(Disk(), LogSettings(segment_bytes=1000, retention_ms=-1, retention_bytes=1500))
    for _ in range(35):
        log.append_as_leader(batch_of_size(100), 0, NOW)
    log.delete_expired_segments(NOW, log.end_offset)
    assert (log.start_offset, log.size_bytes) == (20, 1500)


def test_nothing_above_the_watermark_goes() -> None:
    log = opened(Disk(), LogSettings(segment_bytes=200, retention_ms=0))
    for _ in range(3):
        log.append_as_leader(batch_of_size(200, timestamp=5), 0, NOW)
    log.delete_expired_segments(NOW, 1)
    assert log.start_offset == 1


def test_compacted_topics_lose_nothing_by_age_unless_they_also_delete() -> None:
    for delete, expected in ((False, 0), (True, 3)):
        settings = LogSettings(segment_bytes=200, retention_ms=0, retention_bytes=0, compact=True, delete=delete)
        log = opened(Disk(), settings)
        for _ in range(3):
            log.append_as_leader(batch_of_size(200, timestamp=5), 0, NOW)
        log.delete_expired_segments(NOW, log.end_offset)
        assert log.start_offset == expected


def test_the_last_segment_may_go_and_the_log_still_knows_where_it_ends() -> None:
    disk = Disk()
    log = opened(disk, LogSettings(retention_ms=100, file_delete_delay_ms=0))
    log.append_as_leader(batch_of(b"a", b"b", timestamp=5, producer=(1, 0, 0)), 6, NOW)
    log.delete_expired_segments(NOW, 2)
    assert (log.start_offset, log.end_offset, values_of(log)) == (2, 2, [])
    assert log.append_as_leader(batch_of(b"a", b"b", timestamp=5, producer=(1, 0, 0)), 6, NOW).duplicate
    log.close_cleanly()
    for clean in (True, False):
        log = opened(disk, clean=clean)
        assert (log.start_offset, log.end_offset) == (2, 2)
    log.append_as_leader(batch_of(b"c"), 6, NOW)
    assert values_of(log) == [(2, b"c")]


def test_deleted_records_go_with_their_segments() -> None:
    log = opened(Disk(), TEN_A_SEGMENT)
    for number in range(25):
        log.append_as_leader(batch_of_size(100), number // 10, NOW)
    assert log.advance_start_offset(15)
    assert not log.advance_start_offset(14)
    log.delete_expired_segments(NOW, 25)
    assert [segment.base_offset for segment in log.segments.all] == [10, 20]
    assert log.start_offset == 15
    assert log.epochs.entries() == [(1, 15), (2, 20)]


def test_without_times_a_segment_is_as_old_as_its_last_write() -> None:
    settings = LogSettings(segment_bytes=200, retention_ms=100)
    log = opened(Disk(), settings)
    log.append_as_leader(batch_of_size(200, timestamp=-1), 0, NOW)
    assert not log.delete_expired_segments(later(100), 1)
    assert log.delete_expired_segments(later(101), 1)


def test_files_are_renamed_at_once_and_removed_after_a_while() -> None:
    disk = Disk()
    log = opened(disk, TEN_A_SEGMENT)
    for _ in range(25):
        log.append_as_leader(batch_of_size(100), 0, NOW)
    log.advance_start_offset(25)
    log.delete_expired_segments(NOW, 25)
    deleted = [name for name in disk.listing(DIRECTORY) if name.endswith(".deleted")]
    assert deleted[0] == "00000000000000000000.log.deleted"
    assert {each.after_ms for each in disk.discarded} == {1000}
    disk.remove_discarded()
    assert disk.listing(DIRECTORY) == ["00000000000000000025.log", "00000000000000000025.snapshot"]


def test_an_idle_log_gives_back_memory_and_loses_nothing() -> None:
    log = opened(Disk(), LogSettings(index_interval_bytes=10 * HEADER_BYTES))
    for number in range(50):
        log.append_as_leader(batch_of(b"%d" % number), 0, NOW)
    log.delete_expired_segments(NOW, 50)
    log.delete_expired_segments(NOW, 50)
    assert [value for _, value in values_of(log)] == [b"%d" % number for number in range(50)]
    log.append_as_leader(batch_of(b"50"), 0, NOW)
    assert values_of(log)[-1] == (50, b"50")


@pytest.mark.parametrize("all_go", [False, True])
def test_what_is_known_of_producers_survives_the_power_when_their_records_are_deleted(all_go: bool) -> None:
    disk = Disk()
    log = opened(disk, LogSettings(segment_bytes=200, retention_ms=100))
    log.append_as_leader(batch_of(b"x" * 100, producer=(7, 0, 0), timestamp=NOW.wall_ms - 500), 0, NOW)
    if not all_go:
        log.append_as_leader(batch_of(b"y" * 100, timestamp=NOW.wall_ms), 0, NOW)
    log.delete_expired_segments(NOW, log.end_offset)
    assert log.start_offset == 1
    for seed in range(20):
        copied = copy.deepcopy(disk)
        copied.crash(Random(seed))
        again = opened(copied)
        if again.start_offset == 1:
            assert again.producers.get(7) is not None, f"its retry would be taken for news (seed {seed})"
