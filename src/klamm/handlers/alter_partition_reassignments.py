"""AlterPartitionReassignments (0-1): partitions shall move to other brokers, or stop moving.

The answer comes when the move has begun; ListPartitionReassignments tells what is still under way.
"""

from itertools import groupby

from klamm.broker.answer import Answer, Elsewhere
from klamm.broker.call import Call
from klamm.controller.wishes import Reassignment, ReassignmentResult
from klamm.handlers.committing import when_committed
from klamm.ids import TopicPartition
from klamm.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)


def handle(request: AlterPartitionReassignmentsRequest, call: Call) -> Answer:
    controller = call.broker.controller
    if controller is None:
        return Elsewhere()
    allow = request.allow_replication_factor_change
    wishes = [
        Reassignment(TopicPartition(topic.name, each.partition_index), each.replicas)
        for topic in request.topics
        for each in topic.partitions
    ]

    def response(outcome: list[ReassignmentResult]) -> AlterPartitionReassignmentsResponse:
        return AlterPartitionReassignmentsResponse(
            allow_replication_factor_change=allow,
            responses=[
                ReassignableTopicResponse(name=name, partitions=[_result(each) for each in results])
                for name, results in groupby(outcome, key=lambda each: each.partition.topic)
            ],
        )

    plan = controller.reassign(wishes, allow_replication_factor_change=allow)
    return when_committed(call, plan, request.timeout_ms, response, is_users=True)


def _result(result: ReassignmentResult) -> ReassignablePartitionResponse:
    return ReassignablePartitionResponse(
        partition_index=result.partition.partition, error_code=result.error, error_message=result.message
    )
