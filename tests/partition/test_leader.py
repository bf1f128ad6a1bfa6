"""Leading: what moves the watermark, who is counted, what the controller is asked and what follows from its answer."""

import pytest

from klamm.errors import ErrorCode, KafkaError
from klamm.ids import Offset
from klamm.log.log import Log
from klamm.metadata.image import PartitionState
from klamm.partition.isr import IsrOutcome, IsrWish
from klamm.partition.partition import ALL
from tests.partition.replica import BEGINNING, TOPIC_ID, Replica, batch_of, later

LAG_MS = 30_000


def granted(wish: IsrWish, partition_epoch: int = 1) -> IsrOutcome:
    return IsrOutcome(TOPIC_ID, 0, ErrorCode.NONE, wish.leader_epoch, partition_epoch, wish.members)


def asks(replica: Replica, milliseconds: float = 0) -> IsrWish:
    wish = replica.partition.isr_wish(later(milliseconds))
    assert wish is not None
    return wish


# The watermark.


def test_the_watermark_is_the_smallest_end_among_the_in_sync() -> None:
    replica = Replica()
    replica.leads()
    replica.writes(b"a", b"b", b"c")
    assert replica.high_watermark == 0, "nobody else has said anything yet"
    replica.is_fetched(1, 2)
    assert replica.high_watermark == 0
    replica.is_fetched(2, 3)
    assert replica.high_watermark == 2
    replica.is_fetched(1, 3)
    assert replica.high_watermark == 3


def test_it_never_goes_back() -> None:
    replica = Replica()
    replica.leads()
    replica.writes(b"a", b"b")
    for follower in (1, 2):
        replica.is_fetched(follower, 2)
    replica.is_fetched(1, 1)
    assert replica.high_watermark == 2


def test_a_lone_replica_commits_as_it_writes() -> None:
    replica = Replica(min_in_sync=2)
    replica.takes(PartitionState((0,), (0,), 0, 0, 0))
    replica.partition.append(memoryview(batch_of(b"a")), ALL, BEGINNING)
    assert replica.high_watermark == 1, "without waiting for the end of the step"


def test_below_the_minimum_the_watermark_stands_still() -> None:
    replica = Replica(min_in_sync=2)
    replica.leads(isr=(0,))
    replica.writes(b"a", acks=1)
    replica.is_fetched(1, 1)
    assert replica.high_watermark == 0 and not replica.partition.can_commit
    with pytest.raises(KafkaError) as refused:
        replica.writes(b"b", acks=ALL)
    assert refused.value.code == ErrorCode.NOT_ENOUGH_REPLICAS
    replica.partition.isr_answered(wish := asks(replica), granted(wish), BEGINNING)
    replica.settle()
    assert replica.partition.in_sync == (0, 1) and replica.high_watermark == 1


def test_the_minimum_is_never_more_than_there_are() -> None:
    replica = Replica(min_in_sync=5)
    replica.leads()
    assert replica.partition.min_in_sync == 3


def test_who_is_about_to_join_is_waited_for() -> None:
    """Else, under constant writes, nobody would ever reach the watermark."""
    replica = Replica()
    replica.leads(isr=(0,))
    replica.writes(b"a")
    assert replica.high_watermark == 1
    replica.is_fetched(1, 1)
    replica.writes(b"b")
    assert replica.high_watermark == 1
    replica.is_fetched(1, 2)
    assert replica.high_watermark == 2


def test_who_was_about_to_join_and_is_fenced_is_not_waited_for() -> None:
    replica = Replica()
    replica.leads(isr=(0,))
    replica.is_fetched(1, 0)
    replica.writes(b"a")
    assert replica.high_watermark == 0
    del replica.surroundings.active[1]
    replica.partition.look_at_followers(BEGINNING)
    replica.settle()
    assert replica.high_watermark == 1


def test_nothing_is_believed_of_followers_from_an_earlier_epoch() -> None:
    replica = Replica()
    replica.leads()
    for follower in (1, 2):
        replica.is_fetched(follower, 0)
    replica.leads(epoch=1, partition_epoch=1)
    replica.writes(b"a")
    replica.is_fetched(1, 1)
    assert replica.high_watermark == 0


def test_with_flush_messages_the_leader_itself_counts_what_is_on_disk() -> None:
    replica = Replica(flush=True)
    replica.leads()
    replica.writes(b"a")
    for follower in (1, 2):
        replica.is_fetched(follower, 1)
    assert replica.high_watermark == 0
    files, end = replica.partition.log.files_to_flush()
    replica.disk.flush(files)
    replica.partition.log.flushed(end)
    replica.partition.note_grown()
    replica.settle()
    assert replica.high_watermark == 1


