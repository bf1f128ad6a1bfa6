"""Each client produces a hundred thousand records and consumes exactly those, whatever the codec."""
# ruff: noqa: N802  (tests are named after the rows of the system)

import os

import pytest

from tests.clients import DRIVERS
from tests.clients.driver import Driver
from tests.harness.node import Node
from tests.harness.topics import create_topic
from tests.harness.workload import CODECS, Sent, assert_same, assert_stored_with, drawn_records, expected

PARTITIONS = 4
COUNT = int(os.environ.get("KLAMM_CLIENT_RECORDS", "100000"))


@pytest.fixture(scope="module")
def records() -> list[Sent]:
    return drawn_records(COUNT, PARTITIONS)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("driver", DRIVERS, ids=lambda driver: driver.name)
def test_S1_what_a_client_produced_it_consumes_in_order_at_dense_offsets(
    node: Node, topic: str, records: list[Sent], driver: Driver, codec: str
) -> None:
    create_topic(node.bootstrap, topic, PARTITIONS)
    acknowledged = driver.produce(node.bootstrap, topic, records, codec)
    found = driver.consume(node.bootstrap, topic, range(PARTITIONS))
    wanted = expected(records, PARTITIONS)
    assert_same(found, wanted)
    for partition in range(PARTITIONS):
        offsets = [offset for offset, sent in zip(acknowledged, records, strict=True) if sent.partition == partition]
        assert offsets == list(range(len(wanted[partition]))), "each record is where its acknowledgement said"
    assert_stored_with(node.dir, topic, range(PARTITIONS), codec)
