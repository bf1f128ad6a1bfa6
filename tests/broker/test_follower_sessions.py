"""Fetch sessions of followers: one for each, never given up for a consumer's, and hearing of every record."""

from random import Random

import pytest

from klamm.broker.sessions import Position, Sessions
from klamm.errors import ErrorCode, KafkaError
from klamm.ids import Now
from tests.broker.world import World

TOPIC_ID = b"t" * 16


def now(milliseconds: float) -> Now:
    return Now(milliseconds, 0)


def position() -> Position:
    return Position(TOPIC_ID, 0, 0, 1_000, -1, -1)


def test_a_follower_takes_the_place_of_a_consumer_and_a_consumer_that_of_nobody() -> None:
    sessions = Sessions(2, 120_000, Random(1))
    consumers = [sessions.open(True, [position()], now(number)) for number in range(2)]
    assert all(consumers) and sessions.open(True, [position()], now(2)) is None
    first = sessions.open(True, [position()], now(3), 7)
    second = sessions.open(True, [position()], now(4), 8)
    assert first is not None and second is not None and len(sessions) == 2
    assert sessions.open(True, [position()], now(5), 9) is None, "it would take another follower's"


def test_a_follower_has_one_session_the_last_it_began() -> None:
    sessions = Sessions(10, 120_000, Random(1))
    first = sessions.open(True, [position()], now(0), 7)
    second = sessions.open(True, [position()], now(1), 7)
    assert first is not None and second is not None
    assert not first.is_open and len(sessions) == 1
    assert sessions.resume(second.id, 1, True, now(2), 7) is second


def test_nobody_goes_on_with_another_ones_session() -> None:
    sessions = Sessions(10, 120_000, Random(1))
    session = sessions.open(True, [position()], now(0), 7)
    assert session is not None
    for other in (-1, 8):
        with pytest.raises(KafkaError) as refused:
            sessions.resume(session.id, 1, True, now(1), other)
        assert refused.value.code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_who_says_again_where_it_is_hears_again_what_it_was_told() -> None:
    """Its leader's epoch began anew, or an answer came when it could not take it: the watermark in it was told once."""
    held = Position(TOPIC_ID, 0, 10, 1_000, 4, 3)

    def told_after(other: Position) -> int:
        held.told_high_watermark = 9
        held.moved_to(other)
        return held.told_high_watermark

    assert told_after(Position(TOPIC_ID, 0, 12, 1_000, 4, 4)) == 9
    assert told_after(Position(TOPIC_ID, 0, 12, 1_000, 4, 4)) == -1
    assert told_after(Position(TOPIC_ID, 0, 15, 1_000, 5, 4)) == -1


def test_a_follower_is_woken_by_a_record_in_one_of_a_thousand_partitions_and_told_of_that_one() -> None:
    world = World(2)
    world.create_topic(*[[0, 1]] * 1_000)
    world.settle_all()
    fetching = world[1].fetching[0]
    assert fetching.sent and fetching.response is None
    (session,) = (found for found, _ in world[0].partition(5).follower_sessions or ())
    assert not session.active, "nothing is looked at while nothing happens"
    world[0].produce(b"a", index=5)
    assert fetching.response is not None
    (topic,) = fetching.response.responses
    assert [data.partition_index for data in topic.partitions] == [5]
