"""ConsumerGroupHeartbeat (0-1): everything a member of a group of the newer protocol has to say, and its assignment.

Epoch 0 joins, -1 leaves, -2 leaves for a while (static members). In version 0 the coordinator gives a new member its
id, from 1 on the member brings one, and may subscribe by a regular expression (RE2).
"""

from klamm.broker.answer import Answer
from klamm.broker.call import Call
from klamm.coordinator.wishes import HeartbeatReply, HeartbeatWish
from klamm.errors import KafkaError
from klamm.wire.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

FIRST_VERSION_WITH_OWN_IDS = 1


def handle(request: ConsumerGroupHeartbeatRequest, call: Call) -> Answer:
    wish = HeartbeatWish(
        group_id=request.group_id,
        member_id=request.member_id,
        member_epoch=request.member_epoch,
        instance_id=request.instance_id,
        rack_id=request.rack_id,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        client_id=call.client_id or "",
        client_host=call.client_host,
        subscribed_topic_names=request.subscribed_topic_names,
        subscribed_topic_regex=request.subscribed_topic_regex,
        server_assignor=request.server_assignor,
        owned=None
        if request.topic_partitions is None
        else {each.topic_id: frozenset(each.partitions) for each in request.topic_partitions},
        gives_its_id=call.version >= FIRST_VERSION_WITH_OWN_IDS,
    )
    return call.broker.coordination.ask(
        request.group_id, lambda shard, ticket, now: shard.heartbeat(wish, ticket, now), _respond, call.now
    )


def _respond(reply: object) -> ConsumerGroupHeartbeatResponse:
    if isinstance(reply, KafkaError):
        return ConsumerGroupHeartbeatResponse(error_code=reply.code, error_message=reply.message)
    assert isinstance(reply, HeartbeatReply)
    assignment = None
    if reply.assignment is not None:
        assignment = Assignment(
            topic_partitions=[
                TopicPartitions(topic_id=topic_id, partitions=sorted(partitions))
                for topic_id, partitions in sorted(reply.assignment.items())
            ]
        )
    return ConsumerGroupHeartbeatResponse(
        member_id=reply.member_id,
        member_epoch=reply.member_epoch,
        heartbeat_interval_ms=reply.heartbeat_interval_ms,
        assignment=assignment,
    )
