"""Traps 11 to 17 and 53: metadata, topics, topic ids, leader epochs, configs."""

import pytest

from klamm.errors import ErrorCode
from klamm.wire.messages.alter_configs import AlterableConfig, AlterConfigsRequest, AlterConfigsResource
from klamm.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from klamm.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from klamm.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
)
from klamm.wire.messages.incremental_alter_configs import AlterableConfig as IncrementalConfig
from klamm.wire.messages.incremental_alter_configs import AlterConfigsResource as IncrementalResource
from klamm.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from klamm.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from klamm.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from tests.harness.fixtures import StartNode
from tests.harness.node import Node
from tests.harness.raw import Raw
from tests.harness.requests import (
    EARLIEST,
    LATEST,
    batch_of,
    create,
    fetch,
    fetch_request,
    metadata_of,
    offset_at,
    produce,
    produce_request,
)
from tests.harness.waiting import wait_until

ZERO_ID = bytes(16)
TOPIC, BROKER = 2, 4
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3
DYNAMIC_TOPIC, DEFAULT = 1, 5
WRONG_NAMES = ["", ".", "..", "a" * 250, "two words", "ümlaut", "a/b"]


@pytest.mark.parametrize("version", range(14))
def test_trap_11_null_asks_for_all_topics_and_empty_for_none(raw: Raw, topic: str, version: int) -> None:
    """But in version 0, which has no null, empty asks for all."""
    create(raw, topic)
    none = raw.call("Metadata", version, MetadataRequest(topics=[]))
    if version == 0:
        assert topic in [found.name for found in none.topics]
        return
    assert none.topics == []
    assert topic in [found.name for found in raw.call("Metadata", version, MetadataRequest(topics=None)).topics]


def test_trap_11_topics_may_be_asked_for_by_id_from_version_12_on(raw: Raw, topic: str) -> None:
    topic_id = create(raw, topic)
    by_id = MetadataRequest([MetadataRequestTopic(topic_id, None)])
    (found,) = raw.call("Metadata", 12, by_id).topics
    assert (found.name, found.topic_id, found.error_code) == (topic, topic_id, ErrorCode.NONE)
    (unknown,) = raw.call("Metadata", 12, MetadataRequest([MetadataRequestTopic(b"x" * 16, None)])).topics
    assert (unknown.name, unknown.error_code) == (None, ErrorCode.UNKNOWN_TOPIC_ID)


@pytest.mark.parametrize("version", [10, 11])
def test_trap_11_versions_10_and_11_may_not_ask_by_id(raw: Raw, topic: str, version: int) -> None:
    topic_id = create(raw, topic)
    (refused,) = raw.call("Metadata", version, MetadataRequest([MetadataRequestTopic(topic_id, topic)])).topics
    assert refused.error_code == ErrorCode.INVALID_REQUEST


def test_trap_12_the_controller_is_a_broker_that_creates_topics(node: Node, raw: Raw, topic: str) -> None:
    """Admin clients send CreateTopics to whoever is named there."""
    answer = raw.call("Metadata", 12, MetadataRequest(topics=[]))
    named = {broker.node_id: broker for broker in answer.brokers}[answer.controller_id]
    assert f"{named.host}:{named.port}" == node.bootstrap
    create(raw, topic)


def test_trap_13_a_topic_comes_into_being_when_a_producer_asks_for_it(raw: Raw, topic: str) -> None:
    """The first answer says that it is not there yet, a later one that it is."""
    first = metadata_of(raw, topic, auto_create=True).error_code
    assert first in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.LEADER_NOT_AVAILABLE)
    wait_until(lambda: metadata_of(raw, topic, auto_create=True).error_code == 0, "the topic is there")
    assert len(metadata_of(raw, topic).partitions) == 1


def test_trap_13_it_does_not_when_the_request_forbids_it(raw: Raw, topic: str) -> None:
    for _ in range(3):
        assert metadata_of(raw, topic, auto_create=False).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    everything = raw.call("Metadata", 12, MetadataRequest(topics=None)).topics
    assert topic not in [found.name for found in everything]


