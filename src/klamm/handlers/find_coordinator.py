"""FindCoordinator (0-6): which broker looks after a group or a transactional id.

The first one who asks for a group has the topic of the offsets created, and is answered when it is there: Kafka says
COORDINATOR_NOT_AVAILABLE at once, and clients pause for a second before they ask again. For the same reason one whose
coordinator died a moment ago waits until the controller has named the next. Transactions do not exist yet, and waiting
for them would be a program that hangs: a transactional id gets an error that ends it and says why. So does whoever
asks for the coordinator of a share group.
"""

from collections.abc import Sequence

from klamm.broker.answer import Answer, Changed, Later, Reply
from klamm.broker.call import Call
from klamm.broker.offsets_topic import PATIENCE_MS
from klamm.errors import ErrorCode
from klamm.ids import NO_BROKER, Now
from klamm.wire.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse

FIRST_VERSION_WITH_KEYS = 4
GROUP, TRANSACTION = 0, 1

NO_TRANSACTIONS = (
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    "this version of Klamm has no transactions yet: produce without a transactional id",
)
MOST_WAITED_FOR = 16
"""So many of the groups that are asked for; a client asks for its own, and tools that ask for more ask again."""

NO_ERROR = "NONE"
"""What Kafka says up to version 3 where nothing is wrong."""
UNKNOWN = (ErrorCode.INVALID_REQUEST, "this version of Klamm knows coordinators of groups and transactions only")


def handle(request: FindCoordinatorRequest, call: Call) -> Answer:
    keys = request.coordinator_keys if call.version >= FIRST_VERSION_WITH_KEYS else [request.key]

    def then(now: Now, in_time: bool) -> FindCoordinatorResponse:
        return _response([_found(key, request.key_type, call, now) for key in keys], call.version)

    topic = call.broker.coordination.offsets_topic
    waited_for = keys[:MOST_WAITED_FOR]

    def is_settled() -> bool:
        return not topic.is_creating and not any(topic.is_moving(key, call.now) for key in waited_for)

    if request.key_type != GROUP or not keys or not topic.wait_for(call.now) or is_settled():
        return Reply(then(call.now, True))
    until = Changed([topic, call.broker.absent], is_settled)
    return Later(until, call.now.monotonic_ms + PATIENCE_MS, then)


def _found(key: str, key_type: int, call: Call, now: Now) -> Coordinator:
    if key_type != GROUP:
        return _none(key, *(NO_TRANSACTIONS if key_type == TRANSACTION else UNKNOWN))
    node_id = call.broker.coordination.offsets_topic.coordinator_of(key, now)
    endpoint = next((at for broker, at in call.broker.known_brokers() if broker.broker_id == node_id), None)
    if node_id == NO_BROKER or endpoint is None:
        return _none(key, ErrorCode.COORDINATOR_NOT_AVAILABLE, None)
    return Coordinator(key=key, node_id=node_id, host=endpoint.host, port=endpoint.port, error_message="")


def _none(key: str, code: ErrorCode, message: str | None) -> Coordinator:
    return Coordinator(key=key, node_id=NO_BROKER, host="", port=-1, error_code=code, error_message=message)


def _response(found: Sequence[Coordinator], version: int) -> FindCoordinatorResponse:
    if version >= FIRST_VERSION_WITH_KEYS:
        return FindCoordinatorResponse(coordinators=list(found))
    only = found[0]
    return FindCoordinatorResponse(
        error_code=only.error_code,
        error_message=only.error_message if only.error_code else NO_ERROR,
        node_id=only.node_id,
        host=only.host,
        port=only.port,
    )
