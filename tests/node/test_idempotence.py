"""Trap 23, I21: each batch of an idempotent producer is in the log once, through retries, restarts and crashes."""

from random import Random

import pytest

from klamm.errors import ErrorCode
from klamm.wire.messages.init_producer_id import InitProducerIdRequest
from tests.node.requests import NAMED, acknowledged, batch_of, create, produce, producer_id, read_all
from tests.node.world import Client, World


@pytest.fixture
def world() -> World:
    world = World()
    create(world.connect(), "orders", flush_messages="1")
    return world


@pytest.fixture
def client(world: World) -> Client:
    return world.connect()


def sent(client: Client, identity: int, sequence: int, *values: bytes, epoch: int = 0) -> tuple[int, int]:
    """Error code and offset of a batch of this producer."""
    request = produce("orders", batch=batch_of(*values, producer=(identity, epoch, sequence)))
    answer = acknowledged(client.ask(request, NAMED))
    return answer.error_code, answer.base_offset


def test_ids_are_never_given_twice(world: World) -> None:
    """Not to two producers, not after a restart or a crash; and a block that runs out is followed by another."""
    given = [producer_id(world.connect()) for _ in range(5)]
    world.restart()
    given += [producer_id(world.connect()) for _ in range(5)]
    world.kill()
    given += [producer_id(world.connect()) for _ in range(5)]
    world.lose_power(Random(5))
    client = world.connect()
    given += [producer_id(client) for _ in range(1_500)]
    assert len(set(given)) == len(given)


def test_those_who_ask_while_a_block_is_on_its_way_all_get_one(world: World) -> None:
    world.holds_flushes = True
    clients = [world.connect() for _ in range(20)]
    for client in clients:
        client.post(InitProducerIdRequest(transactional_id=None))
    world.flush()
    answers = [client.take() for client in clients]
    assert {answer.error_code for answer in answers} == {ErrorCode.NONE}
    assert len({answer.producer_id for answer in answers}) == 20


def test_a_retry_gets_the_first_answer(client: Client) -> None:
    identity = producer_id(client)
    for number in range(5):
        assert sent(client, identity, 2 * number, b"a", b"b") == (0, 2 * number)
    for number in range(5):
        assert sent(client, identity, 2 * number, b"a", b"b") == (0, 2 * number)
    assert read_all(client, "orders") == 5 * [b"a", b"b"]


@pytest.mark.parametrize("ending", ["restart", "kill"])
def test_a_retry_after_the_broker_s_restart_is_still_one(world: World, client: Client, ending: str) -> None:
    identity = producer_id(client)
    for number in range(6):
        sent(client, identity, number, b"%d" % number)
    getattr(world, ending)()
    client = world.connect()
    for number in range(1, 6):
        assert sent(client, identity, number, b"%d" % number) == (0, number)
    assert sent(client, identity, 6, b"6") == (0, 6)
    assert read_all(client, "orders") == [b"%d" % number for number in range(7)]


def test_a_retry_after_a_power_loss_is_in_the_log_once(world: World, client: Client) -> None:
    """The producer waits for an answer that never comes; whether its batch survived, it is there once in the end."""
    for seed in range(20):
        identity = producer_id(client)
        sent(client, identity, 0, b"%d first" % seed)
        world.holds_flushes = True
        client.post(produce("orders", batch=batch_of(b"%d second" % seed, producer=(identity, 0, 1))), version=NAMED)
        world.holds_flushes = False
        world.lose_power(Random(seed))
        client = world.connect()
        assert sent(client, identity, 1, b"%d second" % seed)[0] == ErrorCode.NONE
        values = read_all(client, "orders")
        assert values[-2:] == [b"%d first" % seed, b"%d second" % seed] and len(values) == len(set(values))


def test_a_gap_is_refused(world: World, client: Client) -> None:
    identity = producer_id(client)
    sent(client, identity, 0, b"a")
    assert sent(client, identity, 2, b"c") == (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)
    world.kill()
    assert sent(world.connect(), identity, 2, b"c") == (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)


def test_a_zombie_stays_fenced(world: World, client: Client) -> None:
    identity = producer_id(client)
    sent(client, identity, 0, b"a")
    sent(client, identity, 0, b"b", epoch=1)
    world.restart()
    assert sent(world.connect(), identity, 1, b"c")[0] == ErrorCode.INVALID_PRODUCER_EPOCH


def test_a_refused_batch_leaves_no_trace(client: Client) -> None:
    identity = producer_id(client)
    spoiled = batch_of(b"a", producer=(identity, 0, 0))
    spoiled[-1] ^= 1
    answer = acknowledged(client.ask(produce("orders", batch=spoiled), NAMED))
    assert answer.error_code == ErrorCode.CORRUPT_MESSAGE
    assert sent(client, identity, 0, b"a") == (0, 0)


def test_a_silent_producer_is_forgotten(world: World, client: Client) -> None:
    """After `producer.id.expiration.ms` it may begin anywhere."""
    identity = producer_id(client)
    sent(client, identity, 0, b"a")
    world.advance(24 * 3_600_000 + 700_000)
    assert sent(client, identity, 77, b"b") == (0, 1)