@pytest.mark.parametrize("name", WRONG_NAMES, ids=lambda name: name[:5] or "empty")
def test_trap_13_a_wrong_name_is_an_invalid_topic(raw: Raw, name: str) -> None:
    assert metadata_of(raw, name, auto_create=True).error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    (result,) = raw.call("CreateTopics", 7, CreateTopicsRequest([CreatableTopic(name, 1, 1)])).topics
    assert result.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_trap_13_the_longest_name_is_not(raw: Raw) -> None:
    name = "A-z_0.9" + "a" * 242
    create(raw, name)
    assert metadata_of(raw, name).error_code == ErrorCode.NONE


def test_trap_14_clients_are_told_the_advertised_address(start_node: StartNode) -> None:
    node = start_node(advertise="localhost:4711")
    with Raw(node.port) as raw:
        (broker,) = raw.call("Metadata", 12, MetadataRequest(topics=[])).brokers
    assert (broker.host, broker.port) == ("localhost", 4711)


def test_trap_15_every_api_means_the_same_topic_by_an_id(raw: Raw, topic: str) -> None:
    """CreateTopics gives it, Metadata shows it, Produce and Fetch take it."""
    topic_id = create(raw, topic)
    assert topic_id != ZERO_ID and metadata_of(raw, topic).topic_id == topic_id
    answer = raw.call("Produce", 13, produce_request(topic_id, batch_of(b"by id"))).responses
    assert (answer[0].topic_id, answer[0].partition_responses[0].error_code) == (topic_id, 0)
    for version in range(13, 19):
        found = raw.call("Fetch", version, fetch_request(topic_id, 0)).responses[0]
        assert found.topic_id == topic_id and b"by id" in bytes(found.partitions[0].records)


def test_trap_15_a_wrong_id_is_unknown(raw: Raw, topic: str) -> None:
    create(raw, topic)
    for wrong in (b"w" * 16, ZERO_ID):
        produced = raw.call("Produce", 13, produce_request(wrong, batch_of(b"x"))).responses[0].partition_responses[0]
        assert produced.error_code == ErrorCode.UNKNOWN_TOPIC_ID
        assert fetch(raw, wrong, 0, version=13).error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_trap_15_a_topic_made_again_has_a_new_id_and_none_of_the_old_records(raw: Raw, topic: str) -> None:
    old = create(raw, topic)
    produce(raw, topic, batch_of(b"old"))
    raw.call("DeleteTopics", 6, DeleteTopicsRequest([DeleteTopicState(topic)], timeout_ms=10_000))
    wait_until(lambda: metadata_of(raw, topic).error_code != 0, "the topic is gone")
    new = create(raw, topic)
    assert new != old
    assert fetch(raw, old, 0, version=13).error_code == ErrorCode.UNKNOWN_TOPIC_ID
    part = fetch(raw, new, 0, version=13)
    assert (part.error_code, part.high_watermark, bytes(part.records or b"")) == (0, 0, b"")


def test_trap_16_a_leader_epoch_is_checked_unless_it_is_minus_one(fresh_node: Node) -> None:
    """Newer than the leader's: UNKNOWN_LEADER_EPOCH. Older: FENCED_LEADER_EPOCH."""
    with Raw(fresh_node.port) as raw:
        create(raw, "epochs")
        assert _codes_at_epoch(raw, -1) == [ErrorCode.NONE] * 3
        epoch = metadata_of(raw, "epochs").partitions[0].leader_epoch
        assert epoch >= 0
        assert _codes_at_epoch(raw, epoch) == [ErrorCode.NONE] * 3
        assert _codes_at_epoch(raw, epoch + 1) == [ErrorCode.UNKNOWN_LEADER_EPOCH] * 3
    fresh_node.kill9()
    fresh_node.restart()
    with Raw(fresh_node.port) as raw:
        wait_until(lambda: metadata_of(raw, "epochs").partitions[0].leader_id == 0, "there is a leader again")
        wait_until(lambda: offset_at(raw, "epochs", LATEST).error_code == 0, "and it answers")
        later = metadata_of(raw, "epochs").partitions[0].leader_epoch
        assert later > epoch, "who comes back from kill -9 leads anew; librdkafka ignores metadata of a lower epoch"
        assert _codes_at_epoch(raw, later) == [ErrorCode.NONE] * 3
        assert _codes_at_epoch(raw, epoch) == [ErrorCode.FENCED_LEADER_EPOCH] * 3


