"""UpdateRaftVoter (key 82): a voter's new addresses or protocol versions.

Derived from Kafka's schemas by tools/derive_messages.py; not edited by hand.
"""

from klamm.codec.schema import array, int16, int32, message, nested, string, struct, uint16, uuid


@struct
class Listener:
    name: str = string()
    host: str = string()
    port: int = uint16()


@struct
class KRaftVersionFeature:
    min_supported_version: int = int16()
    max_supported_version: int = int16()


@message(versions="0", flexible="0+")
class UpdateRaftVoterRequest:
    cluster_id: str | None = string(nullable="0+")
    current_leader_epoch: int = int32()
    voter_id: int = int32()
    voter_directory_id: bytes = uuid()
    listeners: list[Listener] = array(Listener)
    kraft_version_feature: KRaftVersionFeature = nested(KRaftVersionFeature)


@struct
class CurrentLeader:
    leader_id: int = int32(default=-1)
    leader_epoch: int = int32(default=-1)
    host: str = string()
    port: int = int32()


@message(versions="0", flexible="0+")
class UpdateRaftVoterResponse:
    throttle_time_ms: int = int32()
    error_code: int = int16()
    current_leader: CurrentLeader = nested(CurrentLeader, tag=0, tagged="0+")
