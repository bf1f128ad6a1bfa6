"""The plan for one leader: what is asked, what of it moved, what steps aside, and when it is asked again."""

from klamm.errors import ErrorCode
from klamm.partition.fetching import FetchAsk, Fetched, FetchPlan, FetchSettings
from tests.partition.replica import BEGINNING, TOPIC_ID, Replica, batch_of, later

SESSION = 77


def planned(*replicas: Replica) -> FetchPlan:
    plan = FetchPlan(1, FetchSettings())
    for replica in replicas:
        replica.follows()
        plan.add(replica.partition)
    return plan


def asked(plan: FetchPlan, milliseconds: float = 0) -> FetchAsk:
    ask = plan.next_ask(0, 10, later(milliseconds))
    assert ask is not None
    return ask


def indexes(ask: FetchAsk) -> list[int]:
    return [position.partition_index for position in ask.positions]


def fetched(index: int, *values: bytes, offset: int = 0, error: ErrorCode = ErrorCode.NONE, start: int = 0) -> Fetched:
    return Fetched(TOPIC_ID, index, error, 0, start, batch_of(*values, offset=offset) if values else b"")


def answer(plan: FetchPlan, *said: Fetched, session: int = SESSION, milliseconds: float = 0) -> None:
    if plan.answered(plan.in_flight[0], session, ErrorCode.NONE, later(milliseconds)):
        for each in said:
            plan.take(each, later(milliseconds))


def test_the_first_fetch_names_everything_and_the_next_ones_what_moved() -> None:
    replicas = [Replica(index=index) for index in range(3)]
    plan = planned(*replicas)
    first = asked(plan)
    assert indexes(first) == [0, 1, 2] and (first.session_id, first.session_epoch) == (0, 0)
    answer(plan, fetched(1, b"a"))
    second = asked(plan)
    assert [(each.partition_index, each.fetch_offset, each.last_fetched_epoch) for each in second.positions] == [
        (1, 1, 0)
    ]
    assert (second.session_id, second.session_epoch) == (SESSION, 1)
    answer(plan)
    assert indexes(third := asked(plan)) == [] and third.session_epoch == 2


def test_a_broker_that_was_registered_again_names_everything_once_more() -> None:
    """The leader believes that a follower has something if it says so in its present life, and an unmoved partition is
    not spoken of in a session: it would never be in sync again."""
    plan = planned(Replica(index=0), Replica(index=1))
    asked(plan)
    answer(plan, fetched(0, b"a"), fetched(1))
    again = plan.next_ask(0, 11, BEGINNING)
    assert again is not None
    assert (again.session_id, again.session_epoch, indexes(again)) == (0, 0, [0, 1])


def test_one_fetch_at_a_time() -> None:
    plan = planned(Replica())
    asked(plan)
    assert plan.next_ask(0, 10, BEGINNING) is None and plan.next_deadline_ms is None


def test_who_is_new_does_not_wait_with_the_fetch_that_waits() -> None:
    plan = planned(Replica(index=0))
    asked(plan)
    newer = Replica(index=1)
    newer.follows()
    plan.add(newer.partition)
    assert plan.next_ask(0, 10, BEGINNING) is None, "there is no session yet that it could be added to"
    answer(plan)
    first = asked(plan)
    assert indexes(first) == [1]
    newest = Replica(index=2)
    newest.follows()
    plan.add(newest.partition)
    second = asked(plan)
    assert indexes(second) == [2] and second.session_epoch == first.session_epoch + 1
    late = Replica(index=3)
    late.follows()
    plan.add(late.partition)
    assert plan.next_ask(0, 10, BEGINNING) is None, "two at most"
    answer(plan, fetched(1, b"a"))
    answer(plan, fetched(2, b"b"))
    assert [each.partition.log.end_offset for each in (newer, newest)] == [1, 1]


def test_a_second_fetch_of_a_session_that_is_gone_counts_for_nothing() -> None:
    replicas = [Replica(index=index) for index in range(2)]
    plan = planned(replicas[0])
    asked(plan)
    answer(plan)
    asked(plan)
    replicas[1].follows()
    plan.add(replicas[1].partition)
    asked(plan)
    assert not plan.answered(plan.in_flight[0], 0, ErrorCode.FETCH_SESSION_ID_NOT_FOUND, BEGINNING)
    assert plan.next_ask(0, 10, BEGINNING) is None
    answer(plan, fetched(0, b"a"))
    assert replicas[0].partition.log.end_offset == 0
    assert indexes(asked(plan)) == [0, 1]


def test_a_leader_without_room_for_a_session_is_told_everything_each_time() -> None:
    replicas = [Replica(index=index) for index in range(2)]
    plan = planned(*replicas)
    asked(plan)
    answer(plan, fetched(0, b"a"), session=0)
    assert replicas[0].partition.log.end_offset == 1
    again = asked(plan)
    assert indexes(again) == [0, 1] and (again.session_id, again.session_epoch) == (0, 0)


def test_a_partition_in_error_steps_aside_and_the_others_go_on() -> None:
    plan = planned(Replica(index=0), Replica(index=1))
    asked(plan)
    answer(plan, fetched(0, error=ErrorCode.UNKNOWN_LEADER_EPOCH))
    without = asked(plan)
    assert without.forgotten == [(TOPIC_ID, 0)] and indexes(without) == []
    answer(plan)
    assert indexes(asked(plan, 19)) == []
    answer(plan)
    assert indexes(asked(plan, 20)) == [0]


