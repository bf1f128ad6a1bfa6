"""What an assignor is given and what it answers.

An assignor is a function of the members, their subscriptions, what they were meant to have so far, and the topics. It
knows nothing of epochs or of who still holds what: the group hands partitions over in its own time. The same input
gives the same answer in every process, so whatever it iterates is sorted first. A topic that a member subscribes to
and that does not exist (yet, or any more) is passed over.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from klamm.ids import Uuid

Assignment: TypeAlias = dict[str, dict[Uuid, frozenset[int]]]
"""Member id to topic id to partitions. Every member is there; a topic only with at least one partition."""


@dataclass(frozen=True, slots=True)
class MemberSpec:
    member_id: str
    instance_id: str | None = None
    rack: str | None = None
    subscribed: frozenset[Uuid] = frozenset()
    assigned: Mapping[Uuid, frozenset[int]] = field(default_factory=dict)
    """The target assignment so far: what the member has, or is about to have."""


@dataclass(frozen=True, slots=True)
class TopicSpec:
    partitions: int
    racks: Sequence[frozenset[str]] = ()
    """For each partition, in order, the racks of its replicas. Empty, or shorter, where they are not known."""


class Assignor(Protocol):
    @property
    def name(self) -> str: ...

    def assign(self, members: Mapping[str, MemberSpec], topics: Mapping[Uuid, TopicSpec]) -> Assignment:
        """The new target of every member."""
        ...
