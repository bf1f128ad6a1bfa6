"""A group as its coordinator tells of it: its state, its members, what they own, and the offsets it has committed.

There are two kinds, and two questions. A group of the newer protocol (KIP-848, "consumer") is told by
ConsumerGroupDescribe; its assignor runs in the coordinator, which therefore knows who owns what. A classic group is
told by DescribeGroups; its leader made the assignment and the coordinator only keeps the bytes, which we read.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from struct import Struct, error

from klamm.cli.group_asking import Answered, Cluster, Coordinator, Refused, T, name_of
from klamm.errors import ErrorCode
from klamm.ids import TopicPartition
from klamm.local.asking import Conversation
from klamm.wire.messages import consumer_group_describe, describe_groups
from klamm.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup

OFFSET_FETCH, DESCRIBE_GROUPS, CONSUMER_GROUP_DESCRIBE = 9, 15, 69
CLASSIC, CONSUMER = "classic", "consumer"
CONSUMER_PROTOCOL = "consumer"
"""The protocol type whose assignments are lists of partitions. Kafka Connect, for one, has its own."""
MEMBER_TYPES = {0: CLASSIC, 1: CONSUMER}

NOT_THIS_KIND = {ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION}

_int16, _int32 = Struct(">h"), Struct(">i")


@dataclass(frozen=True, slots=True)
class MemberSeen:
    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    owns: tuple[TopicPartition, ...]
    shall_own: tuple[TopicPartition, ...]
    """Other than what it owns while partitions move from member to member."""
    protocol: str
    """Which one it speaks: a group of the newer protocol may have members of the classic one."""
    epoch: int | None


@dataclass(frozen=True, slots=True)
class GroupSeen:
    group: str
    kind: str
    state: str
    protocol_type: str
    assignor: str
    epoch: int | None
    coordinator: Coordinator
    members: tuple[MemberSeen, ...]

    @property
    def owners(self) -> dict[TopicPartition, MemberSeen]:
        return {partition: member for member in self.members for partition in member.owns}


def groups_seen(cluster: Cluster, groups: Collection[str]) -> dict[str, GroupSeen | None]:
    """Each of these groups; None for one that is not there."""
    seen: dict[str, GroupSeen | None] = {}
    answers = cluster.of_groups(groups, describe_consumer)
    for group, answer in answers.items():
        if answer.code not in NOT_THIS_KIND:
            seen[group] = _consumer_group(_checked(group, answer))
    for group, classic in cluster.of_groups([each for each in groups if each not in seen], describe_classic).items():
        there = classic.code != ErrorCode.GROUP_ID_NOT_FOUND
        found = _classic_group(_checked(group, classic)) if there else None
        # Before version 6 of the request, a group that nobody knows was a dead one.
        seen[group] = None if found is None or found.state == "Dead" else found
    return {group: seen[group] for group in groups}


def describe_consumer(
    broker: Conversation, groups: Sequence[str]
) -> dict[str, tuple[int, consumer_group_describe.DescribedGroup]]:
    request = consumer_group_describe.ConsumerGroupDescribeRequest(list(groups))
    answer = broker.ask(CONSUMER_GROUP_DESCRIBE, 1, request)
    return {each.group_id: (each.error_code, each) for each in answer.groups}


def describe_classic(
    broker: Conversation, groups: Sequence[str]
) -> dict[str, tuple[int, describe_groups.DescribedGroup]]:
    answer = broker.ask(DESCRIBE_GROUPS, 6, describe_groups.DescribeGroupsRequest(list(groups)))
    return {each.group_id: (each.error_code, each) for each in answer.groups}


def committed_offsets(cluster: Cluster, groups: Collection[str]) -> dict[str, dict[TopicPartition, int]]:
    """All that each of these groups has committed."""
    committed = {}
    for group, answer in cluster.of_groups(groups, _fetch_offsets).items():
        not_there = answer.code == ErrorCode.GROUP_ID_NOT_FOUND
        committed[group] = {} if not_there else dict(_checked(group, answer).value)
    return committed


def owned_partitions(assignment: bytes) -> tuple[TopicPartition, ...]:
    """What a classic member was assigned, in the bytes that consumers agree on: version, topics, user data.

    Members without an assignment have none of it. Nothing is read that the bytes do not hold.
    """
    if not assignment:
        return ()
    try:
        position, owned = 2, []
        (topics,) = _int32.unpack_from(assignment, position)
        position += 4
        for _ in range(topics):
            (length,) = _int16.unpack_from(assignment, position)
            if length < 0:
                return ()
            name = bytes(assignment[position + 2 : position + 2 + length]).decode()
            position += 2 + length
            (count,) = _int32.unpack_from(assignment, position)
            position += 4
            for _ in range(count):
                owned.append(TopicPartition(name, *_int32.unpack_from(assignment, position)))
                position += 4
    except (error, UnicodeDecodeError):
        return ()
    return tuple(sorted(owned))


def _fetch_offsets(broker: Conversation, groups: Sequence[str]) -> dict[str, tuple[int, Mapping[TopicPartition, int]]]:
    wanted = [OffsetFetchRequestGroup(group, topics=None) for group in groups]
    answer = broker.ask(OFFSET_FETCH, 8, OffsetFetchRequest(groups=wanted))
    return {
        each.group_id: (
            each.error_code,
            {
                TopicPartition(topic.name, partition.partition_index): partition.committed_offset
                for topic in each.topics
                for partition in topic.partitions
                if not partition.error_code and partition.committed_offset >= 0
            },
        )
        for each in answer.groups
    }


def _checked(group: str, answer: Answered[T]) -> Answered[T]:
    if answer.code:
        raise Refused(f"group {group!r}: {name_of(answer.code)}")
    return answer


def _consumer_group(answer: "Answered[consumer_group_describe.DescribedGroup]") -> GroupSeen:
    told = answer.value
    members = tuple(
        MemberSeen(
            each.member_id,
            each.instance_id,
            each.client_id,
            each.client_host,
            owns=_partitions(each.assignment),
            shall_own=_partitions(each.target_assignment),
            protocol=MEMBER_TYPES.get(each.member_type, CONSUMER),
            epoch=each.member_epoch,
        )
        for each in sorted(told.members, key=lambda each: each.member_id)
    )
    assignor = told.assignor_name if members else ""
    return GroupSeen(
        told.group_id,
        CONSUMER,
        told.group_state,
        CONSUMER_PROTOCOL,
        assignor,
        told.group_epoch,
        answer.coordinator,
        members,
    )


def _partitions(assignment: consumer_group_describe.Assignment) -> tuple[TopicPartition, ...]:
    return tuple(
        sorted(
            TopicPartition(topic.topic_name, partition)
            for topic in assignment.topic_partitions
            for partition in topic.partitions
        )
    )


def _classic_group(answer: "Answered[describe_groups.DescribedGroup]") -> GroupSeen:
    told = answer.value
    readable = told.protocol_type == CONSUMER_PROTOCOL
    members = []
    for each in sorted(told.members, key=lambda each: each.member_id):
        owns = owned_partitions(each.member_assignment) if readable else ()
        members.append(
            MemberSeen(
                each.member_id, each.group_instance_id, each.client_id, each.client_host, owns, owns, CLASSIC, None
            )
        )
    return GroupSeen(
        told.group_id,
        CLASSIC,
        told.group_state,
        told.protocol_type,
        told.protocol_data,
        None,
        answer.coordinator,
        tuple(members),
    )
