"""The follower's way in, and how it gives up a history that is not the leader's."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from klamm.errors import ErrorCode, KafkaError
from klamm.log.log import Log
from klamm.log.settings import LogSettings
from klamm.records.batch import InvalidBatch, stamp
from klamm.sim.disk import Disk
from tests.log.making import NOW, SMALL, batch_of, everything, opened, values_of

OTHER = LogSettings(segment_bytes=1_300, index_interval_bytes=100)


def fetched(leader: Log, offset: int, max_bytes: int = 10**6) -> memoryview:
    return memoryview(bytearray(bytes(leader.read(offset, max_bytes, leader.end_offset))))


def caught_up(follower: Log, leader: Log, max_bytes: int = 10**6) -> None:
    while follower.end_offset < leader.end_offset:
        follower.append_as_follower(fetched(leader, follower.end_offset, max_bytes), NOW)


def leader_of(disk: Disk, count: int) -> Log:
    log = opened(disk)
    for number in range(count):
        producer = (number % 3, 0, number // 3)
        log.append_as_leader(batch_of(b"%d" % number * 20, producer=producer), number // 10, NOW)
    return log


def same(one: Log, other: Log) -> bool:
    """Same bytes, same epochs, same producers; segments may be cut differently."""
    return (
        [stored.data for stored in everything(one)] == [stored.data for stored in everything(other)]
        and one.epochs.entries() == other.epochs.entries()
        and [(key, state.epoch, state.batches) for key, state in one.producers.items()]
        == [(key, state.epoch, state.batches) for key, state in other.producers.items()]
    )


def test_a_follower_holds_the_leaders_bytes_in_segments_of_its_own() -> None:
    leader, follower = leader_of(Disk(), 60), opened(Disk(), OTHER)
    caught_up(follower, leader)
    assert same(follower, leader)
    assert [segment.base_offset for segment in follower.segments.all] != [
        segment.base_offset for segment in leader.segments.all
    ]


def test_a_batch_that_is_cut_off_at_the_end_is_ignored() -> None:
    leader, follower = leader_of(Disk(), 5), opened(Disk())
    data = fetched(leader, 0)
    appended = follower.append_as_follower(data[:-1], NOW)
    assert appended is not None
    assert (appended.base_offset, appended.last_offset, follower.end_offset) == (0, 3, 4)
    assert follower.append_as_follower(data[:20], NOW) is None
    assert follower.append_as_follower(memoryview(b""), NOW) is None


def test_nothing_is_written_of_what_does_not_continue_the_log() -> None:
    leader, follower = leader_of(Disk(), 12), opened(Disk())
    follower.append_as_follower(fetched(leader, 0, 1), NOW)
    assert follower.end_offset == 1
    with pytest.raises(KafkaError) as refused:
        follower.append_as_follower(fetched(leader, 0), NOW)
    assert refused.value.code == ErrorCode.OFFSET_OUT_OF_RANGE
    damaged = fetched(leader, 1)
    damaged[-1] ^= 1
    with pytest.raises(InvalidBatch) as corrupt:
        follower.append_as_follower(damaged, NOW)
    assert corrupt.value.code == ErrorCode.CORRUPT_MESSAGE
    older = batch_of(b"older")
    follower.append_as_follower(fetched(leader, 1), NOW)
    stamp(older, 12, 0)
    with pytest.raises(KafkaError) as fenced:
        follower.append_as_follower(older, NOW)
    assert fenced.value.code == ErrorCode.FENCED_LEADER_EPOCH
    assert same(follower, leader)


def test_gaps_that_compaction_left_are_kept() -> None:
    follower = opened(Disk())
    for base_offset in (0, 10, 11, 5_000_000_000):
        batch = batch_of(b"x")
        stamp(batch, base_offset, 0)
        follower.append_as_follower(batch, NOW)
    assert [offset for offset, _ in values_of(follower)] == [0, 10, 11, 5_000_000_000]
    assert follower.read(1, 1000, 12).next_offset == 12
    part = follower.read(12, 1000, follower.end_offset)
    assert part.size > 0 and part.next_offset == 5_000_000_001


def test_a_follower_may_begin_inside_the_leaders_first_batch() -> None:
    """DeleteRecords stopped in the middle of a batch; a fetch at the leader's start returns all of it."""
    leader, disk = opened(Disk()), Disk()
    leader.append_as_leader(batch_of(b"a", b"b", b"c"), 0, NOW)
    leader.append_as_leader(batch_of(b"d"), 0, NOW)
    leader.advance_start_offset(2)
    follower = opened(disk)
    follower.truncate_fully_and_start_at(2)
    follower.append_as_follower(fetched(leader, 2), NOW)
    assert (follower.start_offset, follower.end_offset) == (2, 4)
    assert values_of(follower) == values_of(leader)
    follower.close_cleanly()
    assert values_of(opened(disk, clean=True, start_offset=2)) == values_of(leader)


