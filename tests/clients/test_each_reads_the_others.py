"""What one client produced, every other client reads: the same bytes, whoever compressed them."""
# ruff: noqa: N802  (tests are named after the rows of the system)

import pytest

from tests.clients import DRIVERS
from tests.clients.driver import Driver
from tests.harness.node import Node
from tests.harness.topics import create_topic
from tests.harness.workload import CODECS, assert_same, drawn_records, expected, odd_records

PARTITIONS = 2


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("writer", DRIVERS, ids=lambda driver: f"{driver.name}-writes")
def test_S23_every_client_reads_what_one_wrote(node: Node, topic: str, writer: Driver, codec: str) -> None:
    create_topic(node.bootstrap, topic, PARTITIONS)
    records = drawn_records(2000, PARTITIONS, seed=len(writer.name + codec))
    writer.produce(node.bootstrap, topic, records, codec)
    for reader in DRIVERS:
        assert_same(reader.consume(node.bootstrap, topic, range(PARTITIONS)), expected(records, PARTITIONS))


@pytest.mark.parametrize("codec", CODECS)
def test_S23_every_client_reads_the_oddest_records(node: Node, topic: str, codec: str) -> None:
    """Key and value both null, headers without values, two hundred headers, bytes that are no text."""
    create_topic(node.bootstrap, topic, 1)
    DRIVERS[0].produce(node.bootstrap, topic, odd_records(), codec)
    for reader in DRIVERS:
        assert_same(reader.consume(node.bootstrap, topic, [0]), expected(odd_records(), 1))


def test_S1_writers_of_all_kinds_share_a_partition(node: Node, topic: str) -> None:
    """One after the other, each with another codec: the log is the concatenation of what they sent."""
    create_topic(node.bootstrap, topic, 1)
    everything = []
    for turn, codec in enumerate(CODECS):
        for writer in DRIVERS:
            records = drawn_records(100, 1, seed=turn)
            writer.produce(node.bootstrap, topic, records, codec, idempotent=bool(turn % 2))
            everything += records
    for reader in DRIVERS:
        assert_same(reader.consume(node.bootstrap, topic, [0]), expected(everything, 1))
