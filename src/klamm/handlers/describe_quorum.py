"""DescribeQuorum (0-2): who leads the metadata quorum, and how far its voters and observers are.

Only the leader knows; every other node sends the request on to it.
"""

from klamm.broker.answer import Answer, Elsewhere, Reply
from klamm.broker.call import Call
from klamm.errors import ErrorCode
from klamm.quorum.messages import ReplicaDescription
from klamm.quorum.raft import TOPIC
from klamm.quorum.voters import LISTENER
from klamm.wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    Listener,
    Node,
    PartitionDataResponse,
    ReplicaState,
    TopicDataResponse,
)


def handle(request: DescribeQuorumRequest, call: Call) -> Answer:
    quorum = call.broker.quorum
    if not quorum.is_leader:
        return Elsewhere()
    response = DescribeQuorumResponse()
    for topic in request.topics:
        partitions = [
            _described(call)
            if (topic.topic_name, each.partition_index) == (TOPIC, 0)
            else PartitionDataResponse(
                partition_index=each.partition_index, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            )
            for each in topic.partitions
        ]
        response.topics.append(TopicDataResponse(topic_name=topic.topic_name, partitions=partitions))
    response.nodes = [
        Node(node_id=node_id, listeners=[Listener(name=LISTENER, host=address.host, port=address.port)])
        for node_id, address in quorum.describe(call.now).addresses.items()
    ]
    return Reply(response)


def _described(call: Call) -> PartitionDataResponse:
    found = call.broker.quorum.describe(call.now)
    return PartitionDataResponse(
        leader_id=found.leader_id,
        leader_epoch=found.epoch,
        high_watermark=found.high_watermark,
        current_voters=[_replica(each) for each in found.voters],
        observers=[_replica(each) for each in found.observers],
    )


def _replica(described: ReplicaDescription) -> ReplicaState:
    return ReplicaState(
        replica_id=described.replica.node_id,
        replica_directory_id=described.replica.directory_id,
        log_end_offset=described.end_offset,
        last_fetch_timestamp=described.last_fetch_ms,
        last_caught_up_timestamp=described.last_caught_up_ms,
    )
