"""Members of a group, in both protocols, as conversations; and the group as its members see it together.

Members are reduced to what a coordinator sees of them: they fetch nothing, and give up a partition at once. In the
classic protocol the leader deals the partitions out in turn. A group is settled when all its members hold an
assignment of the same generation (or epoch), later than the one before, and every partition has exactly one owner.
In the newer protocol ownership is looked at in every answer: a partition given to one member while another has not
given it up is an error at once.
"""

import struct
import time
from collections import Counter
from collections.abc import Generator
from typing import Any, Protocol
from uuid import uuid4

from bench.group_lines import Conversation, Deadline, Line, WrongAnswerError, answer_of, asked, check, frame_of
from klamm.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions
from klamm.wire.messages.heartbeat import HeartbeatRequest
from klamm.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponseMember
from klamm.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from klamm.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

JOIN, HEARTBEAT, LEAVE, SYNC, CONSUMER_HEARTBEAT = 11, 12, 13, 14, 68
VERSION = {JOIN: 9, HEARTBEAT: 4, LEAVE: 5, SYNC: 5, CONSUMER_HEARTBEAT: 1}
REBALANCE_IN_PROGRESS, MEMBER_ID_REQUIRED = 27, 79
SESSION_MS, REBALANCE_MS = 300_000, 300_000
LEAVING = -1


class Member(Protocol):
    """What both protocols have in common. `number` is the generation or the epoch, which commits carry too."""

    line: Line
    member_id: str
    number: int

    def taking_part(self) -> Conversation: ...

    def leaving(self) -> Conversation: ...

    def beating(self, until: Deadline) -> Conversation:
        """Heartbeats until then, but one at least."""


class Group:
    """Who has got how far. It is asked after every answer, so it counts instead of looking."""

    def __init__(self, name: str, topic: str, topic_id: bytes, partitions: int) -> None:
        self.name = name
        self.topic = topic
        self.topic_id = topic_id
        self.partitions = partitions
        self.owners: dict[int, str] = {}
        self.settled_at = 0.0
        self.newest = 0
        """The highest generation or epoch anybody has heard of."""
        self._numbers: dict[str, int] = {}
        self._at: Counter[int] = Counter()
        self._holding: Counter[str] = Counter()
        self._expected = 0
        self._above = 0

    @property
    def is_settled(self) -> bool:
        return self.settled_at > 0

    def begin(self, expected: int) -> None:
        """A rebalance begins, after which there are so many members."""
        self._expected = expected
        self._above = self.newest
        self.settled_at = 0.0

    def heard(self, member: str, number: int) -> None:
        self._at[self._numbers.get(member, 0)] -= 1
        self._numbers[member] = number
        self._at[number] += 1
        self.newest = max(self.newest, number)
        everybody = self.newest > self._above and self._at[self.newest] == self._expected == len(self._numbers)
        if everybody and len(self.owners) == self.partitions and len(self._holding) == self._expected:
            self.settled_at = self.settled_at or time.perf_counter()

    def take(self, member: str, partitions: set[int]) -> None:
        for partition in partitions:
            if self.owners.setdefault(partition, member) != member:
                raise WrongAnswerError(f"{self.name}: partition {partition} has two owners")
        if not all(0 <= partition < self.partitions for partition in partitions):
            raise WrongAnswerError(f"{self.name}: a partition that does not exist")
        if partitions:
            self._holding[member] += len(partitions)

    def release(self, member: str, partitions: set[int]) -> None:
        for partition in partitions:
            del self.owners[partition]
        self._holding[member] -= len(partitions)
        if self._holding[member] == 0:
            del self._holding[member]

    def forget(self, member: str) -> None:
        self._at[self._numbers.pop(member)] -= 1


