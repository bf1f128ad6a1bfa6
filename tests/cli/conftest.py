"""A cluster for the commands that send and read: three brokers in this process, one for all tests.

`KLAMM_UNDER_TEST=kafka` runs them against one broker of Apache Kafka.
"""

from collections.abc import Callable, Iterator

import pytest

import klamm
from klamm.cli import main
from tests.harness.kafka_node import KafkaNode
from tests.harness.node import under_test

SETTINGS = {
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "4",
    "group.initial.rebalance.delay.ms": "0",
}

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
