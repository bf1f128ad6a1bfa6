"""ElectLeaders (0-2): leadership back to preferred replicas, or an unclean election where nothing else helps.

Version 0 knows preferred elections only. Without partitions all are meant, and those that need no election are not
spoken of.
"""

from itertools import groupby

from klamm.broker.answer import Answer, Elsewhere, Reply
from klamm.broker.call import Call
from klamm.controller.wishes import ElectedLeader, ElectionType
from klamm.errors import ErrorCode
from klamm.handlers.committing import when_committed
from klamm.ids import TopicPartition
from klamm.wire.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)


def handle(request: ElectLeadersRequest, call: Call) -> Answer:
    controller = call.broker.controller
    if controller is None:
        return Elsewhere()
    if request.election_type not in tuple(ElectionType):
        return Reply(ElectLeadersResponse(error_code=ErrorCode.INVALID_REQUEST))
    partitions = None
    if request.topic_partitions is not None:
        partitions = [
            TopicPartition(topic.topic, index) for topic in request.topic_partitions for index in topic.partitions
        ]
    plan = controller.elect_leaders(ElectionType(request.election_type), partitions)
    return when_committed(call, plan, request.timeout_ms, _response, is_users=True)


def _response(outcome: list[ElectedLeader]) -> ElectLeadersResponse:
    return ElectLeadersResponse(
        replica_election_results=[
            ReplicaElectionResult(
                topic=topic,
                partition_result=[
                    PartitionResult(
                        partition_id=each.partition.partition, error_code=each.error, error_message=each.message
                    )
                    for each in elected
                ],
            )
            for topic, elected in groupby(outcome, key=lambda each: each.partition.topic)
        ]
    )
