"""The way out: whole batches from any offset, never above the limit, whatever the size asked for."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from klamm.errors import ErrorCode, KafkaError
from klamm.ids import Now
from klamm.log.log import Log
from klamm.log.settings import LogSettings
from klamm.records.batch import batches
from klamm.sim.disk import Disk
from tests.log.making import NOW, SMALL, batch_of, batch_of_size, opened


def filled(disk: Disk, sizes: list[int], how: LogSettings = SMALL) -> Log:
    log = opened(disk, how)
    for number, size in enumerate(sizes):
        log.append_as_leader(batch_of(*[bytes(size)] * (number % 3 + 1)), 0, NOW)
    return log


def test_an_offset_inside_a_batch_returns_the_whole_batch() -> None:
    """TRAPS 25: the client skips what it did not ask for; without it consumers hang."""
    log = opened(Disk())
    log.append_as_leader(batch_of(b"a", b"b", b"c"), 0, NOW)
    for offset in range(3):
        part = log.read(offset, 10_000, 3)
        assert (part.first_offset, part.next_offset, part.size) == (0, 3, log.size_bytes)


def test_the_first_batch_comes_even_if_it_is_larger_than_asked_for() -> None:
    """TRAPS 26, KIP-74: at least one, unless something came from another partition already."""
    log = opened(Disk())
    log.append_as_leader(batch_of_size(500), 0, NOW)
    log.append_as_leader(batch_of_size(500), 0, NOW)
    assert log.read(0, 10, 2).size == 500
    assert log.read(0, 0, 2).size == 500
    assert log.read(1, 10, 2, at_least_one=False).size == 0
    assert log.read(0, 999, 2).size == 500
    assert log.read(0, 1000, 2).size == 1000


def test_only_offsets_outside_of_the_log_are_out_of_range() -> None:
    """TRAPS 27: between the watermark and the end there is nothing yet, which is no error."""
    log = opened(Disk())
    log.append_as_leader(batch_of(b"a", b"b"), 0, NOW)
    log.append_as_leader(batch_of(b"c"), 0, NOW)
    log.advance_start_offset(1)
    assert log.read(2, 1000, 2).size == 0
    assert log.read(3, 1000, 2).size == 0
    assert log.read(3, 1000, 3).size == 0
    for offset in (0, 4, -1):
        with pytest.raises(KafkaError) as refused:
            log.read(offset, 1000, 3)
        assert refused.value.code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert log.read(1, 1000, 3).first_offset == 0


def test_a_batch_that_crosses_the_limit_is_not_read() -> None:
    log = opened(Disk())
    log.append_as_leader(batch_of(b"a"), 0, NOW)
    log.append_as_leader(batch_of(b"b", b"c"), 0, NOW)
    assert log.read(0, 1000, 2).next_offset == 1
    assert log.read(1, 1000, 2).size == 0


def test_a_reader_crosses_segments_one_slice_at_a_time() -> None:
    log = filled(Disk(), [100] * 40)
    assert len(log.segments.all) > 2
    seen, offset = [], 0
    while offset < log.end_offset:
        part = log.read(offset, 10**6, log.end_offset)
        seen.append((offset, part.next_offset))
        offset = part.next_offset
    assert [start for start, _ in seen] == [segment.base_offset for segment in log.segments.all]


def test_a_region_outlives_its_segment() -> None:
    log = filled(Disk(), [100] * 40)
    part = log.read(0, 10**6, log.end_offset)
    before = bytes(part)
    log.advance_start_offset(log.end_offset)
    assert log.delete_expired_segments(NOW, log.end_offset)
    assert bytes(part) == before


@given(
    sizes=st.lists(st.integers(0, 700), min_size=1, max_size=60),
    interval=st.sampled_from([0, 100, 1000, 10_000]),
    restart=st.sampled_from(["no", "rest", "clean", "unclean"]),
    random=st.randoms(use_true_random=False),
)
@settings(deadline=None, max_examples=60)
def test_reading_finds_what_a_naive_reader_finds(sizes: list[int], interval: int, restart: str, random: Random) -> None:
    """For any offset, size and limit: a run of whole batches, from the one that holds the offset, none above the limit,
    no larger than asked for unless it is a single batch, and nothing is left out for no reason."""
    how = LogSettings(segment_bytes=3_000, index_interval_bytes=interval)
    disk = Disk()
    log = filled(disk, sizes, how)
    naive = [
        (header.base_offset, header.next_offset, header.size_bytes, segment.base_offset)
        for segment in log.segments.all
        for _, header in batches(segment.log.read(0, segment.size))
    ]
    if restart == "rest":
        log.delete_expired_segments(NOW, 0)
        log.delete_expired_segments(NOW, 0)
    elif restart != "no":
        log.close_cleanly()
        log = opened(disk, how, clean=restart == "clean", recovery_point=log.end_offset)
    for _ in range(40):
        offset, up_to = random.randrange(log.end_offset), random.randint(0, log.end_offset)
        max_bytes = random.choice([0, 100, 500, 2_000, 100_000])
        part = log.read(offset, max_bytes, up_to)
        first = next(number for number, batch in enumerate(naive) if batch[1] > offset)
        fitting = [batch for batch in naive[first:] if batch[1] <= up_to and batch[3] == naive[first][3]]
        got = [header for _, header in batches(bytes(part))]
        assert sum(header.size_bytes for header in got) == part.size
        assert [header.base_offset for header in got] == [batch[0] for batch in fitting[: len(got)]]
        assert bool(got) == (bool(fitting) and offset < up_to)
        if got:
            assert part.first_offset <= offset and part.next_offset == got[-1].next_offset
            assert part.size <= max_bytes or len(got) == 1
            if len(got) < len(fitting):
                assert part.size + fitting[len(got)][2] > max_bytes or part.size >= max_bytes // 2


def test_several_readers_at_their_own_pace_each_see_everything() -> None:
    """Places are remembered for a few of them; the others ask the index."""
    log = filled(Disk(), [50, 500, 5] * 60, LogSettings(segment_bytes=20_000, index_interval_bytes=500))
    log.delete_expired_segments(Now(0, 0), 0)
    log.delete_expired_segments(Now(0, 0), 0)
    positions = dict.fromkeys(range(20), 0)
    random = Random(7)
    while any(offset < log.end_offset for offset in positions.values()):
        reader = random.choice([reader for reader, offset in positions.items() if offset < log.end_offset])
        part = log.read(positions[reader], 1000, log.end_offset)
        assert part.first_offset == positions[reader]
        positions[reader] = part.next_offset
