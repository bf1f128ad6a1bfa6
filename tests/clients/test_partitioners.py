"""Records that name no partition: the client chooses by key, or spreads them."""
# ruff: noqa: N802  (tests are named after the rows of the system)

from collections import Counter
from zlib import crc32

import pytest
from kafka.partitioner.default import murmur2

from tests.clients import DRIVERS
from tests.clients.driver import Driver
from tests.harness.node import Node
from tests.harness.topics import create_topic

PARTITIONS = 6
KEYS = [b"store-%d" % number for number in range(40)]
CHOICES = [(DRIVERS[0], "murmur2"), (DRIVERS[0], "consistent"), (DRIVERS[1], "murmur2"), (DRIVERS[2], "murmur2")]
each_choice = pytest.mark.parametrize(
    ("driver", "partitioner"), CHOICES, ids=[f"{driver.name}-{partitioner}" for driver, partitioner in CHOICES]
)


@each_choice
def test_S3_same_key_same_partition_in_order(node: Node, topic: str, driver: Driver, partitioner: str) -> None:
    """Twenty-five records of each of forty keys, interleaved: each key is in one partition, in the order of sending."""
    create_topic(node.bootstrap, topic, PARTITIONS)
    sent: list[tuple[bytes | None, bytes]] = [(key, b"%d" % turn) for turn in range(25) for key in KEYS]
    chosen = driver.produce_unplaced(node.bootstrap, topic, sent, partitioner)
    assert chosen == [_partition_of(key or b"", partitioner) for key, _ in sent]

    found = driver.consume(node.bootstrap, topic, range(PARTITIONS))
    for key in KEYS:
        holders = {partition for partition, held in found.items() if any(one.key == key for one in held)}
        assert holders == {_partition_of(key, partitioner)}
        (home,) = holders
        assert [one.value for one in found[home] if one.key == key] == [b"%d" % turn for turn in range(25)]
    assert sum(len(held) for held in found.values()) == len(sent)


@each_choice
def test_S4_records_without_key_spread_over_all_partitions(
    node: Node, topic: str, driver: Driver, partitioner: str
) -> None:
    create_topic(node.bootstrap, topic, PARTITIONS)
    sent: list[tuple[bytes | None, bytes]] = [(None, b"%d" % number) for number in range(1200)]
    chosen = Counter(driver.produce_unplaced(node.bootstrap, topic, sent, partitioner))
    assert set(chosen) == set(range(PARTITIONS))

    found = driver.consume(node.bootstrap, topic, range(PARTITIONS))
    assert {partition: len(held) for partition, held in found.items()} == chosen
    values = sorted(int(one.value or b"") for held in found.values() for one in held)
    assert values == list(range(1200)), "all of them, each once"


def _partition_of(key: bytes, partitioner: str) -> int:
    """What the Java client and librdkafka's own default would choose."""
    if partitioner == "consistent":
        return crc32(key) % PARTITIONS
    return int(murmur2(key) & 0x7FFFFFFF) % PARTITIONS
