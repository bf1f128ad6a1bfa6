"""A broker as small as members of groups need one: a topic, its records, and a coordinator that keeps to the protocol.

It is there to test members, and to be wrong on purpose: `forgets_to_wait` hands a partition over before its owner has
given it up, `checks_nothing` takes commits of anybody. Everything is answered at once but for JoinGroup and SyncGroup.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from klamm.codec.compiler import decode_from
from klamm.errors import ErrorCode
from klamm.node.events import Event, Received
from klamm.records.builder import BatchBuilder
from klamm.sim.clients.member_classic import ranged
from klamm.sim.network import Host, Network
from klamm.sim.world import World
from klamm.wire.apis import API_BY_KEY, request_type, response_type
from klamm.wire.frames import encoded_response
from klamm.wire.headers import RequestHeader, read_request_header
from klamm.wire.messages.consumer_group_heartbeat import Assignment, ConsumerGroupHeartbeatResponse, TopicPartitions
from klamm.wire.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from klamm.wire.messages.find_coordinator import Coordinator, FindCoordinatorResponse
from klamm.wire.messages.heartbeat import HeartbeatResponse
from klamm.wire.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from klamm.wire.messages.leave_group import LeaveGroupResponse
from klamm.wire.messages.metadata import MetadataResponse, MetadataResponsePartition, MetadataResponseTopic
from klamm.wire.messages.offset_commit import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from klamm.wire.messages.offset_fetch import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from klamm.wire.messages.sync_group import SyncGroupResponse

TOPIC, TOPIC_ID, GROUP = "steady", b"steady".ljust(16, b"."), "group-0"
PORT = 9_000
SESSION_MS = 2_500.0
JOIN_MS = 150.0

Say = Callable[[Any], None]


@dataclass
class Seated:
    """A member, as the coordinator knows it."""

    instance_id: str | None
    heard_ms: float
    epoch: int = 0
    owned: set[int] = field(default_factory=set)
    target: set[int] = field(default_factory=set)
    told: set[int] | None = None
    joins: Say | None = None
    syncs: Say | None = None
    assignment: bytes = b""


class StubBroker(Host):
    def __init__(self, world: World, network: Network, partitions: int = 3) -> None:
        super().__init__("broker", PORT)
        self.takes_connections = True
        self.world = world
        self.members: dict[str, Seated] = {}
        self.epoch = 0
        self.is_stable = False
        self.records = [0] * partitions
        self.offsets: dict[int, tuple[int, str]] = {}
        self.answers_with = ErrorCode.NONE
        """What everything about groups is answered with."""
        self.forgets_to_wait = False
        self.checks_nothing = False
        self._network = network
        self._numbers = count(1)
        self._slots: dict[int, dict[int, bytes]] = {}
        self._ids = count(1)
        self._join_alarm = 0
        network.add(self)
        self._tick()

    def accept(self) -> int:
        return next(self._numbers)

    def hear(self, event: Event) -> None:
        if isinstance(event, Received):
            for frame in event.frames:
                header, position = read_request_header(frame)
                request, _ = decode_from(request_type(header.api_key), header.api_version, frame, position, budget=999)
                self._answer(header, request, event.connection)

    def _answer(self, header: RequestHeader, request: Any, connection: int) -> None:
        slots = self._slots.setdefault(connection, {})
        slots[header.correlation_id] = b""

        def say(response: Any) -> None:
            api = API_BY_KEY[header.api_key]
            pieces = encoded_response(api, header.api_version, header.correlation_id, response)
            slots[header.correlation_id] = b"".join(bytes(piece) for piece in pieces)
            # Answers leave in the order of asking.
            while slots and slots[first := next(iter(slots))]:
                self._network.send(self, connection, slots.pop(first))

        handlers: dict[int, Callable[[int, Any, Say], None]] = {
            1: self._fetch, 3: self._metadata, 8: self._commit, 9: self._offsets, 10: self._find, 11: self._join,
            12: self._heartbeat, 13: self._leave, 14: self._sync, 68: self._consumer_heartbeat,
        }  # fmt: skip
        if self.answers_with and header.api_key in (11, 12, 14, 68):
            say(response_type(header.api_key)(error_code=self.answers_with))
        else:
            handlers[header.api_key](header.api_version, request, say)

    def _tick(self) -> None:
        """Who was not heard for a session is gone."""
        self.world.after(50.0, self._tick)
        gone = [name for name, each in self.members.items() if self.world.now_ms - each.heard_ms > SESSION_MS]
        for name in gone:
            if self.members[name].joins is None:
                del self.members[name]
                self._changed()

    def _changed(self) -> None:
        self.is_stable = False
        if any(each.epoch for each in self.members.values()):
            self._assign()
        if any(each.joins for each in self.members.values()):
            self._join_soon()

    # The topic.

    def _metadata(self, version: int, request: Any, say: Say) -> None:
        parts = [
            MetadataResponsePartition(partition_index=index, leader_id=0, leader_epoch=0)
            for index in range(len(self.records))
        ]
        say(MetadataResponse(topics=[MetadataResponseTopic(name=TOPIC, topic_id=TOPIC_ID, partitions=parts)]))

    def _fetch(self, version: int, request: Any, say: Say) -> None:
        parts = []
        for wanted in request.topics[0].partitions if request.topics else ():
            end = self.records[wanted.partition]
            data = PartitionData(partition_index=wanted.partition, high_watermark=end, aborted_transactions=None)
            if wanted.fetch_offset < end:
                builder = BatchBuilder(base_offset=wanted.fetch_offset, leader_epoch=0)
                for offset in range(wanted.fetch_offset, end):
                    builder.append(None, b"%d" % offset, 0)
                data.records = builder.build()
            parts.append(data)
        answer = FetchResponse(responses=[FetchableTopicResponse(topic_id=TOPIC_ID, partitions=parts)])
        self.world.after(20.0, lambda: say(answer))

    # Offsets.

    def _find(self, version: int, request: Any, say: Say) -> None:
        found = Coordinator(key=GROUP, node_id=0, host="broker", port=PORT)
        say(FindCoordinatorResponse(node_id=0, host="broker", port=PORT, coordinators=[found]))

    def _commit(self, version: int, request: Any, say: Say) -> None:
        member = self.members.get(request.member_id)
        code = self.answers_with
        if not self.checks_nothing and not code:
            if member is None:
                code = ErrorCode.UNKNOWN_MEMBER_ID
            elif request.generation_id_or_member_epoch != (member.epoch or self.epoch):
                code = ErrorCode.STALE_MEMBER_EPOCH if member.epoch else ErrorCode.ILLEGAL_GENERATION
        topic = request.topics[0]
        for part in topic.partitions if not code else ():
            self.offsets[part.partition_index] = (part.committed_offset, part.committed_metadata or "")
        parts = [
            OffsetCommitResponsePartition(partition_index=part.partition_index, error_code=code)
            for part in topic.partitions
        ]
        say(
            OffsetCommitResponse(
                topics=[OffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id, partitions=parts)]
            )
        )

    def _offsets(self, version: int, request: Any, say: Say) -> None:
        topics = request.topics if version < 8 else request.groups[0].topics
        wanted = sorted(self.offsets) if topics is None else topics[0].partition_indexes
        told = [(index, *self.offsets.get(index, (-1, ""))) for index in wanted]
        if version < 8:
            old = [
                OffsetFetchResponsePartition(partition_index=index, committed_offset=offset, metadata=name)
                for index, offset, name in told
            ]
            say(OffsetFetchResponse(topics=[OffsetFetchResponseTopic(name=TOPIC, partitions=old)]))
            return
        new = [
            OffsetFetchResponsePartitions(partition_index=index, committed_offset=offset, metadata=name)
            for index, offset, name in told
        ]
        topic = OffsetFetchResponseTopics(name=TOPIC, topic_id=TOPIC_ID, partitions=new)
        say(OffsetFetchResponse(groups=[OffsetFetchResponseGroup(group_id=GROUP, topics=[topic])]))

    # The classic protocol.

    def _join(self, version: int, request: Any, say: Say) -> None:
        name, instance_id = request.member_id, request.group_instance_id
        replaced = [each for each, seated in self.members.items() if instance_id and seated.instance_id == instance_id]
        if not name:
            name = f"member-{next(self._ids)}"
            for old in replaced:
                del self.members[old]
            if version >= 4 and instance_id is None:
                say(JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id=name))
                return
        elif replaced and name not in replaced:
            say(JoinGroupResponse(error_code=ErrorCode.FENCED_INSTANCE_ID))
            return
        member = self.members.setdefault(name, Seated(instance_id, self.world.now_ms))
        member.heard_ms, member.joins, member.syncs = self.world.now_ms, say, None
        self._changed()

    def _join_soon(self) -> None:
        """When everybody has joined, or had the time to."""
        self._join_alarm += 1
        alarm, waited_ms = self._join_alarm, 0.0

        def look() -> None:
            nonlocal waited_ms
            if alarm != self._join_alarm:
                return
            waited_ms += JOIN_MS
            if waited_ms < 2_000.0 and any(each.joins is None for each in self.members.values()):
                self.world.after(JOIN_MS, look)
            else:
                self._begin_generation()

        self.world.after(JOIN_MS, look)

    def _begin_generation(self) -> None:
        self.members = {name: each for name, each in self.members.items() if each.joins is not None}
        self.epoch += 1
        leader = min(self.members)
        everybody = [JoinGroupResponseMember(member_id=name) for name in self.members]
        for name, each in self.members.items():
            assert each.joins is not None
            each.heard_ms = self.world.now_ms
            each.joins(
                JoinGroupResponse(
                    generation_id=self.epoch,
                    protocol_type="consumer",
                    protocol_name="range",
                    leader=leader,
                    member_id=name,
                    members=everybody if name == leader else [],
                )
            )
            each.joins = None

    def _sync(self, version: int, request: Any, say: Say) -> None:
        code = self._judged(request)
        if code:
            say(SyncGroupResponse(error_code=code))
            return
        self.members[request.member_id].syncs = say
        for each in request.assignments:
            self.members[each.member_id].assignment = bytes(each.assignment)
        if request.assignments:
            self.is_stable = True
        for each in self.members.values() if self.is_stable else ():
            if each.syncs is not None:
                each.syncs(SyncGroupResponse(assignment=each.assignment))
                each.syncs = None

    def _heartbeat(self, version: int, request: Any, say: Say) -> None:
        code = self._judged(request)
        if not code:
            self.members[request.member_id].heard_ms = self.world.now_ms
            code = ErrorCode.NONE if self.is_stable else ErrorCode.REBALANCE_IN_PROGRESS
        say(HeartbeatResponse(error_code=code))

    def _judged(self, request: Any) -> ErrorCode:
        if request.member_id not in self.members:
            instances = [each.instance_id for each in self.members.values() if each.instance_id is not None]
            is_replaced = request.group_instance_id in instances
            return ErrorCode.FENCED_INSTANCE_ID if is_replaced else ErrorCode.UNKNOWN_MEMBER_ID
        return ErrorCode.NONE if request.generation_id == self.epoch else ErrorCode.ILLEGAL_GENERATION

    def _leave(self, version: int, request: Any, say: Say) -> None:
        self.members.pop(request.members[0].member_id if version >= 3 else request.member_id, None)
        self._changed()
        say(LeaveGroupResponse())

    # The newer one.

    def _consumer_heartbeat(self, version: int, request: Any, say: Say) -> None:
        name = request.member_id or f"member-{next(self._ids)}"
        member = self.members.get(name)
        if request.member_epoch < 0:
            self.members.pop(name, None)
            self._changed()
            say(ConsumerGroupHeartbeatResponse(member_epoch=request.member_epoch))
            return
        if request.member_epoch == 0:
            taken = [each for each in self.members.values() if each.instance_id and each is not member]
            if any(each.instance_id == request.instance_id for each in taken):
                say(ConsumerGroupHeartbeatResponse(error_code=ErrorCode.UNRELEASED_INSTANCE_ID))
                return
            member = self.members[name] = Seated(request.instance_id, self.world.now_ms, epoch=1)
            self._assign()
        elif member is None or request.member_epoch != member.epoch:
            code = ErrorCode.UNKNOWN_MEMBER_ID if member is None else ErrorCode.FENCED_MEMBER_EPOCH
            say(ConsumerGroupHeartbeatResponse(error_code=code))
            return
        member.heard_ms = self.world.now_ms
        if request.topic_partitions is not None:
            member.owned = {index for topic in request.topic_partitions for index in topic.partitions}
            member.owned |= member.told & member.target if member.told else set()
        say(self._state_of(name, member, is_full=request.rebalance_timeout_ms >= 0))

    def _state_of(self, name: str, member: Seated, *, is_full: bool) -> ConsumerGroupHeartbeatResponse:
        others = {index for each in self.members.values() if each is not member for index in each.owned}
        others = set() if self.forgets_to_wait else others
        tells = (member.owned & member.target) | (member.target - others)
        if member.owned <= member.target:
            member.epoch = self.epoch
        assignment = None
        if is_full or tells != member.told:
            member.told = tells
            parts = [TopicPartitions(topic_id=TOPIC_ID, partitions=sorted(tells))] if tells else []
            assignment = Assignment(topic_partitions=parts)
        member.owned |= tells
        return ConsumerGroupHeartbeatResponse(
            member_id=name, member_epoch=member.epoch, heartbeat_interval_ms=400, assignment=assignment
        )

    def _assign(self) -> None:
        self.epoch += 1
        for name, indexes in ranged(len(self.records), sorted(self.members)).items():
            self.members[name].target = set(indexes)
