"""A raw connection to the module's broker for every test."""

from collections.abc import Iterator

import pytest

from tests.harness.node import Node
from tests.harness.raw import Raw


@pytest.fixture
def raw(node: Node) -> Iterator[Raw]:
    with Raw(node.port) as connection:
        yield connection
