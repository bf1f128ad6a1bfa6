"""S12 to S22 with three brokers in one process: leading, following, in sync, committed, failed over, back again."""

from random import Random

import pytest

from klamm.errors import ErrorCode
from tests.broker.world import World

LAG_MS = 30_000


def world_with_topic(*placement: list[int], brokers: int = 3, min_in_sync: int = 2, **configs: str) -> World:
    world = World(brokers)
    configs = {"min_insync_replicas": str(min_in_sync), **configs}
    world.create_topic(*(placement or ([0, 1, 2],)), **configs)
    world.settle_all()
    return world


def error_of(answers: list) -> ErrorCode:  # type: ignore[type-arg]
    (answer,) = answers
    return ErrorCode(answer.error_code)


# Following.


def test_followers_hold_what_the_leader_holds_at_the_same_offsets() -> None:
    world = world_with_topic()
    answers = [world[0].produce(b"a", b"b"), world[0].produce(b"c")]
    world.settle_all()
    assert [error_of(each) for each in answers] == [ErrorCode.NONE, ErrorCode.NONE]
    for number in range(3):
        assert world[number].records() == [(0, 0, b"a"), (1, 0, b"b"), (2, 0, b"c")]


def test_a_write_is_acknowledged_when_all_in_sync_have_it_and_not_before() -> None:
    world = world_with_topic()
    answers = world[0].produce(b"a")
    assert not answers
    world.settle_all(deaf=frozenset({2}))
    assert not answers and world[0].partition().high_watermark == 0, "one of three is missing"
    world.settle_all()
    assert error_of(answers) == ErrorCode.NONE
    assert world[0].partition().high_watermark == 1


def test_a_write_wakes_the_waiting_fetches_of_followers_in_the_same_step() -> None:
    world = world_with_topic()
    waiting = [world[number].fetching[0] for number in (1, 2)]
    assert all(fetching.sent and fetching.response is None for fetching in waiting)
    world[0].produce(b"a")
    assert all(fetching.response is not None for fetching in waiting)


def test_a_partition_that_is_new_at_a_leader_is_fetched_while_another_fetch_waits_there() -> None:
    world = world_with_topic([0, 1, 2], [1, 0, 2])
    waiting = world[2].fetching[0]
    assert waiting.sent and waiting.response is None
    world.controller.elect(1, 0)
    for number in (0, 2):
        world[number].follow_all()
    second = world[2].fetching_next[0]
    assert [position.partition_index for position in second.ask.positions] == [1]
    world[2].bring_fetch(0)
    assert waiting.response is not None and second.response is not None, "and the first waits no longer"


def test_a_fetch_speaks_only_of_the_partitions_that_moved() -> None:
    world = world_with_topic(*[[0, 1, 2]] * 50)
    world[0].produce(b"a", index=7)
    world[1].bring_answer(0)
    fetching = world[1].fetching[0]
    assert [position.partition_index for position in fetching.ask.positions] == [7]
    (topic,) = fetching.request.topics
    assert len(topic.partitions) == 1


def test_the_followers_learn_the_watermark_with_the_next_answer() -> None:
    world = world_with_topic()
    world[0].produce(b"a")
    world.settle_all()
    assert world[1].partition().high_watermark == 0
    world.advance(500)
    world.settle_all()
    assert world[1].partition().high_watermark == world[2].partition().high_watermark == 1


def test_followers_take_no_writes_and_say_who_does() -> None:
    world = world_with_topic([1, 0, 2])
    (answer,) = world[0].produce(b"a")
    assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert (answer.current_leader.leader_id, answer.current_leader.leader_epoch) == (1, 0)


def test_with_flush_messages_a_follower_asks_for_more_when_it_has_what_it_got_on_disk() -> None:
    world = world_with_topic(flush_messages="1")
    answers = world[0].produce(b"a")
    world[0].flush()
    for number in (1, 2):
        world[number].bring_answer(0)
        assert 0 not in world[number].fetching, "nothing may be said of it before it is on disk"
        world[number].flush()
        assert world[number].fetching[0].ask.positions[0].fetch_offset == 1
    assert not answers
    world.settle_all()
    assert error_of(answers) == ErrorCode.NONE


