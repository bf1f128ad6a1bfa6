"""What a classic group is: its members, its generation, what they agreed on, and the record of it.

The log holds what a generation came to: members with their assignments. Who is joining, and what the next generation
will be, is known to the coordinator only; when it goes, members join again with the next one.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from enum import StrEnum

from klamm.coordinator.groups.classic_member import ClassicMember
from klamm.coordinator.records import GroupMetadataKey, GroupMetadataValue, GroupRecord
from klamm.coordinator.wishes import JoinWish
from klamm.errors import ErrorCode, KafkaError


class State(StrEnum):
    """As Kafka's tools print them."""

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    """Members are asked to join, and those who did wait for the others."""
    COMPLETING = "CompletingRebalance"
    """All have joined; their leader assigns."""
    STABLE = "Stable"


class ClassicState:
    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.state = State.EMPTY
        self.generation = 0
        self.protocol_type: str | None = None
        self.protocol: str | None = None
        self.leader: str | None = None
        self.members: dict[str, ClassicMember] = {}
        self.static: dict[str, str] = {}
        """Which member stands for an instance id at present."""
        self.pending: set[str] = set()
        """Ids that were given out to members that have not joined with them yet."""
        self.members_bytes = 0
        """What they take, about."""
        self.since_ms: int | None = None
        """Wall time since when it is as it is, as the log has it."""

    def __iter__(self) -> Iterator[ClassicMember]:
        return iter(self.members.values())

    def __len__(self) -> int:
        return len(self.members)

    # Members.

    def add(self, member: ClassicMember) -> None:
        if not self.members:
            # Whoever is first leads, until the generation begins without it.
            self.leader = member.member_id
        self.pending.discard(member.member_id)
        self.members[member.member_id] = member
        self._count(member)
        if member.instance_id is not None:
            self.static[member.instance_id] = member.member_id

    def remove(self, member_id: str) -> None:
        self.pending.discard(member_id)
        member = self.members.pop(member_id, None)
        if member is not None:
            self.members_bytes -= member.counted_bytes
        if member is not None and member.instance_id is not None and self.static.get(member.instance_id) == member_id:
            del self.static[member.instance_id]
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)

    def update(self, member: ClassicMember, wish: JoinWish) -> None:
        """It says something else about itself."""
        member.update(wish)
        self.members_bytes -= member.counted_bytes
        self._count(member)

    def _count(self, member: ClassicMember) -> None:
        member.counted_bytes = member.size_bytes
        self.members_bytes += member.counted_bytes

    def member(self, member_id: str, instance_id: str | None) -> ClassicMember:
        """Raises what a client has to hear that is not, or no longer, this member."""
        if instance_id is not None:
            current = self.static.get(instance_id)
            if current is None:
                raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"No member has the instance id {instance_id}.")
            if current != member_id:
                raise KafkaError(
                    ErrorCode.FENCED_INSTANCE_ID, f"Another member has the instance id {instance_id} by now."
                )
        member = self.members.get(member_id)
        if member is None:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        return member

    @property
    def awaited(self) -> list[ClassicMember]:
        """Members that have not joined the coming generation yet."""
        return [member for member in self if member.joining is None]

    @property
    def rebalance_timeout_ms(self) -> int:
        return max((member.rebalance_timeout_ms for member in self), default=0)

    # What they agree on.

    def could_agree(self, protocol_type: str, names: set[str]) -> bool:
        """Whether somebody who knows these protocols can be a member."""
        if not self.members:
            return bool(protocol_type) and bool(names)
        return protocol_type == self.protocol_type and bool(names & self._common())

    def chosen_protocol(self) -> str:
        """The one that most members like best among those that all of them know."""
        candidates = self._common()
        votes = Counter(member.prefers(candidates) for member in self)
        most = max(votes.values())
        return next(name for name, count in votes.items() if count == most)

    def _common(self) -> frozenset[str]:
        """Protocols that every member knows. Most groups are of one mind, and five hundred join one after the other."""
        common: frozenset[str] | None = None
        for member in self:
            if common is None:
                common = member.names
            elif member.names != common:
                common &= member.names
        return common or frozenset()

    # The record.

    def record(self, generation: int, assignments: Mapping[str, bytes], now_ms: int) -> GroupRecord:
        members = [member.as_value(self.protocol, assignments.get(member.member_id, b"")) for member in self]
        value = GroupMetadataValue(
            protocol_type=self.protocol_type or "",
            generation=generation,
            protocol=self.protocol,
            leader=self.leader,
            current_state_timestamp=now_ms,
            members=members,
        )
        return GroupRecord(GroupMetadataKey(self.group_id), value)

    def replay(self, value: GroupMetadataValue) -> None:
        """Become what the log says. Members that are here already keep what only this coordinator knows of them."""
        before = self.members
        self.generation = value.generation
        self.protocol_type = value.protocol_type or None
        self.protocol = value.protocol
        self.since_ms = None if value.current_state_timestamp < 0 else value.current_state_timestamp
        self.members, self.static, self.leader = {}, {}, None
        self.members_bytes = 0
        for each in value.members:
            member = before.get(each.member_id)
            if member is None or not member.is_what_is_written(each, value.protocol):
                # Where a whole log is replayed the one before may be from another generation, with another protocol.
                member = ClassicMember.written(each, value.protocol)
            member.assignment = bytes(each.assignment)
            self.add(member)
        self.leader = value.leader
        self.state = State.STABLE if self.members else State.EMPTY

    def __repr__(self) -> str:
        return f"<{self.group_id} {self.state} generation={self.generation} members={len(self)}>"
