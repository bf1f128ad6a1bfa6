"""Who is in sync, and who should be.

Three sets. *Committed* is what the metadata says; it decides who may be elected and whether there are enough for
acks=all. *Pending* is what the leader has asked the controller for and does not know the answer of. *Maximal* is both
together, and the watermark waits for all of it: the controller may have said yes already, and then any of them may be
the next leader (KIP-497).

A follower joins when it has reached the watermark and the start of the leader's epoch; below that start there may be
committed records of an earlier leader that this watermark does not know of yet. It leaves when it has not caught up for
`replica.lag.time.max.ms`. Only an active broker joins, only in the life in which it fetched, and only while it fetches:
below `min.insync.replicas` the watermark stands still, and a follower that left because it fell silent is still at it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from klamm.errors import ErrorCode
from klamm.ids import BrokerId, Epoch, Offset, TopicPartition, Uuid
from klamm.partition.progress import NO_BROKER_EPOCH, Progress


@dataclass(frozen=True, slots=True)
class IsrWish:
    """What a leader asks the controller for, with the broker epochs it has seen its followers under."""

    topic_id: Uuid
    topic_partition: TopicPartition
    leader_epoch: Epoch
    partition_epoch: int
    isr: tuple[tuple[BrokerId, int], ...]

    @property
    def members(self) -> tuple[BrokerId, ...]:
        return tuple(broker_id for broker_id, _ in self.isr)


@dataclass(frozen=True, slots=True)
class IsrOutcome:
    """What the controller says of one wish: an error, or the partition as it is now."""

    topic_id: Uuid
    index: int
    error: ErrorCode
    leader_epoch: Epoch = -1
    partition_epoch: int = -1
    isr: tuple[BrokerId, ...] = ()


NOT_DONE = frozenset({ErrorCode.INELIGIBLE_REPLICA, ErrorCode.OPERATION_NOT_ATTEMPTED})
"""The wish was not granted, now or later, and what the leader knows is true."""


def is_eligible(follower: Progress, active: Mapping[BrokerId, int]) -> bool:
    """Whether the controller could count on it: it is active, in the very life that we heard it in."""
    epoch = active.get(follower.broker_id)
    return epoch is not None and follower.broker_epoch in (epoch, NO_BROKER_EPOCH)


def wished(
    committed: tuple[BrokerId, ...],
    followers: Iterable[Progress],
    active: Mapping[BrokerId, int],
    *,
    joins_at: Offset,
    leader_end: Offset,
    now_ms: float,
    max_lag_ms: float,
) -> set[BrokerId]:
    """Who should be in sync: those of the committed who keep up, and those who have reached `joins_at`. The leader is
    whoever of the committed is no follower; it stays."""
    wanted = set(committed)
    for follower in followers:
        if follower.broker_id in wanted:
            if not follower.is_caught_up(leader_end, now_ms, max_lag_ms):
                wanted.discard(follower.broker_id)
        elif (
            follower.end_offset >= joins_at
            and follower.is_heard(leader_end, now_ms, max_lag_ms)
            and is_eligible(follower, active)
        ):
            wanted.add(follower.broker_id)
    return wanted