class ClassicMember:
    def __init__(self, group: Group, line: Line) -> None:
        self.line = line
        self.member_id = ""
        self.number = 0
        self._group = group
        self._must_join = True
        self._owned: set[int] = set()
        self._beat = b""

    def taking_part(self) -> Conversation:
        """Join if need be, then listen with heartbeats for the call to join again, until the group is settled."""
        while not self._group.is_settled:
            if self._must_join:
                yield from self._join()
                continue
            code = yield from self._heartbeat()
            if code == REBALANCE_IN_PROGRESS:
                self._give_up()
            else:
                check(code, "heartbeat")

    def leaving(self) -> Conversation:
        self._give_up()
        self._group.forget(self.member_id)
        request = LeaveGroupRequest(group_id=self._group.name, members=[MemberIdentity(member_id=self.member_id)])
        answer = yield from asked(LEAVE, VERSION[LEAVE], request)
        check(answer.error_code, "leave")
        check(answer.members[0].error_code, "leave")

    def beating(self, until: Deadline) -> Conversation:
        while True:
            check((yield from self._heartbeat()), "heartbeat")
            if not until.counts_and_goes_on():
                return

    def _give_up(self) -> None:
        self._group.release(self.member_id, self._owned)
        self._owned = set()
        self._must_join = True

    def _heartbeat(self) -> Generator[bytes, memoryview, int]:
        answer = yield self._beat
        code: int = answer_of(HEARTBEAT, VERSION[HEARTBEAT], answer).error_code
        return code

    def _join(self) -> Conversation:
        joined = yield from asked(JOIN, VERSION[JOIN], self._join_request())
        if joined.error_code == MEMBER_ID_REQUIRED:
            self.member_id = joined.member_id
            joined = yield from asked(JOIN, VERSION[JOIN], self._join_request())
        check(joined.error_code, "join")
        self.member_id, self.number = joined.member_id, joined.generation_id
        shares = self._shares(joined.members) if joined.leader == self.member_id else []
        request = SyncGroupRequest(
            group_id=self._group.name, generation_id=self.number, member_id=self.member_id, protocol_type="consumer",
            protocol_name="range", assignments=shares,
        )  # fmt: skip
        synced = yield from asked(SYNC, VERSION[SYNC], request)
        if synced.error_code == REBALANCE_IN_PROGRESS:
            return
        check(synced.error_code, "sync")
        beat = HeartbeatRequest(group_id=self._group.name, generation_id=self.number, member_id=self.member_id)
        self._beat = frame_of(HEARTBEAT, VERSION[HEARTBEAT], beat)
        self._must_join = False
        self._owned = _read_share(bytes(synced.assignment))
        self._group.take(self.member_id, self._owned)
        self._group.heard(self.member_id, self.number)

    def _join_request(self) -> JoinGroupRequest:
        topic = self._group.topic.encode()
        subscription = struct.pack(">hih", 1, 1, len(topic)) + topic + struct.pack(">ii", -1, 0)
        return JoinGroupRequest(
            group_id=self._group.name, session_timeout_ms=SESSION_MS, rebalance_timeout_ms=REBALANCE_MS,
            member_id=self.member_id, protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=subscription)],
        )  # fmt: skip

    def _shares(self, members: list[JoinGroupResponseMember]) -> list[SyncGroupRequestAssignment]:
        names = sorted(member.member_id for member in members)
        topic = self._group.topic.encode()
        head = struct.pack(">hih", 0, 1, len(topic)) + topic
        found = []
        for place, name in enumerate(names):
            share = range(place, self._group.partitions, len(names))
            body = struct.pack(f">i{len(share)}ii", len(share), *share, -1)
            found.append(SyncGroupRequestAssignment(member_id=name, assignment=head + body))
        return found


class NewerMember:
    """A member by ConsumerGroupHeartbeat (KIP-848): the broker assigns, and the member says when it has given up."""

    def __init__(self, group: Group, line: Line) -> None:
        self.line = line
        self.member_id = str(uuid4())
        self.number = 0
        self._group = group
        self._owned: set[int] = set()
        self._reported: set[int] | None = None
        self._beat = b""

    def taking_part(self) -> Conversation:
        while not self._group.is_settled:
            yield from self._heartbeat()

    def leaving(self) -> Conversation:
        self._group.release(self.member_id, self._owned)
        self._group.forget(self.member_id)
        request = ConsumerGroupHeartbeatRequest(
            group_id=self._group.name, member_id=self.member_id, member_epoch=LEAVING
        )
        answer = yield from asked(CONSUMER_HEARTBEAT, VERSION[CONSUMER_HEARTBEAT], request)
        check(answer.error_code, "leave")

    def beating(self, until: Deadline) -> Conversation:
        while True:
            yield from self._heartbeat()
            if not until.counts_and_goes_on():
                return

    def _heartbeat(self) -> Conversation:
        reported = self._owned
        frame = self._beat if self._beat and self._reported == reported else self._full_frame()
        answer = answer_of(CONSUMER_HEARTBEAT, VERSION[CONSUMER_HEARTBEAT], (yield frame))
        check(answer.error_code, f"heartbeat ({answer.error_message})")
        self._reported = reported
        if answer.member_epoch != self.number or not self._beat:
            self.number = answer.member_epoch
            beat = ConsumerGroupHeartbeatRequest(
                group_id=self._group.name, member_id=self.member_id, member_epoch=self.number
            )
            self._beat = frame_of(CONSUMER_HEARTBEAT, VERSION[CONSUMER_HEARTBEAT], beat)
        if answer.assignment is not None:
            self._adopt(answer.assignment.topic_partitions)
        self._group.heard(self.member_id, self.number)

    def _full_frame(self) -> bytes:
        """As consumers do: everything when they join, later only what they own, and that when it has changed."""
        request = ConsumerGroupHeartbeatRequest(
            group_id=self._group.name, member_id=self.member_id, member_epoch=self.number,
            topic_partitions=[TopicPartitions(self._group.topic_id, sorted(self._owned))] if self._owned else [],
        )  # fmt: skip
        if self.number == 0:
            request.rebalance_timeout_ms = REBALANCE_MS
            request.subscribed_topic_names = [self._group.topic]
        return frame_of(CONSUMER_HEARTBEAT, VERSION[CONSUMER_HEARTBEAT], request)

    def _adopt(self, topics: list[Any]) -> None:
        given = {partition for topic in topics for partition in topic.partitions}
        if any(topic.topic_id != self._group.topic_id for topic in topics):
            raise WrongAnswerError("partitions of a topic that nobody asked for")
        self._group.release(self.member_id, self._owned - given)
        self._group.take(self.member_id, given - self._owned)
        self._owned = given


PROTOCOLS: dict[str, type[ClassicMember] | type[NewerMember]] = {"classic": ClassicMember, "newer": NewerMember}


def _read_share(assignment: bytes) -> set[int]:
    """The partitions of the one topic in a ConsumerProtocolAssignment."""
    if not assignment:
        return set()
    _, topics, length = struct.unpack_from(">hih", assignment)
    assert topics == 1, "everybody subscribes to one topic"
    (count,) = struct.unpack_from(">i", assignment, 8 + length)
    return set(struct.unpack_from(f">{count}i", assignment, 12 + length))
