"""RemoveRaftVoter (key 81): one voter fewer for the metadata quorum.

Derived from Kafka's schemas by tools/derive_messages.py; not edited by hand.
"""

from klamm.codec.schema import int16, int32, message, string, uuid


@message(versions="0", flexible="0+")
class RemoveRaftVoterRequest:
    cluster_id: str | None = string(nullable="0+")
    voter_id: int = int32()
    voter_directory_id: bytes = uuid()


@message(versions="0", flexible="0+")
class RemoveRaftVoterResponse:
    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
