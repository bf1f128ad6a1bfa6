"""Offsets by time (TRAPS 32): the first record at or after, whatever order the times come in."""

from hypothesis import given, settings
from hypothesis import strategies as st

from klamm.log.settings import LogSettings
from klamm.records.builder import BatchBuilder
from klamm.records.compression import Codec
from klamm.sim.disk import Disk
from tests.log.making import NOW, batch_of, opened


def test_before_all_after_all_and_in_between() -> None:
    log = opened(Disk())
    assert log.offset_for_time(0) is None
    assert log.offset_of_max_timestamp() is None
    log.append_as_leader(batch_of(b"a", b"b", timestamp=100, step_ms=10), 1, NOW)
    log.append_as_leader(batch_of(b"c", timestamp=200), 2, NOW)
    assert log.offset_for_time(0) == (0, 100, 1)
    assert log.offset_for_time(101) == (1, 110, 1)
    assert log.offset_for_time(111) == (2, 200, 2)
    assert log.offset_for_time(201) is None
    assert log.offset_of_max_timestamp() == (2, 200, 2)


def test_records_that_are_deleted_are_not_found() -> None:
    log = opened(Disk())
    log.append_as_leader(batch_of(b"a", b"b", b"c", timestamp=100, step_ms=-10), 0, NOW)
    assert log.offset_of_max_timestamp() == (0, 100, 0)
    log.advance_start_offset(1)
    assert log.offset_for_time(0) == (1, 90, 0)
    assert log.offset_for_time(95) is None


def test_records_without_time_have_none() -> None:
    log = opened(Disk())
    log.append_as_leader(batch_of(b"a", timestamp=-1), 0, NOW)
    assert log.offset_for_time(0) is None
    assert log.offset_of_max_timestamp() is None


@given(
    times=st.lists(st.lists(st.integers(0, 30), min_size=1, max_size=4), min_size=1, max_size=40),
    start=st.integers(0, 60),
    restart=st.sampled_from(["no", "clean", "unclean"]),
    codec=st.sampled_from([Codec.NONE, Codec.LZ4]),
)
@settings(deadline=None, max_examples=60)
def test_the_search_equals_looking_at_every_record(
    times: list[list[int]], start: int, restart: str, codec: Codec
) -> None:
    how = LogSettings(segment_bytes=800, index_interval_bytes=150)
    disk = Disk()
    log = opened(disk, how)
    naive: list[int] = []
    for batch in times:
        builder = BatchBuilder(codec)
        for time in batch:
            builder.append(b"key", b"value", time)
        log.append_as_leader(memoryview(builder.build()), 0, NOW)
        naive += batch
    start = min(start, len(naive))
    log.advance_start_offset(start)
    if restart != "no":
        log.close_cleanly()
        log = opened(disk, how, clean=restart == "clean", recovery_point=log.end_offset, start_offset=start)
    for timestamp in range(-1, 32):
        matching = [offset for offset in range(start, len(naive)) if naive[offset] >= timestamp]
        expected = (matching[0], naive[matching[0]], 0) if matching else None
        assert log.offset_for_time(timestamp) == expected
    youngest = max(naive[start:], default=-1)
    expected = (start + naive[start:].index(youngest), youngest, 0) if start < len(naive) else None
    assert log.offset_of_max_timestamp() == expected