def test_a_power_loss_takes_nothing_that_was_acknowledged_with_flush_messages() -> None:
    world = world_with_topic(flush_messages="1")
    answers = [world[0].produce(b"%d" % number) for number in range(5)]
    world.settle_all()
    assert all(error_of(each) == ErrorCode.NONE for each in answers)
    for number in range(3):
        world[number].lose_power(Random(number))
    for number in range(3):
        world.restart(number)
    world.advance(1_000)
    world.settle_all()
    for number in range(3):
        assert [value for _, _, value in world[number].records()] == [b"0", b"1", b"2", b"3", b"4"]


# In sync.


def test_a_follower_that_does_not_keep_up_leaves_and_comes_back() -> None:
    world = world_with_topic()
    answers = world[0].produce(b"a")
    away = frozenset({2})
    world.settle_all(deaf=away)
    world.advance(LAG_MS / 2)
    world.settle_all(deaf=away)
    assert world.controller.state(0).isr == (0, 1, 2) and not answers
    world.advance(LAG_MS)
    world.settle_all(deaf=away)
    assert world.controller.state(0).isr == (0, 1)
    assert error_of(answers) == ErrorCode.NONE
    world.settle_all()
    world.advance(500)
    world.settle_all()
    assert set(world.controller.state(0).isr) == {0, 1, 2}


def test_a_follower_of_an_idle_partition_is_not_behind() -> None:
    """Nobody fetched anything for hours; then one record is written, and all have their time to fetch it."""
    world = world_with_topic()
    world.advance(100 * LAG_MS)
    world.settle_all()
    assert set(world.controller.state(0).isr) == {0, 1, 2}
    world[0].produce(b"a")
    world.advance(LAG_MS / 2)
    world.settle_all(deaf=frozenset({1, 2}))
    assert set(world.controller.state(0).isr) == {0, 1, 2}


def test_under_constant_writes_a_follower_that_returns_gets_in_sync() -> None:
    """Each of its fetches is a little behind, because the leader never stops."""
    world = world_with_topic(min_in_sync=1)
    away = frozenset({1, 2})
    for _ in range(4):
        world[0].produce(b"x", acks=1)
        world.advance(LAG_MS)
        world.settle_all(deaf=away)
    assert world.controller.state(0).isr == (0,)
    for number in range(100):
        world[0].produce(b"%d" % number, acks=1)
        for follower in (1, 2):
            fetching = world[follower].fetching.get(0)
            if fetching is None:
                world[follower].tick()
            elif fetching.response is not None:
                world[follower].bring_answer(0)
            elif not fetching.sent:
                world[follower].bring_fetch(0)
        if world[0].asking is not None:
            world[0].bring_wishes()
        world.advance(10)
    assert set(world.controller.state(0).isr) == {0, 1, 2}


def test_below_the_minimum_acks_all_is_refused_and_acks_one_stays_invisible_until_it_heals() -> None:
    world = world_with_topic()
    for number in (1, 2):
        world[number].kill()
        world.controller.fence(number)
    world.follow_all()
    assert world.controller.state(0).isr == (0,)
    assert error_of(world[0].produce(b"all")) == ErrorCode.NOT_ENOUGH_REPLICAS
    assert error_of(world[0].produce(b"one", acks=1)) == ErrorCode.NONE
    assert (world[0].partition().log.end_offset, world[0].partition().high_watermark) == (1, 0)
    world.restart(1)
    world.settle_all()
    world.advance(1_000)
    world.settle_all()
    assert set(world.controller.state(0).isr) == {0, 1}
    assert world[0].partition().high_watermark == 1


def test_who_waits_hears_when_there_are_too_few_replicas() -> None:
    world = world_with_topic()
    answers = world[0].produce(b"a")
    for number in (1, 2):
        world[number].kill()
        world.controller.fence(number)
    assert not answers
    world[0].follow_all()
    assert error_of(answers) == ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND


