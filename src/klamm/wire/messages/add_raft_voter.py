"""AddRaftVoter (key 80): one more voter for the metadata quorum.

Derived from Kafka's schemas by tools/derive_messages.py; not edited by hand.
"""

from klamm.codec.schema import array, boolean, int16, int32, message, string, struct, uint16, uuid


@struct
class Listener:
    name: str = string()
    host: str = string()
    port: int = uint16()


@message(versions="0-1", flexible="0+")
class AddRaftVoterRequest:
    cluster_id: str | None = string(nullable="0+")
    timeout_ms: int = int32()
    voter_id: int = int32()
    voter_directory_id: bytes = uuid()
    listeners: list[Listener] = array(Listener)
    ack_when_committed: bool = boolean(versions="1+", default=True)


@message(versions="0-1", flexible="0+")
class AddRaftVoterResponse:
    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
