"""What the cluster has agreed on: at first, and after somebody raises or lowers it."""

from dataclasses import replace

import pytest

from klamm.controller.features import ELIGIBLE_LEADER_REPLICAS, METADATA_VERSION, SUPPORTED
from klamm.controller.wishes import FeatureUpdate, UpgradeType
from klamm.errors import ErrorCode, KafkaError
from klamm.ids import NO_BROKER
from klamm.metadata.image import FeatureRange
from tests.controller.world import World

UPGRADE, SAFE, UNSAFE = UpgradeType.UPGRADE, UpgradeType.SAFE_DOWNGRADE, UpgradeType.UNSAFE_DOWNGRADE


def test_a_new_cluster_begins_with_its_metadata_version_and_eligible_leader_replicas() -> None:
    world = World(brokers=0)
    assert world.controller.image.features == {
        "metadata.version": 30,
        "eligible.leader.replicas.version": 1,
        "group.version": 1,
    }
    assert not world.controller.activate(world.now).records


@pytest.mark.parametrize(
    ("name", "level", "kind"),
    [
        (METADATA_VERSION, 29, UPGRADE),
        (METADATA_VERSION, 29, SAFE),
        (METADATA_VERSION, 29, UNSAFE),
        (METADATA_VERSION, 31, UPGRADE),
        (ELIGIBLE_LEADER_REPLICAS, 2, UPGRADE),
        (ELIGIBLE_LEADER_REPLICAS, -1, SAFE),
        (ELIGIBLE_LEADER_REPLICAS, 0, UPGRADE),
        (ELIGIBLE_LEADER_REPLICAS, 0, 9),
        ("transaction.version", 2, UPGRADE),
    ],
)
def test_levels_that_are_refused(name: str, level: int, kind: int) -> None:
    with pytest.raises(KafkaError) as refused:
        World().controller.update_features([FeatureUpdate(name, level, kind)])
    assert refused.value.code == ErrorCode.INVALID_UPDATE_VERSION and refused.value.message


def test_a_level_goes_down_and_up_again() -> None:
    world = World()
    assert not world.controller.update_features([FeatureUpdate(METADATA_VERSION, 30)]).records, "it is there already"
    down = [FeatureUpdate(ELIGIBLE_LEADER_REPLICAS, 0, SAFE)]
    assert not world.controller.update_features(down, validate_only=True).records
    world.run(world.controller.update_features(down))
    assert ELIGIBLE_LEADER_REPLICAS not in world.controller.image.features
    with pytest.raises(KafkaError):
        world.controller.update_features([FeatureUpdate(ELIGIBLE_LEADER_REPLICAS, 1, SAFE)])
    world.run(world.controller.update_features([FeatureUpdate(ELIGIBLE_LEADER_REPLICAS, 1)]))
    assert world.controller.image.features[ELIGIBLE_LEADER_REPLICAS] == 1


def test_all_levels_are_set_or_none() -> None:
    world = World()
    wishes = [FeatureUpdate(ELIGIBLE_LEADER_REPLICAS, 0, SAFE), FeatureUpdate(METADATA_VERSION, 99)]
    with pytest.raises(KafkaError):
        world.controller.update_features(wishes)
    with pytest.raises(KafkaError) as twice:
        world.controller.update_features([FeatureUpdate(METADATA_VERSION, 30)] * 2)
    assert twice.value.code == ErrorCode.INVALID_REQUEST


def test_a_level_that_a_broker_does_not_know_is_refused() -> None:
    world = World()
    world.run(world.controller.update_features([FeatureUpdate(ELIGIBLE_LEADER_REPLICAS, 0, SAFE)]))
    old = replace(world.registration(1), features=SUPPORTED | {ELIGIBLE_LEADER_REPLICAS: FeatureRange(0, 0)})
    world.run(world.controller.register_broker(old, lambda: world.next_offset, world.now))
    with pytest.raises(KafkaError) as refused:
        world.controller.update_features([FeatureUpdate(ELIGIBLE_LEADER_REPLICAS, 1)])
    assert "broker 1" in str(refused.value)


def test_eligible_leader_replicas_are_not_given_up_while_a_partition_lives_on_them() -> None:
    world = World(brokers=2)
    world.create("invoice", assignments=[(0, [1])])
    world.die(1)
    down = [FeatureUpdate(ELIGIBLE_LEADER_REPLICAS, 0, SAFE)]
    with pytest.raises(KafkaError):
        world.controller.update_features(down)
    world.beat(1)
    world.run(world.controller.update_features(down))
    world.die(1)
    assert (world.partition().isr, world.partition().elr, world.partition().leader) == ((1,), (), NO_BROKER)
    world.beat(1)
    assert world.partition().leader == 1