# Wishes.


def test_who_is_late_is_to_leave_but_counts_until_the_controller_says_so() -> None:
    replica = Replica()
    replica.leads()
    replica.writes(b"a", now=BEGINNING)
    replica.is_fetched(1, 1)
    assert replica.partition.isr_wish(later(LAG_MS)) is None
    wish = asks(replica, LAG_MS + 1)
    assert wish.isr == ((0, 10), (1, 11)) and wish.partition_epoch == 0
    assert replica.high_watermark == 0
    replica.partition.isr_answered(wish, granted(wish), BEGINNING)
    replica.settle()
    assert replica.high_watermark == 1 and replica.partition.partition_epoch == 1


def test_who_joins_counts_as_soon_as_it_is_asked_for() -> None:
    """The controller may have said yes already, and then it may be the next leader."""
    replica = Replica()
    replica.leads(isr=(0,))
    replica.is_fetched(1, 0)
    assert replica.looked_at
    asks(replica)
    replica.partition.look_at_followers(later(10 * LAG_MS))
    replica.writes(b"a", now=later(10 * LAG_MS))
    assert replica.high_watermark == 0


def test_a_follower_joins_only_when_it_has_what_earlier_leaders_may_have_committed() -> None:
    """The new leader's own watermark may be far behind what its predecessor told consumers."""
    replica = Replica()
    replica.follows(leader=1)
    replica.gets(b"a", b"b", b"c", watermark=1)
    assert replica.high_watermark == 1
    replica.leads(epoch=1, partition_epoch=1, isr=(0, 1))
    replica.is_fetched(2, 2)
    assert replica.partition.isr_wish(BEGINNING) is None, "record 2 may be committed, and broker 2 lacks it"
    replica.is_fetched(2, 3)
    assert asks(replica).members == (0, 1, 2)


def test_one_wish_at_a_time() -> None:
    replica = Replica()
    replica.leads(isr=(0,))
    replica.is_fetched(1, 0)
    asks(replica)
    replica.is_fetched(2, 0)
    assert replica.partition.isr_wish(BEGINNING) is None


def test_a_wish_nobody_answered_is_asked_again_as_it_was() -> None:
    replica = Replica()
    replica.leads(isr=(0,))
    replica.is_fetched(1, 0)
    wish = asks(replica)
    replica.is_fetched(2, 0)
    replica.partition.isr_unanswered(wish)
    assert asks(replica) is wish


@pytest.mark.parametrize("error", [ErrorCode.INELIGIBLE_REPLICA, ErrorCode.OPERATION_NOT_ATTEMPTED])
def test_a_wish_that_was_not_granted_is_dropped(error: ErrorCode) -> None:
    replica = Replica()
    replica.leads(isr=(0,))
    replica.is_fetched(1, 0)
    wish = asks(replica)
    replica.partition.isr_answered(wish, IsrOutcome(TOPIC_ID, 0, error), BEGINNING)
    assert replica.partition.in_sync == (0,)
    assert asks(replica) is not wish


@pytest.mark.parametrize("error", [ErrorCode.INVALID_UPDATE_VERSION, ErrorCode.FENCED_LEADER_EPOCH])
def test_a_wish_that_came_too_late_stays_until_the_metadata_tells(error: ErrorCode) -> None:
    replica = Replica()
    replica.leads(isr=(0,))
    replica.is_fetched(1, 0)
    wish = asks(replica)
    replica.partition.isr_answered(wish, IsrOutcome(TOPIC_ID, 0, error), BEGINNING)
    assert replica.partition.isr_wish(BEGINNING) is wish, "a controller that was deposed may have said so"
    replica.partition.isr_answered(wish, IsrOutcome(TOPIC_ID, 0, error), BEGINNING)
    replica.leads(partition_epoch=2, isr=(0, 1))
    assert replica.partition.in_sync == (0, 1)
    replica.is_fetched(2, 0)
    assert asks(replica).members == (0, 1, 2)


def test_an_answer_that_the_metadata_has_overtaken_counts_for_nothing() -> None:
    replica = Replica()
    replica.leads(isr=(0,))
    replica.is_fetched(1, 0)
    wish = asks(replica)
    replica.leads(partition_epoch=5, isr=(0, 2))
    replica.partition.isr_answered(wish, granted(wish), BEGINNING)
    assert (replica.partition.in_sync, replica.partition.partition_epoch) == ((0, 2), 5)


