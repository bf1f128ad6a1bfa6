"""The quorum's life in small stories: the first election, a leader that dies, is cut off, resigns, and comes back."""

from tests.quorum.checks import Checks
from tests.quorum.world import World


def elected(world: World) -> int:
    """Run until somebody leads actively; who."""
    world.run(5_000, lambda: world.leader() is not None)
    leader = world.leader()
    assert leader is not None, "\n".join(world.story)
    return leader.node_id


def test_three_nodes_elect_a_leader_within_milliseconds() -> None:
    world = World(voters=3)
    Checks(world)
    world.start()
    took_ms = world.run(5_000, lambda: world.leader() is not None)
    print(took_ms, world.nodes[0].raft, world.nodes[1].raft, world.nodes[2].raft)
    assert world.leader() is not None and took_ms < 100