def test_who_stood_aside_does_not_wait_with_the_fetch_that_waits() -> None:
    """A new topic whose leader hears of it after its followers: they ask again in a moment, not after a long poll."""
    plan = planned(Replica(index=0), Replica(index=1))
    asked(plan)
    answer(plan, fetched(1, error=ErrorCode.UNKNOWN_TOPIC_ID))
    waiting = asked(plan)
    assert indexes(waiting) == [] and plan.next_ask(0, 10, BEGINNING) is None
    assert plan.next_deadline_ms == later(20).monotonic_ms
    assert indexes(asked(plan, 20)) == [1] and len(plan.in_flight) == 2
    assert plan.next_deadline_ms is None


def test_the_pauses_after_errors_grow_up_to_the_setting() -> None:
    plan = planned(Replica())
    at, pauses = 0.0, []
    for _ in range(8):
        asked(plan, at)
        answer(plan, fetched(0, error=ErrorCode.UNKNOWN_LEADER_EPOCH), milliseconds=at)
        due_ms = plan.next_deadline_ms
        assert due_ms is not None
        pauses.append(due_ms - later(at).monotonic_ms)
        at += pauses[-1]
    assert pauses == [20, 40, 80, 160, 320, 640, 1_000, 1_000]


def test_when_all_stand_aside_nothing_is_asked_until_one_is_due() -> None:
    plan = planned(Replica())
    asked(plan)
    answer(plan, fetched(0, error=ErrorCode.NOT_LEADER_OR_FOLLOWER))
    assert plan.next_ask(0, 10, BEGINNING) is None
    assert plan.next_deadline_ms == later(20).monotonic_ms
    plan.try_again()
    assert indexes(asked(plan)) == [0]


def test_a_leader_that_is_lost_is_asked_for_everything_after_a_while() -> None:
    plan = planned(Replica(index=0), Replica(index=1))
    asked(plan)
    answer(plan)
    asked(plan)
    plan.lost(plan.in_flight[0], BEGINNING)
    assert plan.next_ask(0, 10, BEGINNING) is None
    assert plan.next_deadline_ms == later(20).monotonic_ms
    again = asked(plan, 20)
    assert indexes(again) == [0, 1] and again.session_epoch == 0


def test_a_session_the_leader_forgot_is_begun_anew_at_once() -> None:
    plan = planned(Replica())
    asked(plan)
    answer(plan)
    asked(plan)
    assert not plan.answered(plan.in_flight[0], 0, ErrorCode.FETCH_SESSION_ID_NOT_FOUND, BEGINNING)
    assert indexes(asked(plan)) == [0]


def test_an_answer_for_an_epoch_that_is_over_is_ignored() -> None:
    replica = Replica()
    plan = planned(replica)
    asked(plan)
    replica.follows(leader=1, epoch=1, partition_epoch=1)
    plan.add(replica.partition)
    answer(plan, fetched(0, b"a"))
    assert replica.partition.log.end_offset == 0
    (position,) = asked(plan).positions
    assert position.leader_epoch == 1


def test_a_partition_that_went_elsewhere_is_forgotten_there() -> None:
    replicas = [Replica(index=index) for index in range(2)]
    plan = planned(*replicas)
    asked(plan)
    plan.remove(replicas[0].partition)
    answer(plan, fetched(0, b"a"))
    assert replicas[0].partition.log.end_offset == 0
    assert asked(plan).forgotten == [(TOPIC_ID, 0)]


def test_a_log_that_ends_before_the_leaders_begins_starts_over_there() -> None:
    replica = Replica()
    plan = planned(replica)
    asked(plan)
    answer(plan, fetched(0, error=ErrorCode.OFFSET_OUT_OF_RANGE, start=40))
    (position,) = asked(plan).positions
    assert position.fetch_offset == position.start_offset == 40 and position.last_fetched_epoch == -1


def test_a_log_that_parted_is_cut_and_says_so() -> None:
    replica = Replica()
    plan = planned(replica)
    asked(plan)
    answer(plan, fetched(0, b"a", b"b"))
    asked(plan)
    assert plan.answered(plan.in_flight[0], SESSION, ErrorCode.NONE, BEGINNING)
    parted = Fetched(TOPIC_ID, 0, ErrorCode.NONE, 0, 0, b"", diverging_epoch=0, diverging_end=0)
    assert plan.take(parted, BEGINNING) is replica.partition
    assert replica.partition.log.end_offset == 0


def test_damaged_records_are_asked_for_again_after_a_while() -> None:
    replica = Replica()
    plan = planned(replica)
    asked(plan)
    damaged = fetched(0, b"a")
    damaged.records[-1] ^= 1  # type: ignore[index]
    answer(plan, damaged)
    assert plan.next_ask(0, 10, BEGINNING) is None
    assert asked(plan, 20).positions[0].fetch_offset == 0


def test_what_has_to_be_on_disk_is_on_disk_before_the_next_fetch() -> None:
    replica = Replica(flush=True)
    plan = planned(replica)
    asked(plan)
    answer(plan, fetched(0, b"a"))
    assert plan.waits_for_disk and plan.next_ask(0, 10, BEGINNING) is None and plan.next_deadline_ms is None
    replica.partition.log.flushed(replica.partition.log.files_to_flush()[1])
    assert asked(plan).positions[0].fetch_offset == 1
