"""Topics are created, grow and are deleted, each judged by itself with Kafka's error codes."""

import pytest

from klamm.controller.brokers import BrokerRegistration
from klamm.controller.features import SUPPORTED
from klamm.controller.names import topic_name_problem
from klamm.controller.wishes import MorePartitions, NewTopic, TopicToDelete
from klamm.errors import ErrorCode
from klamm.ids import ZERO_UUID
from klamm.metadata.records import ConfigRecord, PartitionRecord, TopicRecord
from tests.controller.world import CLUSTER, World


def test_s5_numbers_not_given_are_the_brokers_defaults() -> None:
    world = World(brokers=3, num_partitions="4", default_replication_factor="2")
    topic = world.create("invoice")
    assert [len(state.replicas) for state in topic.partitions] == [2, 2, 2, 2]
    assert len(World().create("invoice").partitions) == 1


def test_a_topics_records_are_its_id_its_settings_and_its_partitions() -> None:
    world = World()
    topic = world.create("invoice", 2, 1, configs=[("retention.ms", "1000"), ("cleanup.policy", "compact")])
    assert world.log[-5:] == [
        TopicRecord(name="invoice", topic_id=topic.topic_id),
        ConfigRecord(resource_type=2, resource_name="invoice", name="retention.ms", value="1000"),
        ConfigRecord(resource_type=2, resource_name="invoice", name="cleanup.policy", value="compact"),
        *[
            PartitionRecord(
                partition_id=index,
                topic_id=topic.topic_id,
                replicas=[0],
                isr=[0],
                leader=0,
                leader_epoch=0,
                partition_epoch=0,
                directories=[bytes([1]) * 16],
            )
            for index in range(2)
        ],
    ]


def test_the_answer_tells_id_and_counts() -> None:
    world = World(brokers=3)
    (created,) = world.run(world.controller.create_topics([NewTopic("invoice", 5, 3)]))
    assert (created.partitions, created.replication_factor) == (5, 3)
    assert world.topic("invoice").topic_id == created.topic_id != ZERO_UUID


def test_validate_only_answers_the_same_and_does_nothing() -> None:
    world = World()
    decision = world.controller.create_topics([NewTopic("invoice", 5, 1), NewTopic("..")], validate_only=True)
    assert [each.error for each in decision.response] == [ErrorCode.NONE, ErrorCode.INVALID_TOPIC_EXCEPTION]
    assert decision.response[0].partitions == 5
    assert not decision.records


def test_one_bad_topic_does_not_harm_the_others() -> None:
    world = World()
    decision = world.controller.create_topics([NewTopic("good"), NewTopic("bad name"), NewTopic("better")])
    assert [each.error for each in decision.response] == [
        ErrorCode.NONE,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.NONE,
    ]
    world.run(decision)
    assert list(world.controller.image.topics) == ["better", "good"]


def test_a_name_asked_for_twice_in_one_request_is_refused_once_and_never_created() -> None:
    world = World()
    decision = world.controller.create_topics([NewTopic("twice"), NewTopic("once"), NewTopic("twice")])
    assert [(each.name, each.error) for each in decision.response] == [
        ("twice", ErrorCode.INVALID_REQUEST),
        ("once", ErrorCode.NONE),
    ]
    world.run(decision)
    assert list(world.controller.image.topics) == ["once"]


def test_trap_13_names() -> None:
    """'[a-zA-Z0-9._-]{1,249}, not . or ..'"""
    for name in ("", ".", "..", "a b", "ü", "a/b", "x" * 250, "a\n"):
        assert World().refusal(NewTopic(name)) == ErrorCode.INVALID_TOPIC_EXCEPTION, name
    for name in ("...", "x" * 249, "A.z_0-9", "__internal", "-"):
        assert topic_name_problem(name) is None
        World().create(name)


def test_dot_and_underscore_are_the_same_in_metrics_so_topics_may_not_differ_in_them_alone() -> None:
    world = World()
    world.create("point.of_sale")
    assert world.refusal(NewTopic("point_of.sale")) == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert world.refusal(NewTopic("point.of_sale")) == ErrorCode.TOPIC_ALREADY_EXISTS
    world.create("point-of-sale")
    world.run(world.controller.delete_topics([TopicToDelete("point.of_sale")]))
    world.create("point_of.sale")
    both = world.controller.create_topics([NewTopic("a.b"), NewTopic("a_b")]).response
    assert [each.error for each in both] == [ErrorCode.NONE, ErrorCode.INVALID_TOPIC_EXCEPTION]


