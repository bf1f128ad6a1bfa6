"""A broker on which groups come to rest soon, and a group of its own for every test."""

from collections.abc import Iterator

import pytest

from tests.harness.fixtures import StartNode, new_name
from tests.harness.groups import SETTINGS, wait_coordinator
from tests.harness.node import Node
from tests.harness.raw import Raw
from tests.harness.requests import create


@pytest.fixture(scope="module")
def node(start_module_node: StartNode) -> Node:
    return start_module_node(SETTINGS)


@pytest.fixture
def raw(node: Node) -> Iterator[Raw]:
    with Raw(node.port) as connection:
        yield connection


@pytest.fixture
def group(raw: Raw) -> str:
    """The name of a group that is not there yet, but its coordinator is."""
    name = new_name("group")
    wait_coordinator(raw, name)
    return name


@pytest.fixture
def made(raw: Raw, topic: str) -> bytes:
    """The id of the test's topic, which has four partitions."""
    return create(raw, topic, partitions=4)
