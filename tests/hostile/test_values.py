"""Requests that can be read, and name or ask for what cannot be."""

import pytest

from klamm.errors import ErrorCode
from klamm.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from klamm.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from klamm.wire.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from klamm.wire.messages.delete_topics import DeleteTopicsRequest
from klamm.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from klamm.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from klamm.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from klamm.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from klamm.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.hostile.batches import batch_of
from tests.hostile.target import NAMED, Target, fetch, produce, wait_for_leader

INT32_MAX = 2**31 - 1


# Names and numbers of topics and partitions.


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "x" * 250, "x" * 32767, "a/b", "../../etc", "a\0b", "a b", "ключ", "a\nb"],
    ids=lambda name: repr(name[:20]),
)
def test_a_topic_with_an_illegal_name_is_refused_everywhere(target: Target, name: str) -> None:
    wanted = MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=True)
    with target.connect() as client:
        created = client.ask(CreateTopicsRequest(topics=[_new(name)], timeout_ms=1000), 7)
        assert created.topics[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
        assert client.ask(wanted, 12).topics[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
        assert _produced(client.ask(produce(name, batch_of(b"x")), NAMED)) in (
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ErrorCode.INVALID_TOPIC_EXCEPTION,
        )
        deleted = client.ask(DeleteTopicsRequest(topic_names=[name], timeout_ms=1000), 5)
        assert deleted.responses[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        known = client.ask(MetadataRequest(topics=None), 12)
        assert name not in [each.name for each in known.topics]


def test_names_that_differ_in_dots_and_underscores_alone_collide(target: Target) -> None:
    with target.connect() as client:
        first = client.ask(CreateTopicsRequest(topics=[_new("a.collision_here")], timeout_ms=5000), 7)
        second = client.ask(CreateTopicsRequest(topics=[_new("a_collision.here")], timeout_ms=5000), 7)
        together = client.ask(CreateTopicsRequest(topics=[_new("one.more"), _new("one_more")], timeout_ms=5000), 7)
    assert first.topics[0].error_code == 0
    assert second.topics[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert [each.error_code for each in together.topics] == [0, ErrorCode.INVALID_TOPIC_EXCEPTION]


@pytest.mark.parametrize("index", [-1, -(2**31), 1, INT32_MAX])
def test_a_partition_that_does_not_exist_is_unknown_everywhere(target: Target, topic: str, index: int) -> None:
    target.create_topic(topic)
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    request = fetch(topic)
    request.topics[0].partitions[0].partition = index
    with target.connect() as client:
        assert _produced(client.ask(produce(topic, batch_of(b"x"), index=index), NAMED)) == unknown
        assert client.ask(request, NAMED).responses[0].partitions[0].error_code == unknown
        offsets = ListOffsetsTopic(name=topic, partitions=[ListOffsetsPartition(partition_index=index, timestamp=-1)])
        assert client.ask(ListOffsetsRequest(topics=[offsets]), 7).topics[0].partitions[0].error_code == unknown
        records = DeleteRecordsTopic(name=topic, partitions=[DeleteRecordsPartition(partition_index=index, offset=0)])
        assert client.ask(DeleteRecordsRequest(topics=[records]), 2).topics[0].partitions[0].error_code == unknown
        epochs = OffsetForLeaderTopic(topic=topic, partitions=[OffsetForLeaderPartition(partition=index)])
        answer = client.ask(OffsetForLeaderEpochRequest(replica_id=-1, topics=[epochs]), 4)
        assert answer.topics[0].partitions[0].error_code == unknown


@pytest.mark.parametrize(
    "partitions, factor, code",
    [
        (0, 1, ErrorCode.INVALID_PARTITIONS),
        (-2, 1, ErrorCode.INVALID_PARTITIONS),
        (1, 0, ErrorCode.INVALID_REPLICATION_FACTOR),
        (1, -2, ErrorCode.INVALID_REPLICATION_FACTOR),
        (1, 32767, ErrorCode.INVALID_REPLICATION_FACTOR),
        (INT32_MAX, 1, ErrorCode.POLICY_VIOLATION),
    ],
)
def test_topics_of_impossible_sizes_are_refused(
    target: Target, topic: str, partitions: int, factor: int, code: ErrorCode
) -> None:
    new = CreatableTopic(name=topic, num_partitions=partitions, replication_factor=factor)
    with target.connect() as client:
        assert client.ask(CreateTopicsRequest(topics=[new], timeout_ms=1000), 7).topics[0].error_code == code


def test_growing_a_topic_to_impossible_sizes_is_refused(target: Target, topic: str) -> None:
    target.create_topic(topic)
    with target.connect() as client:
        for count in (-1, 0, 1, INT32_MAX):
            request = CreatePartitionsRequest(topics=[CreatePartitionsTopic(name=topic, count=count)], timeout_ms=1000)
            assert client.ask(request, 3).results[0].error_code in (
                ErrorCode.INVALID_PARTITIONS,
                ErrorCode.POLICY_VIOLATION,
            )


@pytest.mark.parametrize(
    "value", ["x" * 32_767, "9" * 32_767, "-", "", "1e999", "\x00", "0x10", "١٢"], ids=lambda v: v[:4]
)
def test_a_setting_with_a_nonsense_value_is_refused(target: Target, topic: str, value: str) -> None:
    """The answer names the value, and must not grow too long by it."""
    new = CreatableTopic(
        name=topic,
        num_partitions=1,
        replication_factor=1,
        configs=[CreatableTopicConfig(name="retention.ms", value=value)],
    )
    setting = AlterableConfig(name="message.max.bytes", config_operation=0, value=value)
    of_broker = AlterConfigsResource(resource_type=4, resource_name="0", configs=[setting])
    with target.connect() as client:
        created = client.ask(CreateTopicsRequest(topics=[new], timeout_ms=1000), 7)
        assert created.topics[0].error_code == ErrorCode.INVALID_CONFIG
        altered = client.ask(IncrementalAlterConfigsRequest(resources=[of_broker]), 1)
        assert altered.responses[0].error_code in (ErrorCode.INVALID_CONFIG, ErrorCode.INVALID_REQUEST)


@pytest.mark.parametrize("name", ["x" * 32_767, "", "a\nb", "retention.m"], ids=lambda v: v[:4])
def test_a_setting_that_does_not_exist_is_refused(target: Target, topic: str, name: str) -> None:
    new = CreatableTopic(
        name=topic, num_partitions=1, replication_factor=1, configs=[CreatableTopicConfig(name=name, value="1")]
    )
    with target.connect() as client:
        created = client.ask(CreateTopicsRequest(topics=[new], timeout_ms=1000), 7)
        assert created.topics[0].error_code == ErrorCode.INVALID_CONFIG


# The same thing twice in one request.


def test_a_topic_named_twice_is_refused_or_answered_once(target: Target, topic: str) -> None:
    with target.connect() as client:
        created = client.ask(CreateTopicsRequest(topics=[_new(topic), _new(topic)], timeout_ms=1000), 7)
        assert [each.error_code for each in created.topics] == [ErrorCode.INVALID_REQUEST]
        twice = MetadataRequest(topics=[MetadataRequestTopic(name=topic)] * 2, allow_auto_topic_creation=True)
        answer = client.ask(twice, 12)
        assert [each.name for each in answer.topics] == [topic]
        assert answer.topics[0].error_code in (
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ErrorCode.LEADER_NOT_AVAILABLE,
        ), "it is being created"
        wait_for_leader(client, topic)
        deleted = client.ask(DeleteTopicsRequest(topic_names=[topic, topic], timeout_ms=1000), 5)
        assert {each.error_code for each in deleted.responses} == {ErrorCode.INVALID_REQUEST}


def test_a_partition_asked_for_twice_in_list_offsets_is_an_invalid_request(target: Target, topic: str) -> None:
    target.create_topic(topic)
    wanted = ListOffsetsPartition(partition_index=0, timestamp=-1)
    request = ListOffsetsRequest(topics=[ListOffsetsTopic(name=topic, partitions=[wanted, wanted])])
    with target.connect() as client:
        codes = {each.error_code for each in client.ask(request, 7).topics[0].partitions}
    assert codes == {ErrorCode.INVALID_REQUEST}


def test_a_partition_fetched_twice_is_answered(target: Target, topic: str) -> None:
    target.create_topic(topic)
    request = fetch(topic)
    request.topics[0].partitions *= 3
    request.topics *= 3
    with target.connect() as client:
        client.ask(produce(topic, batch_of(b"x")), NAMED)
        for version in (4, 11, NAMED):
            found = client.ask(request, version).responses
            assert {data.error_code for each in found for data in each.partitions} == {0}


def test_a_partition_produced_to_twice_in_one_request_is_answered(target: Target, topic: str) -> None:
    target.create_topic(topic)
    data = [PartitionProduceData(index=0, records=batch_of(b"x")) for _ in range(3)]
    request = ProduceRequest(acks=1, timeout_ms=1000, topic_data=[TopicProduceData(name=topic, partition_data=data)])
    with target.connect() as client:
        response = client.ask(request, NAMED)
    assert {each.error_code for each in response.responses[0].partition_responses} <= {0, ErrorCode.INVALID_REQUEST}


# Numbers that say how, how long and how much.


@pytest.mark.parametrize("acks", [-2, 2, 3, 32767, -32768])
def test_acks_other_than_none_one_and_all_are_refused(target: Target, topic: str, acks: int) -> None:
    target.create_topic(topic)
    with target.connect() as client:
        response = client.ask(produce(topic, batch_of(b"x"), acks=acks), NAMED)
        assert _produced(response) == ErrorCode.INVALID_REQUIRED_ACKS
        assert client.ask(fetch(topic), NAMED).responses[0].partitions[0].high_watermark == 0


def test_acks_0_gets_no_answer_and_an_error_closes_the_connection(target: Target, topic: str) -> None:
    """TRAPS 18."""
    target.create_topic(topic)
    with target.connect() as client:
        client.post(produce(topic, batch_of(b"x"), acks=0), NAMED)
        assert client.ask(fetch(topic, wait_ms=5000), NAMED).responses[0].partitions[0].high_watermark == 1
        client.post(produce(topic, b"no batch", acks=0), NAMED)
        assert client.is_closed_by_broker()


@pytest.mark.parametrize("timeout_ms", [-1, -(2**31), 0, INT32_MAX])
def test_any_timeout_is_taken(target: Target, topic: str, timeout_ms: int) -> None:
    with target.connect() as client:
        created = client.ask(CreateTopicsRequest(topics=[_new(topic)], timeout_ms=timeout_ms), 7)
        assert created.topics[0].error_code in (0, ErrorCode.REQUEST_TIMED_OUT)
        wait_for_leader(client, topic)
        request = produce(topic, batch_of(b"x"), acks=-1)
        request.timeout_ms = timeout_ms
        assert _produced(client.ask(request, NAMED)) in (0, ErrorCode.REQUEST_TIMED_OUT)


@pytest.mark.parametrize("offset", [-1, -2, -(2**63), 2, 2**63 - 1])
def test_an_offset_outside_the_log_is_out_of_range(target: Target, topic: str, offset: int) -> None:
    target.create_topic(topic)
    with target.connect() as client:
        client.ask(produce(topic, batch_of(b"x")), NAMED)
        found = client.ask(fetch(topic, offset), NAMED).responses[0].partitions[0]
        assert found.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        wanted = DeleteRecordsPartition(partition_index=0, offset=offset)
        records = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name=topic, partitions=[wanted])])
        answer = client.ask(records, 2).topics[0].partitions[0]
        assert answer.error_code == (0 if offset == -1 else ErrorCode.OFFSET_OUT_OF_RANGE)


@pytest.mark.parametrize(
    "epoch, code",
    [
        (-1, 0),
        (0, 0),
        (-2, ErrorCode.FENCED_LEADER_EPOCH),
        (-(2**31), ErrorCode.FENCED_LEADER_EPOCH),
        (1, ErrorCode.UNKNOWN_LEADER_EPOCH),
        (INT32_MAX, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ],
)
def test_a_leader_epoch_that_is_not_the_leaders_is_told_so(
    target: Target, topic: str, epoch: int, code: ErrorCode
) -> None:
    target.create_topic(topic)
    request = fetch(topic)
    request.topics[0].partitions[0].current_leader_epoch = epoch
    with target.connect() as client:
        assert client.ask(request, NAMED).responses[0].partitions[0].error_code == code


@pytest.mark.parametrize("size", [0, 1, -1, -(2**31), INT32_MAX])
def test_any_size_of_a_fetch_is_answered_with_at_least_one_batch(target: Target, topic: str, size: int) -> None:
    target.create_topic(topic)
    batch = batch_of(b"x" * 500)
    with target.connect() as client:
        client.ask(produce(topic, batch), NAMED)
        for request in (fetch(topic, max_bytes=size), fetch(topic)):
            request.topics[0].partitions[0].partition_max_bytes = size
            found = client.ask(request, NAMED).responses[0].partitions[0]
            assert found.error_code == 0 and len(found.records) in (0, len(batch))


def test_a_fetch_of_a_session_nobody_opened_is_told_so(target: Target, topic: str) -> None:
    target.create_topic(topic)
    request = fetch(topic)
    with target.connect() as client:
        for session_id, epoch in ((12345, 1), (-1, 5), (INT32_MAX, INT32_MAX), (0, -5), (-(2**31), -(2**31))):
            request.session_id, request.session_epoch = session_id, epoch
            assert client.ask(request, NAMED).error_code in (
                ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
                ErrorCode.INVALID_FETCH_SESSION_EPOCH,
            )


def test_a_client_that_calls_itself_a_replica_learns_and_changes_nothing(target: Target, topic: str) -> None:
    """CVE-2018-1288: such a fetch once moved watermarks."""
    target.create_topic(topic)
    request = fetch(topic, 0)
    request.replica_id = 7
    with target.connect() as client:
        client.ask(produce(topic, batch_of(b"x")), NAMED)
        client.ask(request, NAMED)
        assert client.ask(fetch(topic), NAMED).responses[0].partitions[0].high_watermark == 1


def _new(name: str) -> CreatableTopic:
    return CreatableTopic(name=name, num_partitions=1, replication_factor=1)


def _produced(response: object) -> int:
    code: int = response.responses[0].partition_responses[0].error_code  # type: ignore[attr-defined]
    return code
