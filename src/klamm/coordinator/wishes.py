"""What a coordinator is asked, and what it answers, as values.

Who asks hands in a ticket: anything at all, which comes back with the reply. Some replies come at once; a member that
joins waits for the others, and its reply is an answer to somebody else's request, or to the clock.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from klamm.coordinator.records import GroupRecord
from klamm.errors import ErrorCode, KafkaError
from klamm.ids import NO_EPOCH, ZERO_UUID, Epoch, Offset, Uuid
from klamm.machine import Decision

Ticket: TypeAlias = object
NO_GENERATION = -1
NO_MEMBER = ""


class Answered(NamedTuple):
    """Whoever holds the ticket gets this reply; a KafkaError is one, too."""

    ticket: Ticket
    reply: object


Verdict: TypeAlias = Decision[GroupRecord, list[Answered]]
"""Records to be written, and who is answered what once they are committed, and all that was written before."""


def refused(ticket: Ticket, code: ErrorCode, message: str | None = None) -> Verdict:
    return Decision([Answered(ticket, KafkaError(code, message))])


# The classic protocol.


@dataclass(slots=True)
class JoinWish:
    group_id: str
    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: Sequence[tuple[str, bytes]]
    """Names in the member's order of preference, each with what the member says about itself."""
    must_know_its_id: bool = False
    """Whether a new member is first given an id, and joins with that (JoinGroup 4+)."""
    can_skip_assignment: bool = False
    """Whether a static leader that returns understands that it need not assign (JoinGroup 9+)."""


class JoinedMember(NamedTuple):
    member_id: str
    instance_id: str | None
    metadata: bytes


@dataclass(slots=True)
class Joined:
    member_id: str
    generation: int
    protocol_type: str | None
    protocol_name: str | None
    leader: str
    members: Sequence[JoinedMember] = ()
    """Only the leader gets them."""
    skip_assignment: bool = False
    error: ErrorCode = ErrorCode.NONE


@dataclass(slots=True)
class SyncWish:
    group_id: str
    generation: int
    member_id: str
    instance_id: str | None
    protocol_type: str | None
    protocol_name: str | None
    assignments: Mapping[str, bytes]


@dataclass(slots=True)
class Synced:
    protocol_type: str | None
    protocol_name: str | None
    assignment: bytes


@dataclass(slots=True)
class BeatWish:
    """The reply is an ErrorCode."""

    group_id: str
    generation: int
    member_id: str
    instance_id: str | None


class LeavingMember(NamedTuple):
    member_id: str
    instance_id: str | None = None


@dataclass(slots=True)
class LeaveWish:
    """The reply is a list of `LeftMember`, in the same order."""

    group_id: str
    members: Sequence[LeavingMember]


class LeftMember(NamedTuple):
    member_id: str
    instance_id: str | None
    error: ErrorCode


# Offsets.


@dataclass(slots=True)
class OffsetToCommit:
    topic: str
    partition: int
    offset: Offset
    leader_epoch: Epoch = NO_EPOCH
    metadata: str = ""
    topic_id: Uuid = ZERO_UUID


@dataclass(slots=True)
class CommitWish:
    """The reply is a list of error codes, in the order of the offsets."""

    group_id: str
    generation: int
    """Or the member epoch, in a group of the newer protocol."""
    member_id: str
    instance_id: str | None
    offsets: Sequence[OffsetToCommit]
    retention_ms: int = -1
    knows_epochs: bool = False
    """Whether the client understands the errors of the newer protocol (OffsetCommit 9+)."""


class CommittedOffset(NamedTuple):
    offset: Offset
    leader_epoch: Epoch
    metadata: str


@dataclass(slots=True)
class OffsetsWish:
    """The reply is a mapping from (topic, partition) to `CommittedOffset`; what was never committed is not in it."""

    group_id: str
    member_id: str | None = None
    member_epoch: int = NO_GENERATION
    partitions: Sequence[tuple[str, int]] | None = None
    """None asks for all that there are."""


@dataclass(slots=True)
class OffsetDeletionWish:
    """The reply is a list of error codes, in the order of the partitions."""

    group_id: str
    partitions: Sequence[tuple[str, int]]


# Looking.


@dataclass(slots=True)
class ListedGroup:
    group_id: str
    protocol_type: str
    state: str
    group_type: str


@dataclass(slots=True)
class DescribedClassicMember:
    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    metadata: bytes
    assignment: bytes


@dataclass(slots=True)
class DescribedClassicGroup:
    group_id: str
    state: str
    protocol_type: str
    protocol: str
    members: list[DescribedClassicMember] = field(default_factory=list)


# The newer protocol (KIP-848).

JOINS, LEAVES, LEAVES_FOR_A_WHILE = 0, -1, -2
"""Member epochs that are wishes."""


@dataclass(slots=True)
class HeartbeatWish:
    """Fields that are None are as they were."""

    group_id: str
    member_id: str
    member_epoch: int
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: Sequence[str] | None = None
    subscribed_topic_regex: str | None = None
    server_assignor: str | None = None
    owned: Mapping[Uuid, frozenset[int]] | None = None
    gives_its_id: bool = True
    """Whether the member chose its id itself (ConsumerGroupHeartbeat 1+)."""


@dataclass(slots=True)
class HeartbeatReply:
    member_id: str
    member_epoch: int
    heartbeat_interval_ms: int
    assignment: Mapping[Uuid, frozenset[int]] | None = None
    """None: as it was."""


@dataclass(slots=True)
class DescribedMember:
    member_id: str
    instance_id: str | None
    rack_id: str | None
    member_epoch: int
    client_id: str
    client_host: str
    subscribed_topic_names: Sequence[str]
    subscribed_topic_regex: str | None
    assignment: Mapping[Uuid, frozenset[int]]
    target_assignment: Mapping[Uuid, frozenset[int]]
    is_classic: bool = False


@dataclass(slots=True)
class DescribedConsumerGroup:
    group_id: str
    state: str
    group_epoch: int
    assignment_epoch: int
    assignor: str
    members: list[DescribedMember] = field(default_factory=list)
