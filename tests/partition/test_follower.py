"""Following: records at the same offsets, the leader's watermark as far as we hold it, and histories that part."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klamm.errors import ErrorCode, KafkaError
from klamm.log.log import Log
from klamm.log.settings import LogSettings
from klamm.partition.follower import agreed_end
from klamm.records.builder import BatchBuilder
from klamm.sim.disk import Disk
from tests.partition.replica import BEGINNING, Replica, batch_of

History = st.lists(st.tuples(st.integers(0, 3), st.integers(1, 3)), max_size=6)
"""How many epochs pass, and how many records are then written."""


def log_of(epochs: list[int]) -> Log:
    """One record of each epoch given."""
    log = Log.open("t-0", Disk(), LogSettings(), BEGINNING, clean=True, recovery_point=0)
    for offset, epoch in enumerate(epochs):
        log.append_as_follower(memoryview(batch_of(b"%d" % epoch, epoch=epoch, offset=offset)), BEGINNING)
    return log


def epochs_of(history: list[tuple[int, int]]) -> list[int]:
    epochs, epoch = [], 0
    for passed, written in history:
        epoch += passed
        epochs += [epoch] * written
    return epochs


@given(History, History, History)
def test_a_follower_ends_up_with_exactly_what_both_histories_share(
    shared: list[tuple[int, int]], own: list[tuple[int, int]], leaders: list[tuple[int, int]]
) -> None:
    """The naive twin compares record by record. One epoch has one writer, so the two continue with epochs of their
    own: even ones here, odd ones there."""
    common = epochs_of(shared)
    first = 2 * (common[-1] + 1) if common else 0
    mine = [2 * epoch for epoch in common] + [first + 2 * epoch for epoch in epochs_of(own)]
    theirs = [2 * epoch for epoch in common] + [first + 1 + 2 * epoch for epoch in epochs_of(leaders)]
    log, leader = log_of(mine), log_of(theirs)
    leader.epochs.assign(1_000, leader.end_offset)
    for _ in range(20):
        last = log.latest_epoch
        epoch, end = leader.end_offset_for_epoch(last) if last >= 0 else (-1, leader.end_offset)
        if last < 0 or (epoch == last and end >= log.end_offset):
            break
        log.truncate_to(agreed_end(log, epoch, end))
    assert log.end_offset == len(common)


def test_a_follower_knows_to_be_committed_what_its_leader_says_and_it_holds() -> None:
    replica = Replica()
    replica.follows()
    replica.gets(b"a", watermark=5)
    assert replica.high_watermark == 1
    replica.gets(b"b", b"c", watermark=2)
    assert replica.high_watermark == 2


def test_a_new_epochs_records_are_not_committed_by_an_old_leaders_word() -> None:
    replica = Replica()
    replica.follows(epoch=0)
    replica.gets(b"a", watermark=9)
    replica.follows(epoch=1, leader=2, partition_epoch=1)
    replica.gets(b"b", epoch=1, watermark=0)
    assert replica.high_watermark == 1


def test_a_follower_that_becomes_leader_keeps_its_watermark_and_learns_it_anew() -> None:
    replica = Replica()
    replica.follows()
    replica.gets(b"a", b"b", watermark=1)
    replica.leads(epoch=1, partition_epoch=1)
    assert replica.high_watermark == 1 and not replica.partition.knows_its_watermark
    for follower in (1, 2):
        replica.is_fetched(follower, 2)
    assert replica.high_watermark == 2 and replica.partition.knows_its_watermark


def test_what_the_leader_does_not_have_is_dropped() -> None:
    replica = Replica()
    replica.leads()
    replica.writes(b"a", b"b")
    replica.writes(b"c")
    replica.follows(epoch=1, partition_epoch=1)
    replica.partition.diverged(0, 2)
    assert replica.partition.log.end_offset == 2
    replica.gets(b"d", epoch=1)
    assert replica.partition.log.epochs.entries() == [(0, 0), (1, 2)]


def test_what_is_cut_in_pieces_agrees_with_the_leader_only_when_the_last_is_gone() -> None:
    """In between the log ends with records of an epoch that the leader has as well, but not up to there."""
    replica = Replica()
    replica.disk.piece_bytes = 100
    replica.follows()
    for number in range(6):
        replica.gets(b"%d" % number)
    replica.follows(epoch=1, partition_epoch=1)
    ends = []
    while replica.partition.log.end_offset > 2:
        replica.partition.diverged(0, 2)
        ends.append(replica.partition.log.end_offset)
        # As if it had deleted all that it had. Only what is known to be the same there keeps its place.
        assert (replica.partition._agreed_end == ends[-1]) == (ends[-1] == 2)
    assert len(ends) > 1
    replica.gets(b"d", epoch=1)
    assert replica.partition.log.epochs.entries() == [(0, 0), (1, 2)]


def test_an_epoch_in_which_we_wrote_nothing_is_forgotten() -> None:
    replica = Replica()
    replica.leads(epoch=0)
    replica.writes(b"a")
    replica.leads(epoch=3, partition_epoch=1)
    replica.follows(epoch=4, partition_epoch=2)
    assert replica.partition.log.latest_epoch == 3
    replica.partition.diverged(0, 1)
    assert replica.partition.log.latest_epoch == 0 and replica.partition.log.end_offset == 1


def test_the_leaders_beginning_becomes_ours() -> None:
    replica = Replica()
    replica.follows()
    replica.gets(b"a", b"b", b"c", start=2)
    assert replica.partition.log.start_offset == 2
    replica.partition.start_over_at(10)
    replica.settle()
    log = replica.partition.log
    assert (log.start_offset, log.end_offset, replica.high_watermark) == (10, 10, 10)


def test_what_lies_before_the_leaders_beginning_is_gone_for_good() -> None:
    """The leader deleted it and cannot say whether it was the same there. A crash that forgets our beginning must not
    bring it back."""
    replica = Replica()
    replica.leads()
    replica.writes(b"never committed")
    replica.follows(epoch=1, partition_epoch=1)
    replica.gets(b"b", epoch=1, start=1)
    assert replica.partition.log.segments.first_offset == 1
    assert (replica.partition.log.start_offset, replica.partition.log.end_offset) == (1, 2)


def test_producers_are_still_known_when_the_leader_has_deleted_all_that_they_wrote() -> None:
    """Else a retry would be taken for news here, once we lead."""
    replica = Replica()
    replica.follows()
    builder = BatchBuilder(base_offset=0, leader_epoch=0, producer_id=7, producer_epoch=0, base_sequence=0)
    builder.append(None, b"a", BEGINNING.wall_ms)
    for records, start in ((builder.build(), 0), (b"", 0), (b"", 1)):
        replica.partition.follow(records, 1, start, BEGINNING)
        replica.settle()
    log = replica.partition.log
    assert (log.start_offset, log.end_offset) == (1, 1)
    assert log.producers.get(7) is not None


def test_also_if_that_is_the_first_it_hears_of_the_leader_after_it_was_cut() -> None:
    """Its own watermark is older than all of that, but what it kept ends with the leader's epoch where the leader has
    it."""
    replica = Replica()
    replica.follows()
    builder = BatchBuilder(base_offset=0, leader_epoch=0, producer_id=7, producer_epoch=0, base_sequence=0)
    builder.append(None, b"a", BEGINNING.wall_ms)
    replica.partition.follow(builder.build(), 0, 0, BEGINNING)
    replica.gets(b"never committed", watermark=0)
    replica.follows(epoch=1, partition_epoch=1)
    replica.partition.diverged(0, 1)
    replica.settle()
    assert (replica.high_watermark, replica.partition.log.end_offset) == (0, 1)
    replica.partition.follow(b"", 1, 1, BEGINNING)
    replica.settle()
    log = replica.partition.log
    assert (log.start_offset, log.end_offset) == (1, 1)
    assert log.producers.get(7) is not None


def test_but_what_another_leader_agreed_on_says_nothing_of_the_next() -> None:
    replica = Replica()
    replica.follows()
    replica.gets(b"a", b"b", watermark=0)
    replica.gets(watermark=0)
    replica.follows(epoch=1, partition_epoch=1)
    replica.partition.follow(b"", 2, 2, BEGINNING)
    replica.settle()
    assert replica.partition.log.segments.first_offset == 2, "it started over"


def test_damaged_records_are_not_appended() -> None:
    replica = Replica()
    replica.follows()
    damaged = batch_of(b"a")
    damaged[-1] ^= 1
    with pytest.raises(KafkaError) as error:
        replica.partition.follow(damaged, 0, 0, BEGINNING)
    assert error.value.code == ErrorCode.CORRUPT_MESSAGE and replica.partition.log.end_offset == 0


def test_a_follower_serves_readers_only_where_readers_are_sent_to_followers() -> None:
    replica = Replica()
    replica.follows()
    replica.gets(b"a", watermark=1)
    with pytest.raises(KafkaError) as error:
        replica.partition.read(0, 1_000, at_least_one=True)
    assert error.value.code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    replica.surroundings.readers_may_follow = True
    assert replica.partition.read(0, 1_000, at_least_one=True).size > 0
