"""What the nodes of a quorum say to one another, as values. `handlers/quorum_messages.py` knows how they travel.

Every reply tells who leads which epoch as far as its sender knows, and where that leader is reached: whoever asks the
wrong node learns whom to ask instead.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from klamm.errors import ErrorCode
from klamm.ids import NO_BROKER, NO_EPOCH, NO_OFFSET, ZERO_UUID, BrokerId, Epoch, Offset
from klamm.log.files import Region
from klamm.quorum.identity import ReplicaKey


class Address(NamedTuple):
    host: str
    port: int


class LogPosition(NamedTuple):
    """The end of a log and the epoch of its last record. Later epoch first, then longer: that is who is further."""

    epoch: Epoch
    end_offset: Offset


class SnapshotId(NamedTuple):
    """A snapshot holds everything below `end_offset`; `epoch` is the epoch of the last record in it."""

    end_offset: Offset
    epoch: Epoch


NO_SNAPSHOT = SnapshotId(NO_OFFSET, NO_EPOCH)


@dataclass(slots=True)
class VoteRequest:
    """`epoch` is the candidate's own; asking beforehand (`pre_vote`) it has not begun a new one yet."""

    cluster_id: str | None
    voter: ReplicaKey
    """Who is asked. Without a directory: the candidate does not know it, because no voters are recorded yet."""
    candidate: ReplicaKey
    epoch: Epoch
    log: LogPosition
    pre_vote: bool = False


@dataclass(slots=True)
class VoteReply:
    epoch: Epoch
    granted: bool = False
    leader_id: BrokerId = NO_BROKER
    leader_address: Address | None = None
    error: ErrorCode = ErrorCode.NONE


@dataclass(slots=True)
class BeginEpoch:
    cluster_id: str | None
    voter: ReplicaKey
    leader_id: BrokerId
    epoch: Epoch
    leader_address: Address | None = None


@dataclass(slots=True)
class EndEpoch:
    cluster_id: str | None
    leader_id: BrokerId
    epoch: Epoch
    successors: Sequence[ReplicaKey] = ()
    """Those who should stand, the best one first."""
    leader_address: Address | None = None


@dataclass(slots=True)
class EpochReply:
    epoch: Epoch
    leader_id: BrokerId = NO_BROKER
    leader_address: Address | None = None
    error: ErrorCode = ErrorCode.NONE


@dataclass(slots=True)
class QuorumFetch:
    """A fetch at an offset says: everything below it is on my disk."""

    cluster_id: str | None
    replica: ReplicaKey
    epoch: Epoch
    offset: Offset
    last_fetched_epoch: Epoch
    high_watermark: Offset
    """What the follower knows; it hears at once when there is more to know."""
    max_bytes: int
    max_wait_ms: int


@dataclass(slots=True)
class QuorumFetched:
    epoch: Epoch
    leader_id: BrokerId = NO_BROKER
    leader_address: Address | None = None
    error: ErrorCode = ErrorCode.NONE
    high_watermark: Offset = NO_OFFSET
    start_offset: Offset = NO_OFFSET
    records: Region | None = None
    diverging: LogPosition | None = None
    """Where the follower's history parts from ours, at the latest."""
    snapshot: SnapshotId | None = None
    """What the follower needs is no longer in the log: it has to fetch this."""


@dataclass(slots=True)
class SnapshotFetch:
    cluster_id: str | None
    replica: ReplicaKey
    epoch: Epoch
    snapshot: SnapshotId
    position: int
    max_bytes: int


@dataclass(slots=True)
class SnapshotChunk:
    epoch: Epoch
    leader_id: BrokerId = NO_BROKER
    leader_address: Address | None = None
    error: ErrorCode = ErrorCode.NONE
    snapshot: SnapshotId = NO_SNAPSHOT
    size: int = 0
    position: int = 0
    data: Region | None = None


Request: TypeAlias = VoteRequest | BeginEpoch | EndEpoch | QuorumFetch | SnapshotFetch
ReplyValue: TypeAlias = VoteReply | EpochReply | QuorumFetched | SnapshotChunk


@dataclass(slots=True, eq=False)
class Outgoing:
    """One request on its way. Whoever sends it hands this very object back with the reply, or when it is lost."""

    to: BrokerId
    host: str
    port: int
    request: Request
    timeout_ms: float

    def __repr__(self) -> str:
        return f"<{type(self.request).__name__} to {self.to}>"


@dataclass(slots=True)
class ReplicaDescription:
    replica: ReplicaKey
    end_offset: Offset
    last_fetch_ms: int = -1
    """Wall time; -1 if it never fetched from this leader."""
    last_caught_up_ms: int = -1


@dataclass(slots=True)
class QuorumDescription:
    leader_id: BrokerId
    epoch: Epoch
    high_watermark: Offset
    voters: list[ReplicaDescription]
    observers: list[ReplicaDescription]
    addresses: dict[BrokerId, Address]


NOBODY = ReplicaKey(NO_BROKER, ZERO_UUID)
