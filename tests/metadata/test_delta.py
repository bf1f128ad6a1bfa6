"""Deltas add up to what replaying everything from the beginning gives, and tell truly what changed."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klamm.ids import TopicPartition
from klamm.metadata.delta import Changes, Delta
from klamm.metadata.image import EMPTY, ConfigResource, Image, ResourceType
from klamm.metadata.records import (
    ConfigRecord,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from tests.metadata.histories import Twin, drawn_history

INVOICE, ORDERS = bytes([1]) * 16, bytes([2]) * 16


def replayed(image: Image, *records: MetadataRecord) -> tuple[Image, Changes]:
    delta = Delta(image)
    for record in records:
        delta.replay(record)
    return delta.finished(image.offset + len(records), 1)


def partition(topic_id: bytes, index: int, *replicas: int) -> PartitionRecord:
    return PartitionRecord(
        partition_id=index,
        topic_id=topic_id,
        replicas=list(replicas),
        isr=list(replicas),
        leader=replicas[0],
        leader_epoch=0,
        partition_epoch=0,
        directories=[bytes([replica]) * 16 for replica in replicas],
    )


@given(st.integers(0, 2**32), st.integers(0, 120))
def test_steps_of_any_size_lead_to_the_same_image_as_a_beginners_replay(seed: int, length: int) -> None:
    random, twin = Random(seed), Twin()
    records = drawn_history(random, length)
    image, at_once = EMPTY, Delta(EMPTY)
    kept: list[tuple[Image, Twin]] = []
    while records:
        step = random.randint(1, 10)
        delta = Delta(image)
        for record in records[:step]:
            delta.replay(record)
            at_once.replay(record)
            twin.replay(record)
        before, records = image, records[step:]
        image, changes = delta.finished(image.offset + step, 1)
        tells_the_difference(before, image, changes)
        twin.has_become(image)
        frozen = Twin()
        frozen.topics, frozen.configs = dict(twin.topics), dict(twin.configs)
        kept.append((image, frozen))
    assert at_once.finished(image.offset, image.epoch)[0] == image
    for old, then in kept:
        assert dict(old.topic_names) == {topic_id: topic["name"] for topic_id, topic in then.topics.items()}


def tells_the_difference(before: Image, after: Image, changes: Changes) -> None:
    """What changed, found by comparing everything with everything."""
    created = [topic for topic in after.topics.values() if topic.topic_id not in before.topic_names]
    deleted = [topic for topic in before.topics.values() if topic.topic_id not in after.topic_names]
    assert changes.topics_created == created
    assert changes.topics_deleted == deleted
    different = {
        TopicPartition(name, index)
        for name, topic in after.topics.items()
        if topic.topic_id in before.topic_names
        for index, state in enumerate(topic.partitions)
        if before.partition(name, index) != state
    }
    assert different == set(changes.partitions_changed)
    assert list(changes.partitions_changed) == sorted(changes.partitions_changed)
    resources = set(before.configs) | set(after.configs)
    altered = {each for each in resources if before.config_of(each) != after.config_of(each)}
    gone = {ConfigResource(ResourceType.TOPIC, topic.name) for topic in deleted}
    assert altered - gone <= set(changes.configs_changed)
    brokers = set(before.brokers) | set(after.brokers)
    assert {each for each in brokers if before.brokers.get(each) != after.brokers.get(each)} <= set(
        changes.brokers_changed
    )


def test_naming_the_same_leader_again_begins_a_new_epoch() -> None:
    image, _ = replayed(EMPTY, TopicRecord(name="invoice", topic_id=INVOICE), partition(INVOICE, 0, 1, 2))
    image, changes = replayed(image, PartitionChangeRecord(partition_id=0, topic_id=INVOICE, leader=1))
    state = image.topics["invoice"].partitions[0]
    assert repr(state) == "<leader=1 epoch=1.1 replicas=1,2 isr=1,2>"
    assert changes.partitions_changed == [TopicPartition("invoice", 0)]


def test_a_replica_that_stays_keeps_its_directory() -> None:
    image, _ = replayed(EMPTY, TopicRecord(name="invoice", topic_id=INVOICE), partition(INVOICE, 0, 1, 2))
    image, _ = replayed(image, PartitionChangeRecord(partition_id=0, topic_id=INVOICE, replicas=[2, 3]))
    assert image.topics["invoice"].partitions[0].directories == (bytes([2]) * 16, bytes(16))


def test_a_topic_deleted_and_created_again_is_another_topic_without_the_old_settings() -> None:
    setting = ConfigRecord(resource_type=2, resource_name="invoice", name="retention.ms", value="1")
    image, _ = replayed(EMPTY, TopicRecord(name="invoice", topic_id=INVOICE), setting, partition(INVOICE, 0, 1))
    again, changes = replayed(
        image,
        RemoveTopicRecord(topic_id=INVOICE),
        TopicRecord(name="invoice", topic_id=ORDERS),
        partition(ORDERS, 0, 2),
    )
    assert [topic.topic_id for topic in changes.topics_deleted] == [INVOICE]
    assert [topic.topic_id for topic in changes.topics_created] == [ORDERS]
    assert again.topic_config("invoice") == {} and image.topic_config("invoice") == {"retention.ms": "1"}
    assert again.topic_with_id(INVOICE) is None


def test_a_topic_that_came_and_went_within_one_delta_never_was() -> None:
    image, changes = replayed(
        EMPTY, TopicRecord(name="brief", topic_id=ORDERS), partition(ORDERS, 0, 1), RemoveTopicRecord(topic_id=ORDERS)
    )
    assert (image.topics, changes) == (EMPTY.topics, Changes())


def test_what_did_not_change_is_shared() -> None:
    image, _ = replayed(EMPTY, TopicRecord(name="invoice", topic_id=INVOICE), partition(INVOICE, 0, 1))
    later, _ = replayed(image, RegisterBrokerRecord(broker_id=1))
    assert later.topics is image.topics and later.configs is image.configs


def test_equal_lists_of_replicas_are_one_object() -> None:
    """Ten thousand partitions on three brokers have six lists of replicas between them, not thirty thousand."""
    image, _ = replayed(
        EMPTY,
        TopicRecord(name="invoice", topic_id=INVOICE),
        *[partition(INVOICE, index, 1, 2, 3) for index in range(100)],
    )
    first = image.topics["invoice"].partitions[0]
    assert all(state.replicas is first.replicas for state in image.topics["invoice"].partitions)
    assert first.isr is first.replicas


@pytest.mark.parametrize(
    "impossible",
    [
        partition(ORDERS, 0, 1),
        partition(INVOICE, 2, 1),
        RemoveTopicRecord(topic_id=ORDERS),
        TopicRecord(name="other", topic_id=INVOICE),
    ],
)
def test_a_history_that_cannot_be_is_our_mistake(impossible: MetadataRecord) -> None:
    delta = Delta(EMPTY)
    delta.replay(TopicRecord(name="invoice", topic_id=INVOICE))
    with pytest.raises(AssertionError):
        delta.replay(impossible)
