"""A connection that asks faster than it reads is paused, and nothing of what it asked is lost or answered twice."""

from typing import Any

import pytest

from klamm.node.effects import Pause, Send
from klamm.node.node import MOST_OUTGOING_BYTES, MOST_WAITING
from klamm.wire.messages.api_versions import ApiVersionsRequest
from tests.node.requests import NAMED, create, fetch, fetched, metadata, produce, read_all, send, values_in
from tests.node.world import Client, World


@pytest.fixture
def world() -> World:
    world = World()
    create(world.connect(), "orders")
    return world


@pytest.fixture
def client(world: World) -> Client:
    return world.connect()


def test_ten_thousand_pipelined_requests(world: World, client: Client) -> None:
    """All at once, to a broker that answers each at once: every answer comes, in order."""
    ids = client.post(*(produce("orders", b"%d" % number) for number in range(10_000)), version=NAMED)
    assert client.answered == ids
    assert read_all(world.connect(), "orders") == [b"%d" % number for number in range(10_000)]


def test_ten_thousand_that_wait_for_the_disk(world: World) -> None:
    """At most so many may wait at once; the rest is taken as they are answered."""
    client = world.connect()
    create(client, "safe", flush_messages="1")
    client.answered.clear()
    world.holds_flushes = True
    ids = client.post(*(produce("safe", b"%d" % number) for number in range(10_000)), version=NAMED)
    most = 0
    while world.flushes:
        most = max(most, len(world.broker.waiting))
        world.flush()
    assert client.answered == ids and most <= MOST_WAITING
    assert client.pauses >= 9 and not client.is_paused
    world.holds_flushes = False
    assert read_all(world.connect(), "safe") == [b"%d" % number for number in range(10_000)]


def test_ten_thousand_long_polls(world: World, client: Client) -> None:
    ids = client.post(*(fetch("orders", wait_ms=500) for _ in range(10_000)), version=NAMED)
    assert client.is_paused and 0 < len(world.broker.waiting) <= MOST_WAITING
    send(world.connect(), "orders", b"news")
    assert client.answered == ids and not client.is_paused
    assert {tuple(values_in(fetched(answer))) for answer in client.answers} == {(b"news",)}


def test_ten_thousand_that_give_up(world: World, client: Client) -> None:
    ids = client.post(*(fetch("orders", wait_ms=100) for _ in range(10_000)), version=NAMED)
    world.advance(100 * 10_000 / MOST_WAITING * 2 + 1_000)
    assert client.answered == ids and len(world.broker.waiting) == 0


def test_a_slow_reader_of_large_answers_is_not_buried(world: World, client: Client) -> None:
    """A hundred fetches of a megabyte each: about four are prepared, the rest waits until those have left."""
    for _ in range(10):
        send(world.connect(), "orders", b"x" * 100_000)
    client.is_slow = True
    world.effects.clear()
    ids = client.post(*(fetch("orders") for _ in range(100)), version=NAMED)
    rounds = 0
    while client.is_paused:
        assert sent_bytes(world) < MOST_OUTGOING_BYTES + 2_000_000
        world.effects.clear()
        client.drain()
        rounds += 1
    assert client.answered == ids and rounds >= 15


def sent_bytes(world: World) -> int:
    sends = [effect for effect in world.effects if isinstance(effect, Send)]
    pieces: list[Any] = [piece for send in sends for piece in send.pieces]
    return sum(map(len, pieces))


def test_a_paused_connection_is_not_read_before_enough_was_answered(world: World, client: Client) -> None:
    """It is told once how much was left. That all it was sent has left is not enough while so many of it wait."""
    client.is_slow = True
    world.effects.clear()
    ids = client.post(*(fetch("orders", wait_ms=500) for _ in range(2 * MOST_WAITING)), version=NAMED)
    (pause,) = [effect for effect in world.effects if isinstance(effect, Pause)]
    assert pause.left == 2 * MOST_WAITING - len(world.broker.waiting)
    waiting = -1
    while waiting != len(world.broker.waiting):
        waiting = len(world.broker.waiting)
        client.drain()
    assert client.is_paused and MOST_WAITING // 2 <= waiting <= MOST_WAITING
    client.is_slow = False
    send(world.connect(), "orders", b"news")
    assert client.answered == ids and not client.is_paused


def test_other_connections_are_served_meanwhile(world: World, client: Client) -> None:
    client.is_slow = True
    client.post(*(fetch("orders", wait_ms=500) for _ in range(5_000)), version=NAMED)
    other = world.connect()
    assert other.ask(metadata("orders")).topics[0].error_code == 0
    assert send(other, "orders", b"x") == 0


def test_a_paused_connection_may_hang_up(world: World, client: Client) -> None:
    client.is_slow = True
    client.post(*(fetch("orders", wait_ms=500) for _ in range(5_000)), version=NAMED)
    client.close()
    assert len(world.broker.waiting) == 0
    send(world.connect(), "orders", b"x")
    world.advance(1_000)


def test_what_follows_a_request_that_makes_no_sense_is_not_handled(world: World, client: Client) -> None:
    """The connection is closed after what came before was answered."""
    good = ApiVersionsRequest(client_software_name="test", client_software_version="1")
    client.post(good)
    client.post_frames([memoryview(bytearray(b"\x00\x00\x7f\xff\x00\x00\x00\x01\xff\xff")), memoryview(bytearray(10))])
    assert len(client.answers) == 1 and not client.is_open
