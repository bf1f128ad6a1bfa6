"""Clusters in memory that have been at it for a while: evidence of a death is not believed right after a registration.

A module about a single node has a `world` of its own.
"""

import pytest

from tests.node.cluster_world import ClusterWorld


@pytest.fixture
def world() -> ClusterWorld:
    """Three nodes that have been at it for a while."""
    world = ClusterWorld()
    world.run(1_000.0)
    return world


@pytest.fixture
def four() -> ClusterWorld:
    """The same with a fourth that has no vote."""
    world = ClusterWorld(4, voters=[0, 1, 2])
    world.run(1_000.0)
    return world
