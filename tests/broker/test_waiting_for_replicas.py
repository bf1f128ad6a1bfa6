"""Requests that are answered when followers have done something, or when it is clear that they will not."""

from typing import Any

from klamm.errors import ErrorCode
from klamm.handlers import delete_records, list_offsets, produce
from klamm.ids import BrokerId
from klamm.records.builder import BatchBuilder
from klamm.wire.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from klamm.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from klamm.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.broker.toy_controller import TOPIC, TOPIC_ID
from tests.broker.world import World

LATEST = -1


def world_with_records(*placement: list[BrokerId]) -> World:
    world = World(3)
    world.create_topic(*(placement or ([0, 1, 2],)), min_insync_replicas="2")
    world.settle_all()
    for number in range(4):
        world[0].produce(b"%d" % number)
    world.settle_all()
    return world


# DeleteRecords.


def delete(world: World, before: int) -> list[Any]:
    wish = DeleteRecordsPartition(partition_index=0, offset=before)
    request = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name=TOPIC, partitions=[wish])], timeout_ms=10_000)
    answers: list[Any] = []
    world[0].ask(delete_records.handle, request, 2, lambda response: answers.append(response.topics[0].partitions[0]))
    return answers


def test_records_are_deleted_when_every_replica_that_is_alive_has_moved_its_beginning() -> None:
    world = world_with_records()
    answers = delete(world, 3)
    world.settle_all(deaf=frozenset({2}))
    assert not answers
    world.settle_all()
    (answer,) = answers
    assert (answer.error_code, answer.low_watermark) == (ErrorCode.NONE, 3)


def test_a_replica_that_dies_is_not_waited_for() -> None:
    world = world_with_records()
    answers = delete(world, 3)
    world[2].kill()
    world.settle_all()
    assert not answers
    world.controller.fence(2)
    world.settle_all()
    assert answers[0].low_watermark == 3


def test_a_deletion_that_a_replica_does_not_follow_times_out() -> None:
    world = world_with_records()
    answers = delete(world, 3)
    world.settle_all(deaf=frozenset({2}))
    world.advance(10_000)
    assert answers[0].error_code == ErrorCode.REQUEST_TIMED_OUT


def test_a_deletion_by_a_leader_that_is_none_any_more_is_refused() -> None:
    world = world_with_records()
    answers = delete(world, 3)
    world.controller.elect(0, 1)
    world[0].follow_all()
    assert answers[0].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


# ListOffsets.


def latest(world: World, broker_id: BrokerId, version: int = 7) -> tuple[ErrorCode, int]:
    wanted = ListOffsetsPartition(partition_index=0, timestamp=LATEST)
    request = ListOffsetsRequest(topics=[ListOffsetsTopic(name=TOPIC, partitions=[wanted])])
    answers: list[Any] = []
    world[broker_id].ask(list_offsets.handle, request, version, answers.append)
    (answer,) = answers[0].topics[0].partitions
    return ErrorCode(answer.error_code), answer.offset


def test_the_end_that_people_are_told_never_goes_back() -> None:
    """A new leader knows of fewer committed records than the old one told, until the others have fetched from it."""
    world = world_with_records()
    assert latest(world, 0) == (ErrorCode.NONE, 4)
    world[0].kill()
    world.controller.fence(0)
    world[1].follow_all()
    assert world[1].partition().high_watermark < 4
    assert latest(world, 1) == (ErrorCode.OFFSET_NOT_AVAILABLE, -1)
    assert latest(world, 1, version=4)[0] == ErrorCode.LEADER_NOT_AVAILABLE
    world.settle_all()
    assert latest(world, 1) == (ErrorCode.NONE, 4)


# Produce.


def produce_to_both(world: World, value: bytes) -> list[Any]:
    builder = BatchBuilder()
    builder.append(None, value, world.now.wall_ms)
    parts = [PartitionProduceData(index=index, records=memoryview(builder.build())) for index in (0, 1)]
    request = ProduceRequest(
        acks=-1, timeout_ms=600_000, topic_data=[TopicProduceData(topic_id=TOPIC_ID, partition_data=parts)]
    )
    answers: list[Any] = []
    world[0].ask(produce.handle, request, 13, answers.append)
    return answers


def test_a_batch_whose_leader_stepped_down_meanwhile_is_not_acknowledged_for_somebody_elses() -> None:
    """One request, two partitions. The first is led by another for a while, who writes at the same offset, and comes
    back; the second is committed only then. What stands at the offset now is not what was sent."""
    world = World(3)
    world.create_topic([0, 1], [0, 2])
    world.settle_all()
    answers = produce_to_both(world, b"mine")
    world.controller.elect(0, 1)
    for number in (1, 0):
        world[number].follow_all()
    world[1].produce(b"theirs")
    world.settle_all(deaf=frozenset({2}))
    world.advance(1_000)
    world.settle_all(deaf=frozenset({2}))
    world.controller.elect(0, 0)
    world.settle_all(deaf=frozenset({2}))
    assert [value for _, _, value in world[0].records(0)] == [b"theirs"] and not answers
    world.settle_all()
    first, second = answers[0].responses[0].partition_responses
    assert first.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert second.error_code == ErrorCode.NONE


def test_a_new_epoch_of_the_same_leader_keeps_its_word() -> None:
    world = world_with_records()
    answers = world[0].produce(b"more")
    world.controller.elect(0, 0)
    world.settle_all()
    world.advance(100)
    world.settle_all()
    assert answers[0].error_code == ErrorCode.NONE and answers[0].base_offset == 4