def test_trap_17_counts_not_given_are_the_brokers_and_the_answer_says_which(raw: Raw, topic: str) -> None:
    wish = CreatableTopic(topic, -1, -1, configs=[CreatableTopicConfig("retention.ms", "7000000")])
    (result,) = raw.call("CreateTopics", 7, CreateTopicsRequest([wish])).topics
    assert (result.error_code, result.num_partitions, result.replication_factor) == (0, 1, 1)
    sources = {config.name: (config.value, config.config_source) for config in result.configs or ()}
    assert sources["retention.ms"] == ("7000000", DYNAMIC_TOPIC)
    assert sources["max.message.bytes"] == ("1048588", DEFAULT)


def test_trap_17_validate_only_creates_nothing(raw: Raw, topic: str) -> None:
    request = CreateTopicsRequest([CreatableTopic(topic, 3, 1)], validate_only=True)
    (result,) = raw.call("CreateTopics", 7, request).topics
    assert (result.error_code, result.num_partitions) == (0, 3)
    assert metadata_of(raw, topic).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    (wrong,) = raw.call(
        "CreateTopics", 7, CreateTopicsRequest([CreatableTopic(topic, 0, 1)], validate_only=True)
    ).topics
    assert wrong.error_code == ErrorCode.INVALID_PARTITIONS


def test_trap_17_what_cannot_be_created(raw: Raw, topic: str) -> None:
    create(raw, topic)
    wishes = {
        ErrorCode.TOPIC_ALREADY_EXISTS: CreatableTopic(topic, 1, 1),
        ErrorCode.INVALID_REPLICATION_FACTOR: CreatableTopic(f"{topic}-r", 1, 3),
        ErrorCode.INVALID_PARTITIONS: CreatableTopic(f"{topic}-p", 0, 1),
        ErrorCode.INVALID_CONFIG: CreatableTopic(f"{topic}-c", 1, 1, configs=[CreatableTopicConfig("no.such", "1")]),
    }
    results = raw.call("CreateTopics", 7, CreateTopicsRequest(list(wishes.values()))).topics
    assert {found.name: found.error_code for found in results} == {wish.name: code for code, wish in wishes.items()}
    twice = raw.call("CreateTopics", 7, CreateTopicsRequest([CreatableTopic(f"{topic}-2", 1, 1)] * 2)).topics
    assert {found.error_code for found in twice} == {ErrorCode.INVALID_REQUEST}


def test_trap_17_every_config_is_described_with_default_source_and_synonyms(raw: Raw, topic: str) -> None:
    """Tools read all, change one and write all back: what is not shown would be wiped."""
    create(raw, topic, config={"retention.ms": "7000000"})
    shown = {config.name: config for config in _described(raw, TOPIC, topic)}
    assert len(shown) >= 30
    retention = shown["retention.ms"]
    assert (retention.value, retention.config_source, retention.is_sensitive) == ("7000000", DYNAMIC_TOPIC, False)
    assert [(one.name, one.value, one.source) for one in shown["segment.bytes"].synonyms] == [
        ("log.segment.bytes", "1073741824", DEFAULT)
    ]
    assert all(config.value is not None for config in shown.values())
    assert all(config.config_source == DEFAULT for config in shown.values() if config.name not in SET_SOMEWHERE)
    assert len(_described(raw, BROKER, "0")) > 150


