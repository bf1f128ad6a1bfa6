"""OffsetDelete (0): forget how far a group has read of topics that none of its members reads."""

from klamm.broker.answer import Answer
from klamm.broker.call import Call
from klamm.coordinator.wishes import OffsetDeletionWish
from klamm.errors import ErrorCode, KafkaError
from klamm.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)


def handle(request: OffsetDeleteRequest, call: Call) -> Answer:
    image = call.broker.image
    places = [
        (topic.name, each.partition_index)
        for topic in request.topics
        for each in topic.partitions
        if image.partition(topic.name, each.partition_index) is not None
    ]
    wish = OffsetDeletionWish(request.group_id, places)

    def respond(reply: object) -> OffsetDeleteResponse:
        if isinstance(reply, KafkaError):
            return OffsetDeleteResponse(error_code=reply.code)
        assert isinstance(reply, list)
        codes = dict(zip(places, reply, strict=True))
        return OffsetDeleteResponse(
            topics=[
                OffsetDeleteResponseTopic(
                    name=topic.name,
                    partitions=[
                        OffsetDeleteResponsePartition(
                            partition_index=each.partition_index,
                            error_code=codes.get(
                                (topic.name, each.partition_index), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                            ),
                        )
                        for each in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    return call.broker.coordination.ask(
        request.group_id, lambda shard, ticket, now: shard.delete_offsets(wish, ticket, now), respond, call.now
    )
