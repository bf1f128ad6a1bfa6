"""Trap 8: per connection, responses leave in the order of their requests, whoever has to wait."""

from klamm.wire.messages.api_versions import ApiVersionsRequest
from tests.node.requests import NAMED, acknowledged, create, fetch, fetched, metadata, produce, send, values_in
from tests.node.world import World


def test_a_long_poll_is_not_overtaken() -> None:
    """Metadata and a produce behind a waiting fetch are handled at once and answered after it."""
    world = World()
    client, other = world.connect(), world.connect()
    create(client, "orders", 2)
    client.answered.clear()
    ids = client.post(fetch("orders", wait_ms=500), produce("orders", b"behind", index=1), version=NAMED)
    ids += client.post(metadata("orders"))
    assert client.answers == []
    assert values_in(fetched(other.ask(fetch("orders", index=1), NAMED))) == [b"behind"], "it was handled, not answered"

    send(other, "orders", b"awaited")
    assert client.answered == ids
    assert values_in(fetched(client.answers[0])) == [b"awaited"]
    assert acknowledged(client.answers[1]).base_offset == 0


def test_two_that_wait_are_answered_in_order_though_the_second_is_ready_first() -> None:
    world = World()
    client, other = world.connect(), world.connect()
    create(client, "orders", 2)
    first, second = client.post(fetch("orders", wait_ms=500), fetch("orders", index=1, wait_ms=500), version=NAMED)
    send(other, "orders", b"for the second", index=1)
    assert client.answers == []
    send(other, "orders", b"for the first", index=0)
    assert client.answered[-2:] == [first, second]
    assert [values_in(fetched(each)) for each in client.answers] == [[b"for the first"], [b"for the second"]]


def test_a_produce_that_waits_for_the_disk_holds_back_what_is_behind_it() -> None:
    world = World()
    client = world.connect()
    create(client, "safe", flush_messages="1")
    client.answered.clear()
    world.holds_flushes = True
    ids = client.post(produce("safe", b"one"), version=NAMED)
    ids += client.post(ApiVersionsRequest(client_software_name="test", client_software_version="1"))
    assert client.answers == []
    world.flush()
    assert client.answered == ids


def test_one_step_makes_one_send_for_a_connection() -> None:
    """However many requests were pipelined: each write to a socket costs more than the step itself."""
    world = World()
    client = world.connect()
    create(client, "orders")
    world.effects.clear()
    client.post(*(produce("orders", b"x") for _ in range(50)), version=NAMED)
    assert len(client.answers) == 50
    assert [type(effect).__name__ for effect in world.effects] == ["Send"]


def test_another_connection_is_not_held_up() -> None:
    world = World()
    waiting, quick = world.connect(), world.connect()
    create(quick, "orders")
    waiting.post(fetch("orders", wait_ms=10_000), version=NAMED)
    assert quick.ask(metadata("orders")).topics[0].name == "orders"
    assert waiting.answers == []


def test_whoever_hangs_up_while_waiting_is_forgotten() -> None:
    """Closed cancels what its connection waited for; the others' answers come as if it had never been there."""
    world = World()
    leaving, staying = world.connect(), world.connect()
    create(staying, "safe", flush_messages="1")
    world.holds_flushes = True
    leaving.post(produce("safe", b"mine"), fetch("safe", wait_ms=500), version=NAMED)
    staying.post(produce("safe", b"yours"), version=NAMED)
    leaving.close()
    assert len(world.broker.waiting) == 1
    world.flush()
    world.flush()
    assert leaving.answers == [] and acknowledged(staying.take()).base_offset == 1
    assert len(world.broker.waiting) == 0
