"""FindCoordinator (0-6): which broker looks after a group or a transactional id.

Groups do not exist yet: clients hear COORDINATOR_NOT_AVAILABLE and keep asking. Transactions do not exist yet either,
and waiting for them would be a program that hangs: a transactional id gets an error that ends it and says why. The
API is advertised all the same, because librdkafka concludes from its absence that it must not compress.
"""

from klamm.broker.answer import Answer, Reply
from klamm.broker.call import Call
from klamm.errors import ErrorCode
from klamm.wire.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse

GROUP, TRANSACTION, SHARE = 0, 1, 2

ANSWERS = {
    GROUP: (ErrorCode.COORDINATOR_NOT_AVAILABLE, "this version of Klamm has no consumer groups yet: assign partitions"),
    TRANSACTION: (
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        "this version of Klamm has no transactions yet: produce without a transactional id",
    ),
}
UNKNOWN = (ErrorCode.INVALID_REQUEST, "this version of Klamm knows coordinators of groups and transactions only")


def handle(request: FindCoordinatorRequest, call: Call) -> Answer:
    code, message = ANSWERS.get(request.key_type, UNKNOWN)
    if call.version <= 3:
        return Reply(FindCoordinatorResponse(error_code=code, error_message=message, node_id=-1, host="", port=-1))
    return Reply(
        FindCoordinatorResponse(
            coordinators=[
                Coordinator(key=key, node_id=-1, host="", port=-1, error_code=code, error_message=message)
                for key in request.coordinator_keys
            ]
        )
    )