def test_a_refused_wish_is_dropped_and_an_unanswered_one_counts_until_it_is_answered() -> None:
    world = world_with_topic(min_in_sync=1)
    world[0].produce(b"a")
    world.settle_all(deaf=frozenset({1, 2}))
    world.advance(LAG_MS + 1_000)
    world.settle_all(deaf=frozenset({0, 1, 2}))
    assert world[0].asking is not None
    world[0].bring_wishes(lose_answer=True)
    assert world[0].partition().high_watermark == 0, "it does not know that it is alone in sync"
    world.advance(100)
    assert world[0].asking is not None, "it asks again"
    world[0].bring_wishes()
    assert world[0].partition().high_watermark == 0, "its partition epoch is old, the metadata will tell"
    world[0].follow_all()
    assert world[0].partition().high_watermark == 1


# Failing over.


def test_a_leader_that_dies_is_followed_by_one_that_has_all_that_was_acknowledged() -> None:
    world = world_with_topic()
    answers = world[0].produce(b"safe")
    world.settle_all()
    lost = world[0].produce(b"lost", acks=1)
    assert error_of(answers) == error_of(lost) == ErrorCode.NONE
    world[0].kill()
    world.controller.fence(0)
    world.settle_all()
    assert world.controller.state(0).leader == 1
    again = world[1].produce(b"next")
    world.advance(100)
    world.settle_all()
    assert error_of(again) == ErrorCode.NONE and again[0].base_offset == 1
    world.restart(0)
    world.settle_all()
    world.advance(1_000)
    world.settle_all()
    assert world[0].records() == world[1].records() == [(0, 0, b"safe"), (1, 1, b"next")]
    assert set(world.controller.state(0).isr) == {0, 1, 2}


def test_a_zombie_leader_acknowledges_nothing() -> None:
    world = world_with_topic()
    world.controller.fence(0)
    for number in (1, 2):
        world[number].follow_all()
    answers = world[0].produce(b"zombie")
    world.settle_all(deaf=frozenset({0}))
    new = world[1].produce(b"new")
    world.settle_all(deaf=frozenset({0}))
    world.advance(3 * LAG_MS)
    world.settle_all(deaf=frozenset({0}))
    if world[0].asking is not None:
        world[0].bring_wishes()
    assert error_of(new) == ErrorCode.NONE
    assert all(answer.error_code for answer in answers)
    assert world[0].partition().high_watermark == 0


def test_a_zombie_that_learns_the_truth_tells_its_producers_and_follows() -> None:
    world = world_with_topic()
    world.controller.fence(0)
    for number in (1, 2):
        world[number].follow_all()
    answers = world[0].produce(b"zombie")
    world[1].produce(b"new")
    world.settle_all()
    (answer,) = answers
    assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert answer.current_leader.leader_id == 1
    world.advance(1_000)
    world.settle_all()
    assert world[0].records() == [(0, 1, b"new")]


def test_histories_that_parted_twice_are_joined_by_epochs() -> None:
    """KIP-279: a follower whose last epoch the leader never saw goes back epoch by epoch."""
    world = world_with_topic(min_in_sync=1)
    world[0].produce(b"common")
    world.settle_all()
    world[0].produce(b"zero", acks=1)
    world[0].kill()
    world.controller.fence(0)
    world.follow_all()
    world[1].produce(b"one", acks=1)
    world[1].kill()
    world.controller.fence(1)
    world.follow_all()
    world[2].produce(b"two")
    world.settle_all()
    world.restart(0)
    world.restart(1)
    world.settle_all()
    world.advance(2_000)
    world.settle_all()
    assert [value for _, _, value in world[2].records()] == [b"common", b"two"]
    assert world[0].records() == world[1].records() == world[2].records()


def test_a_new_leader_does_not_say_where_the_end_is_before_it_knows() -> None:
    world = world_with_topic()
    world[0].produce(b"a")
    world.settle_all()
    assert world[1].partition().high_watermark == 0
    world[0].kill()
    world.controller.fence(0)
    world[1].follow_all()
    partition = world[1].partition()
    assert partition.is_leader and not partition.knows_its_watermark
    world.settle_all()
    world.advance(1_000)
    world.settle_all()
    assert partition.knows_its_watermark and partition.high_watermark == 1


