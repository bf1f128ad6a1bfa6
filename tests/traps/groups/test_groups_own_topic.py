"""The topic that groups live in is the brokers' own: nobody else writes to it, or takes from it."""

from klamm.errors import ErrorCode
from klamm.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from klamm.wire.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from tests.harness.fixtures import StartNode
from tests.harness.groups import SETTINGS
from tests.harness.node import under_test
from tests.harness.raw import Raw
from tests.harness.requests import batch_of, metadata_of, produce_request
from tests.harness.waiting import wait_until

OFFSETS = "__consumer_offsets"


def test_clients_do_not_write_to_it(raw: Raw, group: str) -> None:
    answer = raw.call("Produce", 9, produce_request(OFFSETS, batch_of(b"a record", key=b"a key")))
    assert answer.responses[0].partition_responses[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_nor_delete_from_it(raw: Raw, group: str) -> None:
    wish = DeleteRecordsTopic(OFFSETS, [DeleteRecordsPartition(0, -1)])
    answer = raw.call("DeleteRecords", 2, DeleteRecordsRequest([wish], 1_000))
    assert answer.topics[0].partitions[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_nor_give_it_more_partitions(raw: Raw, group: str) -> None:
    """Every group would look for its offsets elsewhere. (Kafka allows it, and coordinators that run do not look.)"""
    if under_test() == "kafka":
        return
    wish = CreatePartitionsTopic(OFFSETS, 10)
    answer = raw.call("CreatePartitions", 3, CreatePartitionsRequest([wish], 1_000, False))
    assert answer.results[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_whoever_asks_for_it_first_has_it_created_as_it_should_be(start_node: StartNode) -> None:
    node = start_node(SETTINGS)
    with Raw(node.port) as raw:
        metadata_of(raw, OFFSETS, auto_create=True)
        wait_until(lambda: metadata_of(raw, OFFSETS).error_code == 0, "it is there")
        assert len(metadata_of(raw, OFFSETS).partitions) == int(SETTINGS["offsets.topic.num.partitions"])
