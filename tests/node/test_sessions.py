"""Trap 29, fetch sessions (KIP-227): a client names its partitions once and later hears only of what changed."""

from typing import Any

import pytest

from klamm.broker.sessions import Position
from klamm.errors import ErrorCode
from klamm.handlers.fetch_answer import FetchAnswer
from klamm.partition.partition import Partition
from tests.node.requests import NAMED, create, delete, delete_records, fetch_of, produce, send, values_in
from tests.node.world import Client, World

SLOTS_FREE_AFTER_MS = 120_000


@pytest.fixture
def world() -> World:
    world = World()
    create(world.connect(), "orders", 3)
    return world


@pytest.fixture
def client(world: World) -> Client:
    return world.connect()


def opened(client: Client, positions: list[tuple[Any, int, int]], version: int = NAMED) -> int:
    """A new session at these positions; its id."""
    answer = client.ask(fetch_of(positions, session=(0, 0)), version)
    assert answer.error_code == ErrorCode.NONE and answer.session_id > 0
    session_id: int = answer.session_id
    return session_id


def told(response: Any) -> list[int]:
    """The partitions a response speaks of."""
    return [partition.partition_index for topic in response.responses for partition in topic.partitions]


ALL_THREE = [("orders", 0, 0), ("orders", 1, 0), ("orders", 2, 0)]


def test_a_new_session_tells_everything_once(client: Client) -> None:
    first = client.ask(fetch_of(ALL_THREE, session=(0, 0)), NAMED)
    assert told(first) == [0, 1, 2]
    again = client.ask(fetch_of(session=(first.session_id, 1)), NAMED)
    assert again.session_id == first.session_id and told(again) == []


def test_only_what_changed_is_told(client: Client) -> None:
    session = opened(client, ALL_THREE)
    send(client, "orders", b"news", index=1)
    answer = client.ask(fetch_of(session=(session, 1)), NAMED)
    assert told(answer) == [1] and values_in(answer.responses[0].partitions[0]) == [b"news"]


def test_records_are_told_again_until_the_position_moves(client: Client) -> None:
    """A client that lost an answer asks again: the session may not believe that it was read."""
    session = opened(client, ALL_THREE)
    send(client, "orders", b"news", index=1)
    for epoch in (1, 2):
        assert told(client.ask(fetch_of(session=(session, epoch)), NAMED)) == [1]
    assert told(client.ask(fetch_of([("orders", 1, 1)], session=(session, 3)), NAMED)) == []
    assert told(client.ask(fetch_of(session=(session, 4)), NAMED)) == []


def test_a_moved_log_start_is_told_without_records(client: Client) -> None:
    send(client, "orders", b"a")
    session = opened(client, [("orders", 0, 1)])
    client.ask(delete_records("orders", before=1))
    (partition,) = client.ask(fetch_of(session=(session, 1)), NAMED).responses[0].partitions
    assert partition.log_start_offset == 1 and values_in(partition) == []
    assert told(client.ask(fetch_of(session=(session, 2)), NAMED)) == []


def test_an_error_is_told_every_time(client: Client) -> None:
    session = opened(client, [("orders", 0, 0), ("orders", 9, 0)])
    for epoch in (1, 2):
        answer = client.ask(fetch_of(session=(session, epoch)), NAMED)
        assert told(answer) == [9]
        assert answer.responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_partitions_can_be_added(client: Client) -> None:
    session = opened(client, [("orders", 0, 0)])
    assert told(client.ask(fetch_of([("orders", 2, 0)], session=(session, 1)), NAMED)) == [2]
    send(client, "orders", b"x", index=2)
    assert told(client.ask(fetch_of(session=(session, 2)), NAMED)) == [2]


def test_forgotten_partitions_are_not_told_of(client: Client) -> None:
    session = opened(client, ALL_THREE)
    send(client, "orders", b"x", index=1)
    send(client, "orders", b"y", index=2)
    answer = client.ask(fetch_of(session=(session, 1), forgotten=[("orders", 1)]), NAMED)
    assert told(answer) == [2]
    send(client, "orders", b"x", index=1)
    assert 1 not in told(client.ask(fetch_of(session=(session, 2)), NAMED))


