"""A cluster for the commands that send and read: three brokers in this process, one for all tests.

`KLAMM_UNDER_TEST=kafka` runs them against one broker of Apache Kafka.
"""

import time
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Producer

import klamm
from klamm.cli import main
from tests.harness.kafka_node import KafkaNode
from tests.harness.node import under_test
from tests.harness.topics import create_topic

SETTINGS = {
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "4",
    "group.initial.rebalance.delay.ms": "0",
}

HOUR_MS = 3_600_000

Klamm = Callable[..., tuple[int, bytes, str]]


@pytest.fixture(scope="session")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The bootstrap servers."""
    if under_test() == "kafka":
        node = KafkaNode(tmp_path_factory.mktemp("cli") / "broker", SETTINGS)
        try:
            node.start()
            yield node.bootstrap
        finally:
            node.discard()
        return
    with klamm.Cluster(brokers=3, settings=SETTINGS) as cluster:
        yield cluster.bootstrap_servers


@pytest.fixture
def klamm_command(servers: str, capfdbinary: pytest.CaptureFixture[bytes]) -> Klamm:
    """`klamm WORDS --bootstrap …` in this process: the exit code, what it printed, what it said."""

    def call(*words: str) -> tuple[int, bytes, str]:
        capfdbinary.readouterr()
        code = main([*words, "--bootstrap-server", servers])
        said = capfdbinary.readouterr()
        return code, said.out, said.err.decode()

    return call


@pytest.fixture
def counted(servers: str, topic: str) -> str:
    """A topic of two partitions with ten records each, one an hour, the last one just now: 0 to 9 and 10 to 19."""
    create_topic(servers, topic, 2)
    now_ms = int(time.time() * 1_000)
    producer = Producer({"bootstrap.servers": servers})
    for number in range(20):
        age_ms = HOUR_MS * (9 - number % 10)
        producer.produce(topic, str(number), partition=number // 10, timestamp=now_ms - age_ms)
    assert producer.flush(60) == 0
    return topic
