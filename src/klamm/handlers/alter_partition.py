"""AlterPartition (2-3): the leader of partitions asks the controller for other in-sync replicas.

From version 3 on it says in which life it saw each of them.
"""

from itertools import groupby

from klamm.broker.answer import Answer, Reply
from klamm.broker.call import Call
from klamm.broker.speaker import check_speaker
from klamm.controller.alterations import EPOCH_NOT_KNOWN
from klamm.controller.wishes import AlteredPartition, PartitionAlteration
from klamm.errors import ErrorCode, KafkaError
from klamm.handlers.committing import BROKERS_WAITING_MS, when_committed
from klamm.ids import BrokerId
from klamm.wire.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    PartitionData,
    PartitionDataResponse,
    TopicDataResponse,
)

FIRST_VERSION_WITH_EPOCHS = 3
RECOVERING = 1


def handle(request: AlterPartitionRequest, call: Call) -> Answer:
    controller = call.broker.controller
    if controller is None:
        return Reply(AlterPartitionResponse(error_code=ErrorCode.NOT_CONTROLLER))
    wishes = [
        PartitionAlteration(
            topic_id=topic.topic_id,
            index=each.partition_index,
            leader_epoch=each.leader_epoch,
            partition_epoch=each.partition_epoch,
            isr=_isr(each, call.version),
            recovering=each.leader_recovery_state == RECOVERING,
        )
        for topic in request.topics
        for each in topic.partitions
    ]
    try:
        check_speaker(call, request.broker_id)
    except KafkaError as error:
        return Reply(AlterPartitionResponse(error_code=error.code))
    plan = controller.alter_partition(request.broker_id, request.broker_epoch, wishes)
    return when_committed(
        call, plan, BROKERS_WAITING_MS, _response, refused=lambda code: AlterPartitionResponse(error_code=code)
    )


def _isr(partition: PartitionData, version: int) -> list[tuple[BrokerId, int]]:
    if version < FIRST_VERSION_WITH_EPOCHS:
        return [(broker_id, EPOCH_NOT_KNOWN) for broker_id in partition.new_isr]
    return [(each.broker_id, each.broker_epoch) for each in partition.new_isr_with_epochs]


def _response(outcome: list[AlteredPartition]) -> AlterPartitionResponse:
    return AlterPartitionResponse(
        topics=[
            TopicDataResponse(topic_id=topic_id, partitions=[_partition(each) for each in partitions])
            for topic_id, partitions in groupby(outcome, key=lambda each: each.topic_id)
        ]
    )


def _partition(altered: AlteredPartition) -> PartitionDataResponse:
    return PartitionDataResponse(
        partition_index=altered.index,
        error_code=altered.error,
        leader_id=altered.leader,
        leader_epoch=altered.leader_epoch,
        isr=list(altered.isr),
        leader_recovery_state=int(altered.recovering),
        partition_epoch=altered.partition_epoch,
    )