def test_a_forgotten_partition_can_come_back(client: Client) -> None:
    session = opened(client, ALL_THREE)
    client.ask(fetch_of(session=(session, 1), forgotten=[("orders", 1)]), NAMED)
    assert told(client.ask(fetch_of([("orders", 1, 0)], session=(session, 2)), NAMED)) == [1]


def test_a_session_wakes_its_long_poll(world: World, client: Client) -> None:
    session = opened(client, ALL_THREE)
    writer = world.connect()
    client.post(fetch_of(session=(session, 1), wait_ms=500), version=NAMED)
    assert client.answers == []
    send(writer, "orders", b"news", index=2)
    assert told(client.take()) == [2]
    client.post(fetch_of([("orders", 2, 1)], session=(session, 2), wait_ms=500), version=NAMED)
    world.advance(499)
    assert client.answers == []
    world.advance(1)
    assert told(client.take()) == []


def test_a_session_waits_for_min_bytes(world: World, client: Client) -> None:
    session = opened(client, ALL_THREE)
    writer = world.connect()
    client.post(fetch_of(session=(session, 1), wait_ms=500, min_bytes=150), version=NAMED)
    send(writer, "orders", b"x" * 20, index=0)
    assert client.answers == []
    send(writer, "orders", b"x" * 20, index=2)
    assert told(client.take()) == [0, 2]


# Errors.


def test_an_unknown_session(client: Client) -> None:
    answer = client.ask(fetch_of(session=(4711, 1)), NAMED)
    assert answer.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND and answer.responses == []


@pytest.mark.parametrize("epoch", [2, 5, 2**31 - 1])
def test_a_wrong_epoch(client: Client, epoch: int) -> None:
    session = opened(client, ALL_THREE)
    answer = client.ask(fetch_of(session=(session, epoch)), NAMED)
    assert answer.error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert client.ask(fetch_of(session=(session, 1)), NAMED).error_code == ErrorCode.NONE, "the session lives on"


def test_an_epoch_that_was_used(client: Client) -> None:
    session = opened(client, ALL_THREE)
    client.ask(fetch_of(session=(session, 1)), NAMED)
    assert client.ask(fetch_of(session=(session, 1)), NAMED).error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH


def test_names_and_ids_do_not_mix(client: Client) -> None:
    named = opened(client, ALL_THREE)
    assert client.ask(fetch_of(session=(named, 1)), 13).error_code == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
    topic_id = create(client, "by-id")
    by_id = opened(client, [(topic_id, 0, 0)], 13)
    assert client.ask(fetch_of(session=(by_id, 1)), NAMED).error_code == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


# Ends.


def test_the_final_epoch_closes_it(world: World, client: Client) -> None:
    session = opened(client, ALL_THREE)
    send(client, "orders", b"x")
    answer = client.ask(fetch_of(ALL_THREE, session=(session, -1)), NAMED)
    assert answer.session_id == 0 and told(answer) == [0, 1, 2], "answered, without a session"
    assert client.ask(fetch_of(session=(session, 1)), NAMED).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert len(world.broker.sessions) == 0


def test_a_new_session_takes_the_place_of_the_one_it_names(world: World, client: Client) -> None:
    session = opened(client, ALL_THREE)
    second = client.ask(fetch_of(ALL_THREE, session=(session, 0)), NAMED).session_id
    assert second not in (0, session) and len(world.broker.sessions) == 1


def test_a_closed_session_leaves_nothing_at_the_partitions(world: World, client: Client) -> None:
    session = opened(client, ALL_THREE)
    assert world.partition("orders", 1).sessions
    client.ask(fetch_of(session=(session, -1)), NAMED)
    assert not any(world.partition("orders", index).sessions for index in range(3))


