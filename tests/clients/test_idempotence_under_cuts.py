"""Idempotent producers over connections that are cut at random: no record is lost, doubled or out of order.

These clients keep one batch a partition under way, so eight partitions make librdkafka fill its five requests.
Five batches of one partition at once: `tests/traps/test_five_in_flight.py`, and the Java client in `tests/compat`.
More seeds: KLAMM_CUT_SEEDS=20.
"""

import asyncio
import os
import threading
from collections.abc import Callable, Iterator

import pytest
from aiokafka import AIOKafkaProducer
from confluent_kafka import KafkaError, Message, Producer
from kafka import KafkaProducer

from tests.clients import DRIVERS
from tests.harness.fixtures import StartNode
from tests.harness.node import Node
from tests.harness.proxy import CuttingProxy
from tests.harness.topics import create_topic

PARTITIONS = 8
RECORDS = 9_000
CUTTING_SECONDS = 10
SEEDS = range(1, 1 + int(os.environ.get("KLAMM_CUT_SEEDS", "1")))


def _confluent(bootstrap: str, topic: str) -> None:
    failures: list[KafkaError] = []

    def note(error: KafkaError | None, message: Message) -> None:
        if error is not None:
            failures.append(error)

    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "enable.idempotence": True,
            "max.in.flight.requests.per.connection": 5,
            "batch.num.messages": 20,
            "linger.ms": 1,
            "retry.backoff.ms": 10,
            "reconnect.backoff.ms": 10,
            "reconnect.backoff.max.ms": 100,
            "log_level": 0,  # It would tell of every cut.
        }
    )
    for partition, value in _sent():
        while True:
            try:
                producer.produce(topic, value, partition=partition, on_delivery=note)
                break
            except BufferError:
                producer.poll(0.1)
        producer.poll(0)
    assert producer.flush(90) == 0
    assert not failures, failures[:3]


def _kafka_python(bootstrap: str, topic: str) -> None:
    producer = KafkaProducer(
        bootstrap_servers=bootstrap,
        enable_idempotence=True,
        max_in_flight_requests_per_connection=5,
        batch_size=4096,
        retry_backoff_ms=10,
        reconnect_backoff_ms=10,
        reconnect_backoff_max_ms=100,
    )
    try:
        futures = [producer.send(topic, value=value, partition=partition) for partition, value in _sent()]
        producer.flush(timeout=90)
        for future in futures:
            future.get(timeout=1)
    finally:
        producer.close(timeout=5)


def _aiokafka(bootstrap: str, topic: str) -> None:
    async def run() -> None:
        producer = AIOKafkaProducer(
            bootstrap_servers=bootstrap, enable_idempotence=True, max_batch_size=4096, retry_backoff_ms=10
        )
        await producer.start()
        try:
            futures = [await producer.send(topic, value, partition=partition) for partition, value in _sent()]
            await asyncio.wait_for(asyncio.gather(*futures), 90)
        finally:
            await producer.stop()

    asyncio.run(run())


@pytest.fixture(params=SEEDS, ids=lambda seed: f"seed-{seed}")
def proxied(request: pytest.FixtureRequest, start_node: StartNode) -> Iterator[tuple[Node, CuttingProxy]]:
    """A broker that tells clients the proxy's address, so that they can reach it no other way."""
    with CuttingProxy(request.param) as proxy:
        node = start_node(advertise=proxy.address)
        proxy.connect_to(node.port)
        yield node, proxy


@pytest.mark.parametrize(
    ("produce", "in_flight"),
    [(_confluent, 5), (_kafka_python, 1), (_aiokafka, 1)],
    ids=["confluent-kafka", "kafka-python", "aiokafka"],
)
def test_idempotent_producer_over_cut_connections(
    proxied: tuple[Node, CuttingProxy], topic: str, produce: Callable[[str, str], None], in_flight: int
) -> None:
    node, proxy = proxied
    create_topic(node.bootstrap, topic, PARTITIONS)
    proxy.start_cutting()
    enough = threading.Timer(CUTTING_SECONDS, proxy.heal)
    enough.start()
    produce(node.bootstrap, topic)
    enough.cancel()
    proxy.heal()

    found = DRIVERS[0].consume(node.bootstrap, topic, range(PARTITIONS))
    for partition in range(PARTITIONS):
        wanted = [value for where, value in _sent() if where == partition]
        assert [record.value for record in found[partition]] == wanted
        assert [record.offset for record in found[partition]] == list(range(len(wanted)))
    assert len(proxy.cuts) >= 5, "there were too few cuts to show anything"
    assert max(cut.in_flight for cut in proxy.cuts if cut.way == "answer") >= in_flight


def _sent() -> Iterator[tuple[int, bytes]]:
    """Numbered records, turn by turn over the partitions."""
    return ((number % PARTITIONS, b"%08d" % number + b"." * 150) for number in range(RECORDS))
