"""A broker on which groups come to rest soon, for each module."""

import pytest

from tests.groups.gathering import PARTITIONS
from tests.harness.fixtures import StartNode
from tests.harness.node import Node
from tests.harness.topics import create_topic

SETTINGS = {
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "4",
    "group.initial.rebalance.delay.ms": "200",
    "group.min.session.timeout.ms": "500",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "3000",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "300",
    "group.consumer.assignment.interval.ms": "200",
}


@pytest.fixture(scope="module")
def node(start_module_node: StartNode) -> Node:
    return start_module_node(SETTINGS)


@pytest.fixture
def ten(node: Node, topic: str) -> str:
    """The test's topic, which has ten partitions."""
    create_topic(node.bootstrap, topic, PARTITIONS)
    return topic