def test_no_room_no_session(client: Client) -> None:
    """Over the limit a client is served like everybody, just without a session."""
    world = World(max_incremental_fetch_session_cache_slots="2")
    client = world.connect()
    create(client, "orders", 3)
    opened(client, ALL_THREE)
    opened(client, ALL_THREE)
    third = client.ask(fetch_of(ALL_THREE, session=(0, 0)), NAMED)
    assert third.session_id == 0 and told(third) == [0, 1, 2]
    assert len(world.broker.sessions) == 2


def test_the_session_that_was_silent_longest_makes_room() -> None:
    world = World(max_incremental_fetch_session_cache_slots="2")
    client = world.connect()
    create(client, "orders", 3)
    busy, silent = opened(client, ALL_THREE), opened(client, ALL_THREE)
    world.advance(SLOTS_FREE_AFTER_MS)
    client.ask(fetch_of(session=(busy, 1)), NAMED)
    opened(client, ALL_THREE)
    assert client.ask(fetch_of(session=(silent, 1)), NAMED).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert client.ask(fetch_of(session=(busy, 2)), NAMED).error_code == ErrorCode.NONE


# Topics that go.


def test_a_deleted_topic_is_told_as_an_error(world: World, client: Client) -> None:
    topic_id = create(client, "gone")
    session = opened(client, [(topic_id, 0, 0)], 13)
    waiting = world.connect()
    waiting.post(fetch_of(session=(session, 1), wait_ms=500), version=13)
    delete(client, "gone")
    (partition,) = waiting.take().responses[0].partitions
    assert partition.error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_a_session_by_name_goes_on_with_the_topic_made_anew(client: Client) -> None:
    create(client, "again")
    send(client, "again", b"old")
    session = opened(client, [("again", 0, 0)])
    delete(client, "again")
    create(client, "again")
    client.ask(fetch_of(session=(session, 1)), NAMED)
    send(client, "again", b"new")
    (partition,) = client.ask(fetch_of([("again", 0, 0)], session=(session, 2)), NAMED).responses[0].partitions
    assert values_in(partition) == [b"new"]


# Work follows what changed.


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The partition of every position that a fetch looked at: each look finds its partition first."""
    seen: list[int] = []
    found = FetchAnswer._found

    def counting(answer: FetchAnswer, position: Position) -> Partition:
        seen.append(position.index)
        return found(answer, position)

    monkeypatch.setattr(FetchAnswer, "_found", counting)
    return seen


def test_the_work_of_a_fetch_follows_what_changed(looks: list[int]) -> None:
    """A thousand partitions in the session, one of them with news: one is looked at, and a few times."""
    world = World()
    client, writer = world.connect(), world.connect()
    create(client, "wide", 1_000)
    session = opened(client, [("wide", index, 0) for index in range(1_000)])
    looks.clear()
    client.post(fetch_of(session=(session, 1), wait_ms=500), version=NAMED)
    assert looks == []
    send(writer, "wide", b"news", index=617)
    assert told(client.take()) == [617]
    assert set(looks) == {617} and len(looks) <= 3
    looks.clear()
    client.post(fetch_of([("wide", 617, 1)], session=(session, 2), wait_ms=500), version=NAMED)
    world.advance(500)
    assert told(client.take()) == []
    assert set(looks) <= {617} and len(looks) <= 3


def test_a_busy_partition_does_not_starve_the_others(client: Client) -> None:
    """With room for one batch an answer, three partitions with data take turns."""
    for index in range(3):
        for _ in range(3):
            client.ask(produce("orders", b"x" * 1_000, index=index), NAMED)
    answer = client.ask(fetch_of(ALL_THREE, session=(0, 0), max_bytes=100), NAMED)
    session, seen = answer.session_id, [_with_records(answer)]
    for epoch in range(1, 6):
        seen.append(_with_records(client.ask(fetch_of(session=(session, epoch), max_bytes=100), NAMED)))
    assert all(len(each) == 1 for each in seen), "one batch each time"
    assert {index for each in seen for index in each} == {0, 1, 2}


def _with_records(response: Any) -> list[int]:
    return [each.partition_index for topic in response.responses for each in topic.partitions if each.records]
