"""A member of a classic group: what it said about itself, what it was given, and whom it keeps waiting."""

from collections.abc import Sequence

from klamm.coordinator.memory import bytes_of_classic
from klamm.coordinator.records import ClassicMemberValue
from klamm.coordinator.wishes import JoinedMember, JoinWish, Ticket


class ClassicMember:
    __slots__ = (
        "assignment",
        "client_host",
        "client_id",
        "counted_bytes",
        "instance_id",
        "is_new",
        "joining",
        "member_id",
        "names",
        "protocols",
        "rebalance_timeout_ms",
        "session_timeout_ms",
        "syncing",
    )

    def __init__(
        self,
        member_id: str,
        instance_id: str | None,
        client_id: str,
        client_host: str,
        session_timeout_ms: int,
        rebalance_timeout_ms: int,
        protocols: Sequence[tuple[str, bytes]],
        assignment: bytes = b"",
    ) -> None:
        self.member_id = member_id
        self.instance_id = instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.session_timeout_ms = session_timeout_ms
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.counted_bytes = 0
        """What it takes in the sum of its group."""
        self._knows(protocols)
        self.assignment = assignment
        self.joining: Ticket | None = None
        """Who waits for the others to join."""
        self.syncing: Ticket | None = None
        """Who waits for the leader to assign."""
        self.is_new = False
        """Whether it has never been answered: it does not know its id, so it cannot send heartbeats."""

    @classmethod
    def wishing(cls, member_id: str, wish: JoinWish) -> "ClassicMember":
        member = cls(
            member_id,
            wish.instance_id,
            wish.client_id,
            wish.client_host,
            wish.session_timeout_ms,
            wish.rebalance_timeout_ms,
            wish.protocols,
        )
        member.is_new = True
        return member

    @classmethod
    def written(cls, value: ClassicMemberValue, protocol: str | None) -> "ClassicMember":
        """As the log has it, which keeps what the member said for the protocol that was chosen, and no other."""
        return cls(
            value.member_id,
            value.group_instance_id,
            value.client_id,
            value.client_host,
            value.session_timeout,
            # What has no such field was written before there were two timeouts.
            value.rebalance_timeout or value.session_timeout,
            () if protocol is None else ((protocol, bytes(value.subscription)),),
            bytes(value.assignment),
        )

    def update(self, wish: JoinWish) -> None:
        self._knows(wish.protocols)
        self.session_timeout_ms = wish.session_timeout_ms
        self.rebalance_timeout_ms = wish.rebalance_timeout_ms

    def _knows(self, protocols: Sequence[tuple[str, bytes]]) -> None:
        self.protocols = tuple(protocols)
        """In its order of preference."""
        self.names = frozenset(name for name, _ in protocols)

    @property
    def is_static(self) -> bool:
        return self.instance_id is not None

    @property
    def size_bytes(self) -> int:
        return bytes_of_classic(self.client_id, self.instance_id, self.protocols) + len(self.assignment)

    def says(self, protocol: str | None) -> bytes:
        """What it says about itself for this protocol."""
        return next((metadata for name, metadata in self.protocols if name == protocol), b"")

    def prefers(self, candidates: frozenset[str]) -> str:
        return next(name for name, _ in self.protocols if name in candidates)

    def as_joined(self, protocol: str | None) -> JoinedMember:
        return JoinedMember(self.member_id, self.instance_id, self.says(protocol))

    def as_value(self, protocol: str | None, assignment: bytes) -> ClassicMemberValue:
        return ClassicMemberValue(
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            client_id=self.client_id,
            client_host=self.client_host,
            rebalance_timeout=self.rebalance_timeout_ms,
            session_timeout=self.session_timeout_ms,
            subscription=self.says(protocol),
            assignment=assignment,
        )

    def is_what_is_written(self, value: ClassicMemberValue, protocol: str | None) -> bool:
        """Whether the log says nothing else about it, apart from what it is to do."""
        knows = any(name == protocol for name, _ in self.protocols)
        return knows and self.as_value(protocol, value.assignment) == value

    def __repr__(self) -> str:
        waits = " joining" if self.joining is not None else " syncing" if self.syncing is not None else ""
        return f"<{self.member_id}{waits}>"