@pytest.mark.parametrize(
    ("wish", "error"),
    [
        (NewTopic("__cluster_metadata"), ErrorCode.INVALID_REQUEST),
        (NewTopic("t", partitions=0), ErrorCode.INVALID_PARTITIONS),
        (NewTopic("t", partitions=-2), ErrorCode.INVALID_PARTITIONS),
        (NewTopic("t", partitions=10_001), ErrorCode.POLICY_VIOLATION),
        (NewTopic("t", replication_factor=0), ErrorCode.INVALID_REPLICATION_FACTOR),
        (NewTopic("t", replication_factor=-2), ErrorCode.INVALID_REPLICATION_FACTOR),
        (NewTopic("t", replication_factor=3), ErrorCode.INVALID_REPLICATION_FACTOR),
        (NewTopic("t", configs=[("retention.ms", None)]), ErrorCode.INVALID_CONFIG),
        (NewTopic("t", configs=[("retention.ms", "soon")]), ErrorCode.INVALID_CONFIG),
        (NewTopic("t", configs=[("retention.mss", "1")]), ErrorCode.INVALID_CONFIG),
        (NewTopic("t", partitions=1, assignments=[(0, [0])]), ErrorCode.INVALID_REQUEST),
        (NewTopic("t", replication_factor=1, assignments=[(0, [0])]), ErrorCode.INVALID_REQUEST),
        (NewTopic("t", assignments=[(0, [0]), (0, [1])]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewTopic("t", assignments=[(0, [0]), (2, [1])]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewTopic("t", assignments=[(-1, [0])]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewTopic("t", assignments=[(0, [])]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewTopic("t", assignments=[(0, [0, 0])]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewTopic("t", assignments=[(0, [0, 7])]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (NewTopic("t", assignments=[(0, [0]), (1, [0, 1])]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_what_cannot_be_is_refused_with_kafkas_code(wish: NewTopic, error: ErrorCode) -> None:
    assert World(brokers=2).refusal(wish) == error


def test_an_assignment_by_hand_is_taken_as_it_is() -> None:
    topic = World(brokers=3).create("invoice", assignments=[(1, [0, 1]), (0, [2, 0])])
    assert [state.replicas for state in topic.partitions] == [(2, 0), (0, 1)]
    assert [state.leader for state in topic.partitions] == [2, 0]


def test_ten_thousand_partitions_are_counted_over_the_whole_request() -> None:
    world = World()
    wishes = [NewTopic("many", 9_999), NewTopic("two", 2)]
    assert {each.error for each in world.controller.create_topics(wishes).response} == {ErrorCode.POLICY_VIOLATION}
    assert len(world.create("most", 10_000).partitions) == 10_000


def test_topics_of_one_request_share_the_ring() -> None:
    world = World(brokers=3)
    world.run(world.controller.create_topics([NewTopic(name, 1, 1) for name in "abc"]))
    assert sorted(topic.partitions[0].leader for topic in world.controller.image.topics.values()) == [0, 1, 2]


def test_without_an_active_broker_nothing_is_created() -> None:
    world = World(brokers=0)
    assert world.refusal(NewTopic("t")) == ErrorCode.INVALID_REPLICATION_FACTOR
    world.register(0)
    assert world.refusal(NewTopic("t")) == ErrorCode.INVALID_REPLICATION_FACTOR
    assert world.refusal(NewTopic("t", assignments=[(0, [0])])) == ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_a_fenced_broker_holds_a_replica_but_is_not_in_sync() -> None:
    world = World(brokers=1)
    world.register(1)
    state = world.create("invoice", 1, 2).partitions[0]
    assert (state.replicas, state.isr, state.leader) == ((0, 1), (0,), 0)


def test_a_broker_of_several_directories_says_later_where_it_put_a_replica() -> None:
    world = World(brokers=0)
    registration = BrokerRegistration(0, bytes([1]) * 16, CLUSTER, [], [bytes([8]) * 16, bytes([9]) * 16], SUPPORTED)
    world.run(world.controller.register_broker(registration, lambda: world.next_offset, world.now))
    world.join(1)
    assert world.create("invoice", 1, 2).partitions[0].directories == (bytes([2]) * 16, ZERO_UUID)


def test_a_topic_grows_and_its_old_partitions_stay() -> None:
    world = World(brokers=3)
    before = world.create("invoice", 2, 2).partitions
    (grown,) = world.run(world.controller.create_partitions([MorePartitions("invoice", 6)]))
    assert grown.error == ErrorCode.NONE
    after = world.topic("invoice").partitions
    assert after[:2] == before and len(after) == 6
    assert [sum(state.leader == broker for state in after) for broker in range(3)] == [2, 2, 2]


def test_growing_by_hand() -> None:
    world = World(brokers=3)
    world.create("invoice", 1, 2)
    wish = MorePartitions("invoice", 3, [[2, 1], [1, 0]])
    assert not world.controller.create_partitions([wish], validate_only=True).records
    world.run(world.controller.create_partitions([wish]))
    assert [state.replicas for state in world.topic("invoice").partitions[1:]] == [(2, 1), (1, 0)]


@pytest.mark.parametrize(
    ("wish", "error"),
    [
        (MorePartitions("absent", 5), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (MorePartitions("invoice", 2), ErrorCode.INVALID_PARTITIONS),
        (MorePartitions("invoice", 1), ErrorCode.INVALID_PARTITIONS),
        (MorePartitions("invoice", -1), ErrorCode.INVALID_PARTITIONS),
        (MorePartitions("invoice", 2**31 - 1), ErrorCode.POLICY_VIOLATION),
        (MorePartitions("invoice", 4, [[0, 1]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (MorePartitions("invoice", 3, [[0]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (MorePartitions("invoice", 3, [[0, 5]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_what_does_not_grow(wish: MorePartitions, error: ErrorCode) -> None:
    world = World(brokers=2)
    world.create("invoice", 2, 2)
    decision = world.controller.create_partitions([wish])
    assert (decision.response[0].error, decision.records) == (error, [])


def test_a_topic_named_twice_does_not_grow() -> None:
    world = World()
    world.create("invoice")
    decision = world.controller.create_partitions([MorePartitions("invoice", 2), MorePartitions("invoice", 3)])
    assert [each.error for each in decision.response] == [ErrorCode.INVALID_REQUEST]


def test_topics_are_deleted_by_name_and_by_id_and_created_anew_with_another_id() -> None:
    world = World()
    invoice, orders = world.create("invoice", configs=[("retention.ms", "5")]), world.create("orders")
    wishes = [TopicToDelete("invoice"), TopicToDelete(topic_id=orders.topic_id)]
    results = world.run(world.controller.delete_topics(wishes))
    assert [(each.name, each.topic_id, each.error) for each in results] == [
        ("invoice", invoice.topic_id, ErrorCode.NONE),
        ("orders", orders.topic_id, ErrorCode.NONE),
    ]
    assert len(world.controller.image.topics) == 0
    assert world.create("invoice").topic_id != invoice.topic_id
    assert world.controller.image.topic_config("invoice") == {}


def test_what_is_not_deleted() -> None:
    world = World()
    topic = world.create("invoice")
    wishes = [
        TopicToDelete("absent"),
        TopicToDelete(topic_id=bytes([9]) * 16),
        TopicToDelete(),
        TopicToDelete("orders", topic.topic_id),
    ]
    decision = world.controller.delete_topics(wishes)
    assert [each.error for each in decision.response] == [
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.INVALID_REQUEST,
    ]
    for twice in ([TopicToDelete("invoice")] * 2, [TopicToDelete("invoice"), TopicToDelete(topic_id=topic.topic_id)]):
        decision = world.controller.delete_topics(twice)
        assert {each.error for each in decision.response} == {ErrorCode.INVALID_REQUEST} and not decision.records
    assert "invoice" in world.controller.image.topics


def test_deletion_can_be_switched_off() -> None:
    world = World(delete_topic_enable="false")
    world.create("invoice")
    decision = world.controller.delete_topics([TopicToDelete("invoice")])
    assert (decision.response[0].error, decision.records) == (ErrorCode.TOPIC_DELETION_DISABLED, [])
