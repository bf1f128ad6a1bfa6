"""FetchSnapshot (0-1): a piece of a metadata snapshot, for a replica that is further behind than the log reaches."""

from klamm.broker.answer import Answer, Reply
from klamm.broker.call import Call
from klamm.errors import KafkaError
from klamm.handlers.quorum_messages import snapshot_fetch, snapshot_response
from klamm.wire.messages.fetch_snapshot import FetchSnapshotRequest, FetchSnapshotResponse


def handle(request: FetchSnapshotRequest, call: Call) -> Answer:
    try:
        asked = snapshot_fetch(request)
    except KafkaError as error:
        return Reply(FetchSnapshotResponse(error_code=error.code))
    return Reply(snapshot_response(call.broker.quorum.fetch_snapshot(asked, call.now)))