def test_who_caught_up_while_another_joined_joins_next() -> None:
    """The metadata may tell of the first before the controller's answer does, and where nobody writes the second has
    said all that it will say."""
    replica = Replica()
    replica.leads(isr=(0,))
    replica.is_fetched(1, 0)
    asks(replica)
    replica.is_fetched(2, 0)
    replica.looked_at.clear()
    replica.leads(partition_epoch=1, isr=(0, 1))
    assert replica.looked_at == [replica.partition]
    assert asks(replica).members == (0, 1, 2)


def test_metadata_that_is_older_than_the_controllers_answer_is_left_aside() -> None:
    replica = Replica()
    replica.leads(isr=(0,))
    replica.is_fetched(1, 0)
    wish = asks(replica)
    replica.partition.isr_answered(wish, granted(wish, partition_epoch=3), BEGINNING)
    replica.leads(partition_epoch=2, isr=(0,))
    assert replica.partition.in_sync == (0, 1)


def test_a_leader_that_was_elected_uncleanly_says_that_it_works() -> None:
    replica = Replica()
    replica.leads(isr=(0,), recovering=True)
    wish = asks(replica)
    assert wish.members == (0,)
    replica.partition.isr_answered(wish, granted(wish), BEGINNING)
    assert replica.partition.isr_wish(BEGINNING) is None


# Who may fetch.


def test_only_replicas_of_this_life_under_this_epoch_are_followers() -> None:
    replica = Replica()
    replica.leads(epoch=4)

    def refused(broker_id: int, broker_epoch: int, leader_epoch: int) -> ErrorCode:
        with pytest.raises(KafkaError) as error:
            replica.partition.check_follower(broker_id, broker_epoch, leader_epoch)
        return error.value.code

    assert refused(1, 11, 3) == ErrorCode.FENCED_LEADER_EPOCH
    assert refused(1, 11, 5) == ErrorCode.UNKNOWN_LEADER_EPOCH
    assert refused(5, 15, 4) == ErrorCode.UNKNOWN_LEADER_EPOCH
    assert refused(5, 15, -1) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert refused(1, 9, 4) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    replica.follows(epoch=5, partition_epoch=1)
    assert refused(1, 11, 5) == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_the_low_watermark_waits_for_those_who_are_alive() -> None:
    replica = Replica()
    replica.leads()
    replica.writes(b"a", b"b", b"c")
    starts: list[Offset] = []
    for start in (0, 2):
        for follower in (1, 2):
            replica.is_fetched(follower, 3, start_offset=start if follower == 1 else 0)
        replica.partition.advance_start_offset(2)
        starts.append(replica.partition.low_watermark)
    assert starts == [0, 0]
    del replica.surroundings.active[2]
    assert replica.partition.low_watermark == 2


def test_a_leader_whose_log_comes_back_still_knows_its_epoch() -> None:
    """It was elected while its disk was full, and has written nothing since. A follower with records of an epoch in
    between has to be told where they part; else it asks for ever."""
    replica = Replica()
    replica.leads()
    replica.writes(b"a")
    replica.follows(epoch=1, partition_epoch=1)
    replica.partition.fail("no space left", full=True)
    replica.leads(epoch=2, partition_epoch=2)
    replica.partition.revive(BEGINNING)
    assert replica.partition.log.end_offset_for_epoch(1) == (0, 1)


@pytest.mark.parametrize("was_opened", [True, False])
def test_who_joins_has_all_that_the_leader_found_when_its_disk_had_room_again(was_opened: bool) -> None:
    """It was elected though its log could not be opened, and that seemed to end at 0."""
    first = Replica(min_in_sync=2)
    first.leads()
    for _ in range(10):
        first.writes(b"committed")
    log = first.partition.log
    if not was_opened:
        log = Log.unopened(log.directory, first.disk, log.settings, 0)
    second = Replica(min_in_sync=2, log=log)
    if not was_opened:
        second.partition.fail("no space left", full=True)
    second.leads(epoch=7, partition_epoch=3, isr=(0,))
    if not was_opened:
        second.partition.revive(BEGINNING)
        second.settle()
    second.is_fetched(1, 5)
    assert second.partition.isr_wish(later(0)) is None
    second.is_fetched(1, 10)
    wish = second.partition.isr_wish(later(0))
    assert wish is not None and wish.members == (0, 1)
