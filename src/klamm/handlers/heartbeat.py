"""Heartbeat (0-4): a member of a classic group is alive, and hears whether it has to join again.

While its group is being loaded it is told that all is well, whoever it is, as Kafka does: its session begins anew when
the group is there, and not every client knows the error for it here (aiokafka's heartbeat dies of it).
"""

from klamm.broker.answer import Answer
from klamm.broker.call import Call
from klamm.coordinator.wishes import BeatWish
from klamm.errors import ErrorCode, KafkaError
from klamm.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


def handle(request: HeartbeatRequest, call: Call) -> Answer:
    wish = BeatWish(request.group_id, request.generation_id, request.member_id, request.group_instance_id)
    return call.broker.coordination.ask(
        request.group_id, lambda shard, ticket, now: shard.beat(wish, ticket, now), _respond, call.now
    )


def _respond(reply: object) -> HeartbeatResponse:
    if isinstance(reply, KafkaError):
        is_loading = reply.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return HeartbeatResponse(error_code=ErrorCode.NONE if is_loading else reply.code)
    assert isinstance(reply, ErrorCode)
    return HeartbeatResponse(error_code=reply)
