"""A node with the directory of another cluster: nobody takes it in, and both sides say so within a second."""

from klamm.log import checkpoint
from klamm.quorum.facts import OtherCluster
from tests.node.cluster_world import ClusterWorld, Member


def moved_to_another_cluster(member: Member) -> None:
    found = checkpoint.read_meta_properties(member.disk.read_whole(checkpoint.META_PROPERTIES))
    assert found is not None
    text = member.disk.read_whole(checkpoint.META_PROPERTIES).replace(found["cluster.id"].encode(), b"A" * 22)
    member.disk.write_whole(checkpoint.META_PROPERTIES, text)


def told(member: Member) -> list[OtherCluster]:
    return [fact for fact in member.told if isinstance(fact, OtherCluster)]


def test_both_sides_say_so_and_the_cluster_goes_on() -> None:
    world = ClusterWorld(3)
    world.run(2_000.0)
    epoch = max(member.broker.quorum.epoch for member in world.members.values())
    world[2].kill()
    moved_to_another_cluster(world[2])
    world[2].start()
    world.run(1_000.0)
    assert told(world[2]) and [told(world[0]) or told(world[1])]
    assert any(fact.node_id == 2 for number in (0, 1) for fact in told(world[number]))
    world.run(60_000.0)
    assert not world[2].is_serving and world[0].is_serving and world[1].is_serving
    assert len(told(world[2])) <= 4 and len(told(world[0])) <= 2, "once of each"
    assert max(world[number].broker.quorum.epoch for number in (0, 1)) <= epoch + 2, "nobody is disturbed"


def test_an_observer_of_another_cluster() -> None:
    world = ClusterWorld(4, voters=(0, 1, 2))
    world.run(2_000.0)
    world[3].kill()
    moved_to_another_cluster(world[3])
    world[3].start()
    world.run(1_000.0)
    assert told(world[3]) and any(told(world[number]) for number in (0, 1, 2))
