"""A member of the classic protocol: it joins, waits for the others, and one of them says who owns what.

It is eager: before it joins again it gives up all that it owns. If it leads, it assigns ranges, and has everybody join
again when the topic has grown. A generation that is over is over: what it asks under it is refused, and it joins anew.
One of an instance id that somebody else has taken over ends, as real ones do.
"""

import struct
from functools import partial
from math import inf

from klamm.errors import ErrorCode
from klamm.ids import NO_BROKER
from klamm.sim.clients.client import Desk
from klamm.sim.clients.group_history import GroupHistory
from klamm.sim.clients.group_requests import HEARTBEAT, JOIN_GROUP, LEAVE_GROUP, SYNC_GROUP
from klamm.sim.clients.history import History
from klamm.sim.clients.member import Member, MemberSettings
from klamm.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from klamm.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from klamm.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from klamm.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse

PROTOCOL_TYPE, PROTOCOL = "consumer", "range"
FIRST_LEAVE_OF_MANY = 3
FIRST_SYNC_WITH_PROTOCOL = 5
JOIN_MS = 6_000.0
"""So much longer than a rebalance may take it waits for the answer."""
AGAIN = frozenset(
    {ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION, ErrorCode.INCONSISTENT_GROUP_PROTOCOL}
)


class ClassicMember(Member):
    is_classic = True

    def __init__(self, desk: Desk, settings: MemberSettings, history: History, groups: GroupHistory) -> None:
        super().__init__(desk, settings, history, groups)
        self._is_in = False
        """Whether it has an assignment, and is in the generation of it."""
        self._is_joining = False
        self._is_beating = False
        self._leads_with: int | None = None
        """How many partitions it has assigned, if it leads."""

    def found_coordinator(self) -> None:
        if self._is_in:
            self._beat()
        else:
            self._join()

    def leave(self) -> None:
        settings, version = self.member, self.member.versions.leave
        self.tell("leaves")
        self.is_leaving = True
        request = LeaveGroupRequest(group_id=settings.group, member_id=self.member_id)
        if version >= FIRST_LEAVE_OF_MANY:
            identity = MemberIdentity(member_id=self.member_id, group_instance_id=settings.instance_id)
            request = LeaveGroupRequest(group_id=settings.group, members=[identity])
        self.turn += 1
        self._is_in = False
        if self.coordinator == NO_BROKER or not self.member_id:
            self._let_go()
            self.end()
            return
        self.ask(self.coordinator, LEAVE_GROUP, version, request, lambda answer: self.end(), apart=True)
        self._let_go()

    def was_fenced(self, code: ErrorCode) -> None:
        self._leave_generation(code)

    # Joining.

    def _join(self) -> None:
        """Not while it has no coordinator: it joins when it has found one."""
        if self._is_joining or self.coordinator == NO_BROKER:
            return
        self.turn += 1
        self._is_in, self._is_joining, self._is_beating = False, True, False
        self.standing.joins += 1
        self._let_go()
        settings = self.member
        if settings.instance_id is not None:
            self.groups.on_replaced(self.standing)
        request = JoinGroupRequest(
            group_id=settings.group,
            session_timeout_ms=settings.session_ms,
            rebalance_timeout_ms=settings.rebalance_ms,
            member_id=self.member_id,
            group_instance_id=settings.instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=[JoinGroupRequestProtocol(name=PROTOCOL, metadata=subscription([settings.topic]))],
        )
        within_ms = settings.rebalance_ms + JOIN_MS
        self.ask_coordinator(JOIN_GROUP, settings.versions.join, request, self._joined, within_ms)

    def _joined(self, answer: JoinGroupResponse | None) -> None:
        self._is_joining = False
        code = ErrorCode(answer.error_code) if answer is not None else ErrorCode.NONE
        if answer is None:
            self._join_later()
        elif code is ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = answer.member_id
            self._join()
        elif code is not ErrorCode.NONE:
            self._refused(code, "JoinGroup")
        else:
            self.member_id, self.epoch = answer.member_id, answer.generation_id
            leads = answer.leader == answer.member_id
            # What its former life has assigned it does not know: it has everybody join again when it knows the topic.
            self._leads_with = 0 if leads else None
            if leads and not answer.skip_assignment:
                members = sorted(each.member_id for each in answer.members)
                turn = self.turn
                self.refresh([self.member.topic], lambda: self._assign(members) if turn == self.turn else None)
            else:
                self._sync([])

    def _join_later(self) -> None:
        turn = self.turn
        self.later(self.chance.uniform(20.0, 200.0), lambda: self._join() if turn == self.turn else None)

    def _assign(self, members: list[str]) -> None:
        count = self._known_count()
        ranges = ranged(count, members)
        topic = self.member.topic
        self._leads_with = count
        self._sync(
            [
                SyncGroupRequestAssignment(member_id=name, assignment=assignment(topic, indexes))
                for name, indexes in ranges.items()
            ]
        )

    def _sync(self, assignments: list[SyncGroupRequestAssignment]) -> None:
        if self.coordinator == NO_BROKER:
            self._join_later()
            return
        settings = self.member
        request = SyncGroupRequest(
            group_id=settings.group,
            generation_id=self.epoch,
            member_id=self.member_id,
            group_instance_id=settings.instance_id,
            assignments=assignments,
        )
        if settings.versions.sync >= FIRST_SYNC_WITH_PROTOCOL:
            request.protocol_type, request.protocol_name = PROTOCOL_TYPE, PROTOCOL
        then = partial(self._synced, self.world.now_ms)
        self.ask_coordinator(SYNC_GROUP, settings.versions.sync, request, then, settings.rebalance_ms + JOIN_MS)

    def _synced(self, asked_ms: float, answer: SyncGroupResponse | None) -> None:
        code = ErrorCode(answer.error_code) if answer is not None else ErrorCode.NONE
        if answer is None:
            self._join_later()
        elif code is not ErrorCode.NONE:
            self._refused(code, "SyncGroup")
        else:
            indexes = assigned(bytes(answer.assignment), self.member.topic)
            self.tell(f"owns {indexes} in generation {self.epoch}")
            self.groups.reached["rebalance"] += 1
            self.groups.reached["static member returned"] += (
                self.member.instance_id is not None and self.member.life > 1
            )
            self._is_in = True
            self.standing.revoked_ms = inf
            self.standing.is_heard(asked_ms)
            self.groups.on_told(self.standing, self.epoch, self.spots(indexes), self.world.now_ms)
            self.own(indexes)
            self._beat_in_time()

    def _refused(self, code: ErrorCode, to: str) -> None:
        if code is ErrorCode.FENCED_INSTANCE_ID:
            self._end_fenced()
        elif code is ErrorCode.UNKNOWN_MEMBER_ID:
            self.member_id = ""
        elif not self.is_of_coordinator(code) and code not in AGAIN:
            self.is_strange(code, to)
        self._join_later()

    # Being in.

    def _beat_in_time(self) -> None:
        self.beat_later(self.member.beat_ms * self.chance.uniform(0.7, 1.0), self._beat)

    def _beat(self) -> None:
        if self.coordinator == NO_BROKER or self._is_beating:
            return
        self._is_beating = True
        settings = self.member
        request = HeartbeatRequest(
            group_id=settings.group,
            generation_id=self.epoch,
            member_id=self.member_id,
            group_instance_id=settings.instance_id,
        )
        then = partial(self._heard_beat, self.world.now_ms)
        self.ask_coordinator(HEARTBEAT, settings.versions.heartbeat, request, then)

    def _heard_beat(self, asked_ms: float, answer: HeartbeatResponse | None) -> None:
        self._is_beating = False
        if answer is None:
            self._beat_in_time()
            return
        code = ErrorCode(answer.error_code)
        if code is ErrorCode.NONE:
            self.standing.is_heard(asked_ms)
            self._beat_in_time()
            self._see_growth()
        elif code is ErrorCode.REBALANCE_IN_PROGRESS:
            self.standing.is_to_give_up(asked_ms)
            self.commit(self.owned, self._join)
        elif self.is_of_coordinator(code):
            self._beat_in_time()
        else:
            self._leave_generation(code)

    def _see_growth(self) -> None:
        if self._leads_with is not None and self._leads_with < self._known_count():
            self.tell(f"sees {self._known_count()} partitions")
            self.commit(self.owned, self._join)

    def _known_count(self) -> int:
        known = self.topics.get(self.member.topic)
        return 0 if known is None else len(known.partitions)

    def _leave_generation(self, code: ErrorCode) -> None:
        """It is over, or this is no member of it any more: what it owned it has lost."""
        self.tell(f"hears {code.name}")
        self.groups.reached["member fenced"] += 1
        self.turn += 1
        self._is_in = self._is_joining = self._is_beating = False
        self._let_go()
        self._refused(code, "Heartbeat")

    def _end_fenced(self) -> None:
        self.end()
        self.on_end()

    def _let_go(self) -> None:
        self.groups.on_released(self.standing, self.spots(self.owned))
        self.disown(list(self.owned))