def test_truncation_ends_the_log_at_a_batch() -> None:
    log = opened(Disk())
    log.append_as_leader(batch_of(b"a", b"b"), 0, NOW)
    log.append_as_leader(batch_of(b"c", b"d", b"e"), 1, NOW)
    assert not log.truncate_to(5)
    assert log.truncate_to(4)
    assert (log.end_offset, log.epochs.entries()) == (2, [(0, 0)])
    log.append_as_leader(batch_of(b"f"), 2, NOW)
    assert values_of(log) == [(0, b"a"), (1, b"b"), (2, b"f")]


def test_truncation_in_a_gap_ends_the_log_before_it() -> None:
    """Otherwise the next segment would not follow on this one, and recovery would take the gap for a loss."""
    disk = Disk()
    log = opened(disk, LogSettings(compact=True))
    for base_offset in (0, 10):
        batch = batch_of(b"x")
        stamp(batch, base_offset, 0)
        log.append_as_follower(batch, NOW)
    log.truncate_to(5)
    assert log.end_offset == 1
    log.roll(NOW)
    batch = batch_of(b"y")
    stamp(batch, 12, 0)
    log.append_as_follower(batch, NOW)
    assert values_of(log) == values_of(opened(disk, LogSettings(compact=True))) == [(0, b"x"), (12, b"y")]


def test_an_epoch_that_began_but_wrote_nothing_goes_even_if_no_record_does() -> None:
    log = opened(Disk())
    log.append_as_leader(batch_of(b"a"), 0, NOW)
    log.epochs.assign(5, log.end_offset)
    assert not log.truncate_to(1)
    assert log.latest_epoch == 0


def test_truncation_below_the_first_record_starts_anew() -> None:
    log = leader_of(Disk(), 30)
    log.advance_start_offset(25)
    log.delete_expired_segments(NOW, 30)
    assert log.truncate_to(3)
    assert (log.start_offset, log.end_offset, log.recovery_point) == (3, 3, 3)
    assert (log.epochs.entries(), len(log.producers)) == ([], 0)
    log.append_as_leader(batch_of(b"new"), 9, NOW)
    assert values_of(log) == [(3, b"new")]


def test_starting_anew_survives_a_restart() -> None:
    disk = Disk()
    log = leader_of(disk, 30)
    log.truncate_fully_and_start_at(1000)
    log.close_cleanly()
    for clean in (True, False):
        log = opened(disk, clean=clean)
        assert (log.start_offset, log.end_offset) == (1000, 1000)


def test_a_flush_that_began_before_a_truncation_vouches_for_nothing_above_it() -> None:
    log = leader_of(Disk(), 20)
    _, up_to = log.files_to_flush()
    log.truncate_to(5)
    for number in range(10):
        log.append_as_leader(batch_of(b"%d" % number), 7, NOW)
    log.flushed(up_to)
    assert log.recovery_point == 5
    _, up_to = log.files_to_flush()
    log.flushed(up_to)
    assert log.recovery_point == 15


@given(
    histories=st.lists(st.tuples(st.integers(1, 25), st.integers(0, 40)), min_size=1, max_size=6),
    random=st.randoms(use_true_random=False),
    max_bytes=st.sampled_from([1, 200, 5_000]),
)
@settings(deadline=None, max_examples=40)
def test_truncating_by_epoch_always_ends_in_the_leaders_history(
    histories: list[tuple[int, int]], random: Random, max_bytes: int
) -> None:
    """Three replicas; each leader writes, is copied only in part, and loses its office. Whoever leads next, a follower
    that truncates by epoch and fetches holds the leader's bytes in the end (KIP-101, KIP-279)."""
    logs = [opened(Disk(), how) for how in (SMALL, OTHER, SMALL)]
    written = 0
    for epoch, (count, copied) in enumerate(histories):
        leader = logs[random.randrange(3)]
        leader.epochs.assign(epoch, leader.end_offset)
        for _ in range(count):
            written += 1
            producer = (epoch, 0, 0) if leader.producers.get(epoch) is None else None
            leader.append_as_leader(batch_of(b"%d" % written * 9, producer=producer), epoch, NOW)
        for follower in logs:
            if follower is not leader:
                _truncated_by_epoch(follower, leader)
                while follower.end_offset < min(leader.end_offset, copied):
                    follower.append_as_follower(fetched(leader, follower.end_offset, max_bytes), NOW)
        random.shuffle(logs)
    leader = max(logs, key=lambda log: (log.latest_epoch, log.end_offset))
    for follower in logs:
        if follower is not leader:
            _truncated_by_epoch(follower, leader)
            caught_up(follower, leader, max_bytes)
            assert same(follower, leader)


def _truncated_by_epoch(follower: Log, leader: Log) -> None:
    """Ask where the follower's last epoch ended on the leader, until both agree."""
    while True:
        follower.truncate_to(follower.end_offset)
        epoch, end_offset = leader.end_offset_for_epoch(follower.latest_epoch)
        if follower.latest_epoch == -1 or epoch == -1:
            follower.truncate_to(0)
            return
        if epoch == follower.latest_epoch:
            follower.truncate_to(end_offset)
            return
        own_epoch, own_end = follower.end_offset_for_epoch(epoch)
        follower.truncate_to(min(end_offset, own_end) if own_epoch >= 0 else end_offset)
