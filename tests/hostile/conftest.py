"""Whatever a test did to the broker, afterwards it must be up and serve everybody else."""

from collections.abc import Callable, Iterator

import pytest

from tests.harness.fixtures import StartNode
from tests.harness.node import Node
from tests.hostile.target import Target


@pytest.fixture
def target(node: Node) -> Iterator[Target]:
    """The module's broker; a new life of it, if the test before has killed it."""
    try:
        target = Target(node)
    except ConnectionRefusedError:
        node.restart()
        target = Target(node)
    yield from _watched(target)


@pytest.fixture
def fresh_target(fresh_node: Node) -> Iterator[Target]:
    """A broker of the test's own, whose memory is nobody else's doing."""
    yield from _watched(Target(fresh_node))


@pytest.fixture
def start_target(start_node: StartNode) -> Iterator[Callable[..., Target]]:
    """A broker of the test's own with settings, given with underscores for dots."""
    targets: list[Target] = []

    def start(**settings: str) -> Target:
        targets.append(Target(start_node({name.replace("_", "."): value for name, value in settings.items()})))
        return targets[-1]

    yield start
    for target in targets:
        target.check_others_are_served()
        target.close()


def _watched(target: Target) -> Iterator[Target]:
    yield target
    target.check_others_are_served()
    target.close()