def test_trap_17_lists_can_be_appended_to_and_subtracted_from(raw: Raw, topic: str) -> None:
    create(raw, topic)

    def change(operation: int, name: str, value: str | None) -> int:
        resource = IncrementalResource(TOPIC, topic, [IncrementalConfig(name, operation, value)])
        (answer,) = raw.call("IncrementalAlterConfigs", 1, IncrementalAlterConfigsRequest([resource])).responses
        return int(answer.error_code)

    def policy_becomes(value: str) -> None:
        wait_until(lambda: _value(raw, topic, "cleanup.policy") == value, f"cleanup.policy={value}")

    assert change(APPEND, "cleanup.policy", "compact") == ErrorCode.NONE
    policy_becomes("delete,compact")
    assert change(APPEND, "cleanup.policy", "compact") == ErrorCode.NONE, "already there: nothing changes"
    assert change(SUBTRACT, "cleanup.policy", "delete") == ErrorCode.NONE
    policy_becomes("compact")
    assert change(DELETE, "cleanup.policy", None) == ErrorCode.NONE
    policy_becomes("delete")
    assert change(APPEND, "retention.ms", "1") == ErrorCode.INVALID_CONFIG, "that is no list"
    assert change(SET, "retention.ms", "soon") == ErrorCode.INVALID_CONFIG
    assert change(SET, "no.such.config", "1") == ErrorCode.INVALID_CONFIG


def test_trap_17_the_old_alter_configs_replaces_all(raw: Raw, topic: str) -> None:
    create(raw, topic, config={"retention.ms": "7000000", "max.message.bytes": "5000"})
    resource = AlterConfigsResource(TOPIC, topic, [AlterableConfig("retention.ms", "8000000")])
    (answer,) = raw.call("AlterConfigs", 2, AlterConfigsRequest([resource])).responses
    assert answer.error_code == ErrorCode.NONE
    wait_until(lambda: _value(raw, topic, "retention.ms") == "8000000", "the new value is there")
    assert _value(raw, topic, "max.message.bytes") == "1048588", "what was not named is back at its default"


def test_trap_53_the_cluster_keeps_its_id(fresh_node: Node) -> None:
    """Over a clean restart and over kill -9; and the newest Metadata has no error on top."""
    seen = set()
    for stop in (fresh_node.stop, fresh_node.kill9, None):
        with Raw(fresh_node.port) as raw:
            answer = raw.call("Metadata", 13, MetadataRequest(topics=None))
            assert answer.error_code == ErrorCode.NONE
            seen.add(answer.cluster_id)
        if stop is not None:
            stop()
            fresh_node.restart()
    assert len(seen) == 1 and len(seen.pop() or "") == 22


SET_SOMEWHERE = {"retention.ms", "min.insync.replicas"}  # Kafka sets the latter for a new cluster.


def _described(raw: Raw, kind: int, name: str) -> list[DescribeConfigsResourceResult]:
    request = DescribeConfigsRequest([DescribeConfigsResource(kind, name, None)], include_synonyms=True)
    (result,) = raw.call("DescribeConfigs", 4, request).results
    assert result.error_code == ErrorCode.NONE
    configs: list[DescribeConfigsResourceResult] = result.configs
    return configs


def _value(raw: Raw, topic: str, config: str) -> str | None:
    return {shown.name: shown.value for shown in _described(raw, TOPIC, topic)}[config]


def _codes_at_epoch(raw: Raw, epoch: int) -> list[int]:
    """What Fetch, ListOffsets and OffsetForLeaderEpoch say to a client that believes in this leader epoch."""
    asked = OffsetForLeaderPartition(0, current_leader_epoch=epoch, leader_epoch=0)
    ends = raw.call(
        "OffsetForLeaderEpoch", 4, OffsetForLeaderEpochRequest(-1, [OffsetForLeaderTopic("epochs", [asked])])
    )
    return [
        fetch(raw, "epochs", 0, leader_epoch=epoch).error_code,
        offset_at(raw, "epochs", EARLIEST, leader_epoch=epoch).error_code,
        ends.topics[0].partitions[0].error_code,
    ]