# What members of this protocol say to one another: Kafka's formats, of which brokers need to know nothing.


def subscription(topics: list[str]) -> bytes:
    """Version 1: topics, no data, and nothing owned."""
    return struct.pack(">hi", 1, len(topics)) + b"".join(map(_string, topics)) + struct.pack(">ii", -1, 0)


def assignment(topic: str, indexes: list[int]) -> bytes:
    return struct.pack(">hi", 1, 1) + _string(topic) + struct.pack(f">i{len(indexes)}ii", len(indexes), *indexes, -1)


def assigned(data: bytes, topic: str) -> list[int]:
    """The partitions of this topic; there is no other. Nothing at all means nothing."""
    if not data:
        return []
    _, topics = struct.unpack_from(">hi", data)
    position = 6
    found: list[int] = []
    for _ in range(topics):
        (size,) = struct.unpack_from(">h", data, position)
        name = data[position + 2 : position + 2 + size].decode()
        position += 2 + size
        (count,) = struct.unpack_from(">i", data, position)
        indexes = struct.unpack_from(f">{count}i", data, position + 4)
        position += 4 + 4 * count
        if name == topic:
            found += indexes
    return sorted(found)


def ranged(count: int, members: list[str]) -> dict[str, list[int]]:
    """So many partitions in a row for each; the first have one more if it does not come out even."""
    share, rest = divmod(count, len(members))
    ranges, begin = {}, 0
    for number, name in enumerate(members):
        end = begin + share + (number < rest)
        ranges[name] = list(range(begin, end))
        begin = end
    return ranges


def _string(text: str) -> bytes:
    data = text.encode()
    return struct.pack(">h", len(data)) + data
