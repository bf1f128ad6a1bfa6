"""ListPartitionReassignments (0): partitions that are moving, of those asked for or of all."""

from itertools import groupby

from klamm.broker.answer import Answer, Elsewhere, Reply
from klamm.broker.call import Call
from klamm.ids import TopicPartition
from klamm.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)


def handle(request: ListPartitionReassignmentsRequest, call: Call) -> Answer:
    controller = call.broker.controller
    if controller is None:
        return Elsewhere()
    partitions = None
    if request.topics is not None:
        partitions = [
            TopicPartition(topic.name, index) for topic in request.topics for index in topic.partition_indexes
        ]
    moving = controller.list_reassignments(partitions)
    return Reply(
        ListPartitionReassignmentsResponse(
            topics=[
                OngoingTopicReassignment(
                    name=name,
                    partitions=[
                        OngoingPartitionReassignment(
                            partition_index=each.partition.partition,
                            replicas=list(each.replicas),
                            adding_replicas=list(each.adding),
                            removing_replicas=list(each.removing),
                        )
                        for each in of_topic
                    ],
                )
                for name, of_topic in groupby(moving, key=lambda each: each.partition.topic)
            ]
        )
    )