def test_after_an_unclean_election_the_others_drop_even_what_was_committed() -> None:
    world = world_with_topic(min_in_sync=1)
    world[0].produce(b"a")
    world.settle_all(deaf=frozenset({2}))
    world.advance(LAG_MS + 1_000)
    world.settle_all(deaf=frozenset({2}))
    assert world.controller.state(0).isr == (0, 1) and world[0].partition().high_watermark == 1
    for number in (0, 1):
        world[number].kill()
        world.controller.fence(number)
    world.controller.elect_uncleanly(0, 2)
    world.settle_all()
    assert not world.controller.state(0).recovering, "the leader says that it works"
    world[2].produce(b"b")
    for number in (0, 1):
        world.restart(number)
    world.settle_all()
    world.advance(1_000)
    world.settle_all()
    for number in range(3):
        assert [value for _, _, value in world[number].records()] == [b"b"]
        assert world[number].partition().high_watermark <= 1


def test_an_earlier_life_of_a_follower_is_not_believed() -> None:
    world = world_with_topic()
    fetching = world[2].fetching[0]
    world[2].kill()
    world.restart(2)
    world.follow_all()
    answers: list = []  # type: ignore[type-arg]
    from klamm.handlers import fetch

    fetching.request.session_epoch = 0
    fetching.request.topics = world[2].fetching[0].request.topics
    world[0].ask(fetch.handle, fetching.request, 17, answers.append)
    (topic,) = answers[0].responses
    assert topic.partitions[0].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


# Beginnings.


def test_a_new_replica_begins_where_the_leader_begins() -> None:
    world = world_with_topic([0, 1], brokers=4)
    for number in range(10):
        world[0].produce(b"%d" % number)
    world.settle_all()
    world[0].partition().advance_start_offset(6)
    world[0].settle()
    world.controller.reassign(0, [0, 1, 3])
    world.settle_all()
    world.advance(1_000)
    world.settle_all()
    assert [offset for offset, _, _ in world[3].records()] == [6, 7, 8, 9]
    assert 3 in world.controller.state(0).isr


def test_the_beginning_travels_to_the_followers() -> None:
    world = world_with_topic()
    for number in range(10):
        world[0].produce(b"%d" % number)
    world.settle_all()
    world[0].partition().advance_start_offset(4)
    world[0].settle()
    world.settle_all()
    assert [world[number].partition().log.start_offset for number in range(3)] == [4, 4, 4]
    assert world[0].partition().low_watermark == 4


def test_a_replica_that_is_reassigned_away_is_given_up() -> None:
    world = world_with_topic([0, 1, 2])
    world[0].produce(b"a")
    world.settle_all()
    world.controller.reassign(0, [0, 1])
    world.settle_all()
    assert world[2].broker.partitions.get("orders", 0) is None
    assert not world[2].disk.exists("orders-0")
    (answer,) = world[2].produce(b"b")
    assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_wiped_disk_is_filled_again() -> None:
    world = world_with_topic()
    for number in range(5):
        world[0].produce(b"%d" % number)
    world.settle_all()
    world[2].kill()
    world.controller.fence(2)
    world[2].disk = type(world[2].disk)()
    world.restart(2)
    world.settle_all()
    world.advance(1_000)
    world.settle_all()
    assert world[2].records() == world[0].records() and len(world[2].records()) == 5
    assert 2 in world.controller.state(0).isr


@pytest.mark.parametrize("lost", ["request", "answer"])
def test_a_lost_fetch_begins_a_new_session(lost: str) -> None:
    world = world_with_topic()
    fetching = world[1].fetching[0]
    assert fetching.sent
    if lost == "answer":
        world[0].produce(b"a")
        assert fetching.response is not None
    world[1].lose_fetch(0)
    world.advance(100)
    world[0].produce(b"b")
    world.settle_all()
    assert world[1].records() == world[0].records()
