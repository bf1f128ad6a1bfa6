"""Loading after a start and running live are the same code: replaying the log gives the same controller."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from klamm.config import BrokerConfig
from klamm.controller.controller import Controller
from klamm.controller.placement import Load
from klamm.controller.wishes import MorePartitions, NewTopic, TopicToDelete
from klamm.metadata import records
from klamm.metadata.image import EMPTY, Image
from tests.controller.world import CLUSTER, START, World

NAMES = ["invoice", "orders", "a.b", "a_b", "c.d"]


@given(st.integers(0, 2**32))
def test_a_controller_that_replays_the_log_decides_as_the_one_that_wrote_it(seed: int) -> None:
    random = Random(seed)
    world = World(brokers=4, racks={0: "R1", 1: "R2", 2: "R1", 3: "R2"})
    for _ in range(random.randrange(12)):
        name, controller = random.choice(NAMES), world.controller
        match random.choice(["create", "create", "grow", "delete"]):
            case "create":
                wishes = [NewTopic(name, random.randint(1, 5), random.randint(1, 4))]
                world.run(controller.create_topics(wishes))
            case "grow":
                world.run(controller.create_partitions([MorePartitions(name, random.randint(1, 8))]))
            case "delete":
                world.run(controller.delete_topics([TopicToDelete(name)]))
    config = BrokerConfig.from_properties([], {"node.id": "0"})
    replayed = Controller(config, CLUSTER, Random(1), EMPTY, START)
    for record in world.log:
        replayed.replay(records.decode(records.encode(record)))
    resumed = Controller(config, CLUSTER, Random(1), world.controller.image, START)
    writer = Controller(config, CLUSTER, Random(1), world.controller.image, START)
    wishes = [NewTopic(name, 3, 2) for name in NAMES]
    expected = writer.create_topics(wishes)
    for other in (replayed, resumed):
        assert other.image == world.controller.image
        plan = other.create_topics(wishes)
        assert (plan.records, plan.response) == (expected.records, expected.response)
    assert counts_are_true(world, world.controller.image)


def counts_are_true(world: World, image: Image) -> bool:
    """What was counted along is what counting anew gives."""
    anew = Load(state.replicas for topic in image.topics.values() for state in topic.partitions)
    along = world.controller._state.load
    brokers = list(image.brokers)
    return all(
        [[role.get(broker, 0) for broker in brokers] for role in along.roles(factor)]
        == [[role.get(broker, 0) for broker in brokers] for role in anew.roles(factor)]
        for factor in range(1, 5)
    )


def test_a_decision_changes_nothing_until_it_is_replayed() -> None:
    world = World()
    before = world.controller.image
    decision = world.controller.create_topics([NewTopic("invoice")])
    assert decision.records and world.controller.image is before
    world.run(decision)
    assert "invoice" in world.controller.image.topics and "invoice" not in before.topics
