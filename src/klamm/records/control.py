"""Control batches: what brokers write into logs for themselves, between the records of clients.

A control record's key says what it is: version and type, two bytes each. Transactions end with a marker (abort or
commit) of the producer's own id. In the metadata quorum's log every leader begins its epoch with a LeaderChange,
which is also how it learns when everything before is committed; snapshots stand between a header and a footer; and the
version of the quorum's protocol and its voters travel the same way. Readers skip the types they do not know.
"""

from enum import IntEnum
from struct import Struct
from typing import TypeAlias

from klamm.codec.compiler import decode, encode
from klamm.codec.primitives import Malformed
from klamm.codec.schema import array, int16, int32, int64, message, nested, schema_of, string, struct, uint16, uuid
from klamm.errors import ErrorCode
from klamm.records.batch import CONTROL_BIT, TRANSACTIONAL_BIT, InvalidBatch
from klamm.records.builder import BatchBuilder
from klamm.records.record import Record


class ControlType(IntEnum):
    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6
    UNKNOWN = -1


@struct
class EpochVoter:
    voter_id: int = int32()
    voter_directory_id: bytes = uuid(versions="1+")


@message(versions="0-1", flexible="0+")
class LeaderChange:
    version: int = int16()
    leader_id: int = int32()
    voters: list[EpochVoter] = array(EpochVoter)
    granting_voters: list[EpochVoter] = array(EpochVoter)


@message(versions="0", flexible="0+")
class SnapshotHeader:
    version: int = int16()
    last_contained_log_timestamp: int = int64()


@message(versions="0", flexible="0+")
class SnapshotFooter:
    version: int = int16()


@message(versions="0", flexible="0+")
class KRaftVersion:
    version: int = int16()
    kraft_version: int = int16()


@struct
class VoterEndpoint:
    name: str = string()
    host: str = string()
    port: int = uint16()


@struct
class SupportedVersions:
    min_supported_version: int = int16()
    max_supported_version: int = int16()


@struct
class Voter:
    voter_id: int = int32()
    voter_directory_id: bytes = uuid()
    endpoints: list[VoterEndpoint] = array(VoterEndpoint)
    kraft_version_feature: SupportedVersions = nested(SupportedVersions)


@message(versions="0", flexible="0+")
class Voters:
    version: int = int16()
    voters: list[Voter] = array(Voter)


QuorumRecord: TypeAlias = LeaderChange | SnapshotHeader | SnapshotFooter | KRaftVersion | Voters

_KEY = Struct(">hh")
_MARKER = Struct(">hi")
_TYPES: dict[type[QuorumRecord], ControlType] = {
    LeaderChange: ControlType.LEADER_CHANGE,
    SnapshotHeader: ControlType.SNAPSHOT_HEADER,
    SnapshotFooter: ControlType.SNAPSHOT_FOOTER,
    KRaftVersion: ControlType.KRAFT_VERSION,
    Voters: ControlType.KRAFT_VOTERS,
}
_KNOWN = frozenset(int(control_type) for control_type in ControlType)
_MESSAGES = {control_type: cls for cls, control_type in _TYPES.items()}


def end_transaction_marker(
    producer_id: int,
    producer_epoch: int,
    *,
    commit: bool,
    coordinator_epoch: int,
    timestamp: int,
    base_offset: int = 0,
    leader_epoch: int = -1,
) -> bytearray:
    """The batch of one record that ends a producer's transaction in one partition."""
    builder = BatchBuilder(
        base_offset=base_offset,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        leader_epoch=leader_epoch,
        attributes=CONTROL_BIT | TRANSACTIONAL_BIT,
    )
    control_type = ControlType.COMMIT if commit else ControlType.ABORT
    builder.append(_KEY.pack(0, control_type), _MARKER.pack(0, coordinator_epoch), timestamp)
    return builder.build()


def quorum_batch(
    records: list[QuorumRecord], *, timestamp: int, base_offset: int = 0, leader_epoch: int = -1
) -> bytearray:
    """A control batch of the metadata quorum. A message's own `version` field says in which version it is written."""
    builder = BatchBuilder(base_offset=base_offset, leader_epoch=leader_epoch, attributes=CONTROL_BIT)
    for record in records:
        builder.append(_KEY.pack(0, _TYPES[type(record)]), encode(record, record.version), timestamp)
    return builder.build()


def control_type_of(record: Record) -> ControlType:
    if record.key is None or len(record.key) < _KEY.size:
        raise _invalid("a control record without its type")
    version, number = _KEY.unpack_from(record.key)
    if version < 0:
        raise _invalid(f"a control record of version {version}")
    return ControlType(number) if number in _KNOWN else ControlType.UNKNOWN


def coordinator_epoch_of(marker: Record) -> int:
    """Which incarnation of the transaction coordinator wrote this marker."""
    if marker.value is None or len(marker.value) < _MARKER.size:
        raise _invalid("a transaction marker without its coordinator's epoch")
    version, coordinator_epoch = _MARKER.unpack_from(marker.value)
    if version < 0:
        raise _invalid(f"a transaction marker of version {version}")
    return int(coordinator_epoch)


def quorum_record_of(record: Record) -> QuorumRecord | None:
    """The quorum's message in a control record; None for a marker and for a type we do not know."""
    cls = _MESSAGES.get(control_type_of(record))
    if cls is None:
        return None
    if record.value is None or len(record.value) < 2:
        raise _invalid(f"a {cls.__name__} without a value")
    version = int.from_bytes(record.value[:2], "big", signed=True)
    if version not in schema_of(cls).versions:
        raise _invalid(f"a {cls.__name__} of version {version}")
    try:
        return decode(cls, version, record.value)
    except Malformed as error:
        raise _invalid(f"not a {cls.__name__}: {error}") from error


def _invalid(reason: str) -> InvalidBatch:
    return InvalidBatch(ErrorCode.INVALID_RECORD, reason)
