"""What is counted once a batch: on the node, without a process."""

from klamm.wire.apis import INIT_PRODUCER_ID, PRODUCE
from tests.node.requests import NAMED, acknowledged, batch_of, create, produce, producer_id
from tests.node.world import World


def test_a_retry_is_not_counted_twice() -> None:
    world = World()
    client = world.connect()
    create(client, "orders")
    identity = producer_id(client)
    for _ in range(3):
        request = produce("orders", batch=batch_of(b"one", b"two", producer=(identity, 0, 0)))
        answer = acknowledged(client.ask(request, NAMED))
        assert (answer.error_code, answer.base_offset) == (0, 0)
    assert world.node.broker.partitions.traffic["orders"].messages_in == 2
    counts = world.node.cluster.dispatch.counts
    assert counts[PRODUCE].requests == 3 and counts[INIT_PRODUCER_ID].requests >= 1


def test_a_refused_batch_is_not_counted() -> None:
    world = World()
    client = world.connect()
    create(client, "orders")
    damaged = bytearray(batch_of(b"one"))
    damaged[-1] ^= 1
    assert acknowledged(client.ask(produce("orders", batch=bytes(damaged)), NAMED)).error_code
    assert world.node.broker.partitions.traffic["orders"].messages_in == 0
