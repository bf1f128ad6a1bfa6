"""What the APIs of classic groups say in their versions, beyond what the coordinator decides."""

from collections.abc import Callable
from typing import Any

import pytest

from klamm.errors import ErrorCode
from klamm.handlers import (
    delete_groups,
    describe_groups,
    find_coordinator,
    heartbeat,
    join_group,
    leave_group,
    list_groups,
    offset_commit,
    offset_delete,
    offset_fetch,
    sync_group,
)
from klamm.ids import Now
from klamm.wire.messages.delete_groups import DeleteGroupsRequest
from klamm.wire.messages.describe_groups import DescribeGroupsRequest
from klamm.wire.messages.find_coordinator import FindCoordinatorRequest
from klamm.wire.messages.heartbeat import HeartbeatRequest
from klamm.wire.messages.join_group import JoinGroupRequest
from klamm.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from klamm.wire.messages.list_groups import ListGroupsRequest
from klamm.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from klamm.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from klamm.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from klamm.wire.messages.sync_group import SyncGroupRequest
from tests.broker.groups_world import GROUP, GroupsWorld, commit, joined, synced, the_topic_is_that_of_the_offsets
from tests.broker.world import World

__all__ = ["the_topic_is_that_of_the_offsets"]
NOBODY = b"nobody".ljust(16, b".")


def asked(world: World, handle: Callable[..., Any], request: Any, version: int) -> Any:
    answers: list[Any] = []
    world[0].ask(handle, request, version, answers.append)
    [answer] = answers
    return answer


@pytest.fixture
def world() -> GroupsWorld:
    return GroupsWorld((0,))


def member_of(world: GroupsWorld) -> Any:
    """The only member of a stable group."""
    joining = joined(world[0])
    world.pass_ms(3_000)
    synced(world[0], joining[0])
    return joining[0]


def test_a_join_that_is_refused(world: GroupsWorld) -> None:
    request = JoinGroupRequest(group_id=GROUP, session_timeout_ms=10_000, member_id="made up", protocol_type="consumer")
    for version, nothing in ((6, ""), (7, None)):
        answer = asked(world, join_group.handle, request, version)
        assert (answer.error_code, answer.generation_id) == (ErrorCode.UNKNOWN_MEMBER_ID, -1)
        assert (answer.member_id, answer.protocol_name, answer.leader) == ("made up", nothing, "")


@pytest.mark.parametrize("version", range(10))
def test_from_version_4_on_members_are_given_their_id_first(world: GroupsWorld, version: int) -> None:
    joining = joined(world[0], version=version)
    given = [answer.error_code for answer in joining]
    assert given == ([ErrorCode.MEMBER_ID_REQUIRED] if version >= 4 else [])


def test_version_0_has_one_timeout_for_both(world: GroupsWorld) -> None:
    joined(world[0], version=0)
    [member] = world[0].broker.coordination._hosted[0].shard._groups[GROUP]._is  # type: ignore[attr-defined]
    assert member.rebalance_timeout_ms == member.session_timeout_ms == 10_000


def test_errors_of_sync_and_heartbeat(world: GroupsWorld) -> None:
    sync = SyncGroupRequest(group_id=GROUP, generation_id=1, member_id="x")
    assert asked(world, sync_group.handle, sync, 5).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    beat = HeartbeatRequest(group_id="", generation_id=1, member_id="x")
    assert asked(world, heartbeat.handle, beat, 4).error_code == ErrorCode.INVALID_GROUP_ID


def test_leaving(world: GroupsWorld) -> None:
    member = member_of(world)
    old = LeaveGroupRequest(group_id=GROUP, member_id="x")
    assert asked(world, leave_group.handle, old, 2).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    both = [MemberIdentity(member_id="x"), MemberIdentity(member_id=member.member_id)]
    answer = asked(world, leave_group.handle, LeaveGroupRequest(group_id=GROUP, members=both), 3)
    assert answer.error_code == 0
    assert [(each.member_id, each.error_code) for each in answer.members] == [
        ("x", ErrorCode.UNKNOWN_MEMBER_ID),
        (member.member_id, ErrorCode.NONE),
    ]
    nameless = LeaveGroupRequest(group_id="", member_id="x", members=both)
    for version in (0, 3):
        assert asked(world, leave_group.handle, nameless, version).error_code == ErrorCode.INVALID_GROUP_ID


def test_committing_for_topics_that_are_and_are_not(world: GroupsWorld) -> None:
    known = world.controller.image.topics["orders"].topic_id
    data = [OffsetCommitRequestPartition(partition_index=index, committed_offset=5) for index in (0, 3, -1)]
    topics = [
        OffsetCommitRequestTopic(name="orders", topic_id=known, partitions=data),
        OffsetCommitRequestTopic(name="nobody", topic_id=NOBODY, partitions=data[:1]),
    ]
    request = OffsetCommitRequest(group_id=GROUP, generation_id_or_member_epoch=-1, topics=topics)
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    for version, no_topic in ((9, unknown), (10, ErrorCode.UNKNOWN_TOPIC_ID)):
        answer = asked(world, offset_commit.handle, request, version)
        assert [[each.error_code for each in topic.partitions] for topic in answer.topics] == [
            [ErrorCode.NONE, unknown, unknown],
            [no_topic],
        ]
        assert [topic.topic_id for topic in answer.topics] == [known, NOBODY]


@pytest.mark.parametrize("version", [8, 9])
def test_committing_to_a_group_that_is_not_there(world: GroupsWorld, version: int) -> None:
    data = [OffsetCommitRequestPartition(partition_index=0, committed_offset=5)]
    request = OffsetCommitRequest(
        group_id=GROUP,
        generation_id_or_member_epoch=3,
        topics=[OffsetCommitRequestTopic(name="orders", partitions=data)],
    )
    answer = asked(world, offset_commit.handle, request, version)
    expected = ErrorCode.GROUP_ID_NOT_FOUND if version >= 9 else ErrorCode.ILLEGAL_GENERATION
    assert answer.topics[0].partitions[0].error_code == expected


@pytest.mark.parametrize("version", [1, 2, 7])
def test_fetching_offsets_of_one_group(world: GroupsWorld, version: int) -> None:
    commit(world[0], 5, 1, metadata="note")
    wanted = [OffsetFetchRequestTopic(name="orders", partition_indexes=[1, 0])]
    answer = asked(world, offset_fetch.handle, OffsetFetchRequest(group_id=GROUP, topics=wanted), version)
    assert [
        (each.partition_index, each.committed_offset, each.metadata, each.error_code)
        for each in answer.topics[0].partitions
    ] == [(1, 5, "note", 0), (0, -1, "", 0)]
    if version >= 2:
        every = asked(world, offset_fetch.handle, OffsetFetchRequest(group_id=GROUP, topics=None), version)
        assert [(topic.name, len(topic.partitions)) for topic in every.topics] == [("orders", 1)]


@pytest.mark.parametrize("version", [1, 2, 7])
def test_an_error_stands_wherever_somebody_may_look_for_it(version: int) -> None:
    """aiokafka looks at partitions alone, and began at 0 while its coordinator moved: committed was 582."""
    world = GroupsWorld((1,))
    wanted = [OffsetFetchRequestTopic(name="orders", partition_indexes=[0])]
    answer = asked(world, offset_fetch.handle, OffsetFetchRequest(group_id=GROUP, topics=wanted), version)
    in_partitions = [each.error_code for topic in answer.topics for each in topic.partitions]
    assert in_partitions == [ErrorCode.NOT_COORDINATOR]
    assert answer.error_code == ErrorCode.NOT_COORDINATOR


def test_an_error_that_is_fatal_to_who_looks_at_partitions_is_another_one_there(world: GroupsWorld) -> None:
    world[0].broker.coordination.counted_on_until_ms = 0.0
    wanted = [OffsetFetchRequestTopic(name="orders", partition_indexes=[0])]
    answer = asked(world, offset_fetch.handle, OffsetFetchRequest(group_id=GROUP, topics=wanted), 3)
    assert answer.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert answer.topics[0].partitions[0].error_code == ErrorCode.NOT_COORDINATOR


def test_fetching_offsets_of_several_groups(world: GroupsWorld) -> None:
    commit(world[0], 5, 1)
    known = world.controller.image.topics["orders"].topic_id
    wanted = [
        OffsetFetchRequestTopics(name="orders", topic_id=known, partition_indexes=[1]),
        OffsetFetchRequestTopics(name="nobody", topic_id=NOBODY, partition_indexes=[0]),
    ]
    groups = [
        OffsetFetchRequestGroup(group_id=GROUP, topics=wanted),
        OffsetFetchRequestGroup(group_id=GROUP, topics=None),
        OffsetFetchRequestGroup(group_id="other", member_id="m", member_epoch=4, topics=wanted[:1]),
    ]
    for version, no_topic in ((9, ErrorCode.NONE), (10, ErrorCode.UNKNOWN_TOPIC_ID)):
        first, every, other = asked(world, offset_fetch.handle, OffsetFetchRequest(groups=groups), version).groups
        found = [(each.committed_offset, each.error_code) for topic in first.topics for each in topic.partitions]
        assert found == [(5, 0), (-1, no_topic)]
        assert [(topic.name, topic.topic_id) for topic in every.topics] == [("orders", known)]
        assert (other.group_id, other.error_code, other.topics[0].partitions[0].committed_offset) == ("other", 0, -1)


def test_deleting_offsets(world: GroupsWorld) -> None:
    commit(world[0], 5, 1)
    data = [OffsetDeleteRequestPartition(partition_index=index) for index in (0, 1, 3)]
    request = OffsetDeleteRequest(group_id=GROUP, topics=[OffsetDeleteRequestTopic(name="orders", partitions=data)])
    answer = asked(world, offset_delete.handle, request, 0)
    assert [each.error_code for each in answer.topics[0].partitions] == [0, 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    request.group_id = "other"
    assert asked(world, offset_delete.handle, request, 0).error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_describing(world: GroupsWorld) -> None:
    member = member_of(world)
    request = DescribeGroupsRequest(groups=["other", GROUP], include_authorized_operations=True)
    for version in (5, 6):
        other, own = asked(world, describe_groups.handle, request, version).groups
        assert (own.group_state, own.protocol_type, own.protocol_data) == ("Stable", "consumer", "range")
        assert [each.member_id for each in own.members] == [member.member_id] and own.authorized_operations == 3400
        missing = (ErrorCode.GROUP_ID_NOT_FOUND, "Group other not found.") if version >= 6 else (ErrorCode.NONE, None)
        assert (other.group_state, (other.error_code, other.error_message)) == ("Dead", missing)


def test_listing(world: GroupsWorld) -> None:
    member_of(world)
    commit(world[0], 5, group_id="simple")

    def names(**filters: list[str]) -> list[str]:
        answer = asked(world, list_groups.handle, ListGroupsRequest(**filters), 5)
        assert answer.error_code == 0
        return [each.group_id for each in answer.groups]

    assert names() == [GROUP, "simple"]
    assert names(states_filter=["sTABLE"]) == [GROUP] and names(states_filter=["Empty"]) == ["simple"]
    assert names(types_filter=["Classic"]) == [GROUP, "simple"] and names(types_filter=["consumer"]) == []
    assert names(states_filter=["no such state"]) == []


def test_deleting(world: GroupsWorld) -> None:
    member_of(world)
    commit(world[0], 5, group_id="simple")
    request = DeleteGroupsRequest(groups_names=[GROUP, "simple", "other", "simple", ""])
    answer = asked(world, delete_groups.handle, request, 2)
    assert [(each.group_id, each.error_code) for each in answer.results] == [
        (GROUP, ErrorCode.NON_EMPTY_GROUP),
        ("simple", ErrorCode.NONE),
        ("other", ErrorCode.GROUP_ID_NOT_FOUND),
        ("", ErrorCode.GROUP_ID_NOT_FOUND),
    ]


@pytest.mark.parametrize(("key_type", "code"), [(1, 53), (2, 42), (3, 42), (-1, 42)])
def test_coordinators_of_others_than_groups(world: GroupsWorld, key_type: int, code: int) -> None:
    request = FindCoordinatorRequest(key="x", key_type=key_type, coordinator_keys=["x"])
    old, new = (asked(world, find_coordinator.handle, request, version) for version in (3, 4))
    for found in (old, new.coordinators[0]):
        assert (found.error_code, found.node_id, found.host, found.port) == (code, -1, "", -1)


def test_what_is_said_where_nothing_is_wrong(world: GroupsWorld) -> None:
    request = FindCoordinatorRequest(key="", coordinator_keys=["", "b"])
    assert asked(world, find_coordinator.handle, request, 3).error_message == "NONE"
    found = asked(world, find_coordinator.handle, request, 4).coordinators
    assert [(each.key, each.error_message, each.node_id) for each in found] == [("", "", 0), ("b", "", 0)]
    assert asked(world, find_coordinator.handle, FindCoordinatorRequest(coordinator_keys=[]), 4).coordinators == []


class ToyErrands:
    """Somebody is asked to create the topic, with so many replicas."""

    def __init__(self) -> None:
        self.wanted: list[int] = []

    def create_offsets_topic(self, replicas: int, now: Now) -> None:
        self.wanted.append(replicas)


def test_the_first_who_asks_waits_for_the_topic() -> None:
    world = World(3)
    world.advance(10_000)
    errands = ToyErrands()
    world[0].broker.errands = errands  # type: ignore[assignment]
    answers: list[Any] = []
    for _ in range(2):
        world[0].ask(find_coordinator.handle, FindCoordinatorRequest(key=GROUP), 3, answers.append)
    assert errands.wanted == [3] and not answers, "it is asked for once"
    world.create_topic([1, 2, 0])
    world.settle_all()
    assert [each.node_id for each in answers] == [1, 1]


def test_and_is_told_when_that_takes_too_long() -> None:
    world = World(3)
    world.advance(10_000)
    world[0].broker.errands = ToyErrands()  # type: ignore[assignment]
    answers: list[Any] = []
    world[0].ask(find_coordinator.handle, FindCoordinatorRequest(key=GROUP), 3, answers.append)
    world.advance(1_000)
    assert [each.error_code for each in answers] == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    world[0].broker.coordination.offsets_topic.not_created(world.now)
    assert not world[0].broker.coordination.offsets_topic.is_creating, "the next one asks again"


def test_a_dead_broker_that_was_active_is_not_waited_for_and_gets_its_replicas() -> None:
    """A first group waited ten seconds for the controller that had just been killed, "because it may be starting"."""
    world = World(3)
    errands = ToyErrands()
    world[0].broker.errands = errands  # type: ignore[assignment]
    world.controller.fence(2)
    world.follow_all()
    answers: list[Any] = []
    world[0].ask(find_coordinator.handle, FindCoordinatorRequest(key=GROUP), 3, answers.append)
    assert errands.wanted == [3] and not answers


def test_a_broker_that_is_still_starting_is_waited_for() -> None:
    world = World(3)
    errands = ToyErrands()
    world.controller.fence(2)
    world.restart(0)
    world[0].broker.errands = errands  # type: ignore[assignment]
    answers: list[Any] = []
    world[0].ask(find_coordinator.handle, FindCoordinatorRequest(key=GROUP), 3, answers.append)
    assert not errands.wanted, "it has not been seen since we began: it may be about to start, too"
    assert [each.error_code for each in answers] == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    world.controller.unfence(2)
    world.follow_all()
    world[0].ask(find_coordinator.handle, FindCoordinatorRequest(key=GROUP), 3, answers.append)
    assert errands.wanted == [3]


def test_a_coordinator_that_has_just_died_is_not_named_and_the_next_one_is_waited_for() -> None:
    """The next controller may have it lead before it knows that it is dead: a client that dialled it lost seconds."""
    world = World(3)
    world.create_topic([1, 2, 0])
    world.settle_all()
    broker = world[0].broker
    broker.absent.note(1, broker.image, world.now)
    answers: list[Any] = []
    world[0].ask(find_coordinator.handle, FindCoordinatorRequest(key=GROUP), 3, answers.append)
    assert not answers
    world.controller.elect(0, 2)
    world.follow_all()
    world[0].tick()
    assert [each.node_id for each in answers] == [2]


def test_a_coordinator_that_is_suspected_is_named_when_it_answers_again() -> None:
    world = World(3)
    world.create_topic([1, 2, 0])
    world.settle_all()
    broker = world[0].broker
    broker.absent.suspects.add(1)
    answers: list[Any] = []
    world[0].ask(find_coordinator.handle, FindCoordinatorRequest(key=GROUP), 3, answers.append)
    assert not answers
    broker.absent.suspects.clear()
    broker.waiting.changed(broker.absent)
    world[0].tick()
    assert [each.node_id for each in answers] == [1]


class NoControllerAtFirst(ToyErrands):
    """So many times nobody can be asked."""

    def __init__(self, world: World, times: int) -> None:
        super().__init__()
        self._world = world
        self._left = times

    def create_offsets_topic(self, replicas: int, now: Now) -> None:
        super().create_offsets_topic(replicas, now)
        if self._left:
            self._left -= 1
            self._world[0].broker.coordination.offsets_topic.not_created(now, is_passing=True)


def wait(world: World, ms: float) -> None:
    world.advance(ms)
    world[0].broker.coordination.tick(world.now)
    world[0].tick()


def test_whoever_asks_while_there_is_no_controller_waits_for_one() -> None:
    """A client that is told that there is no coordinator asks again after a second: the controller is there sooner."""
    world = World(3)
    errands = NoControllerAtFirst(world, 3)
    world[0].broker.errands = errands  # type: ignore[assignment]
    answers: list[Any] = []
    world[0].ask(find_coordinator.handle, FindCoordinatorRequest(key=GROUP), 3, answers.append)
    for _ in range(3):
        assert not answers
        wait(world, 30)
    assert errands.wanted == [3] * 4
    world.create_topic([1, 2, 0])
    world.settle_all()
    assert [each.node_id for each in answers] == [1]


def test_nobody_is_asked_for_a_topic_that_nobody_waits_for_any_more() -> None:
    world = World(3)
    errands = NoControllerAtFirst(world, 1_000)
    world[0].broker.errands = errands  # type: ignore[assignment]
    answers: list[Any] = []
    world[0].ask(find_coordinator.handle, FindCoordinatorRequest(key=GROUP), 3, answers.append)
    for _ in range(100):
        wait(world, 30)
    assert [each.error_code for each in answers] == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    asked = len(errands.wanted)
    assert asked < 40 and not world[0].broker.coordination.offsets_topic.is_creating
    wait(world, 60_000)
    assert len(errands.wanted) == asked


def test_a_creation_that_nobody_ever_speaks_of_again_is_asked_for_once_more() -> None:
    world = World(3)
    world.advance(10_000)
    errands = ToyErrands()
    world[0].broker.errands = errands  # type: ignore[assignment]
    for _ in range(2):
        world[0].ask(find_coordinator.handle, FindCoordinatorRequest(key=GROUP), 3, [].append)
        world.advance(30_000)
    assert errands.wanted == [3, 3]


def test_who_comes_before_this_broker_has_heard_of_the_topic_is_not_refused() -> None:
    """Sent here by a broker that was quicker. librdkafka comes back three seconds after a refusal."""
    world = World(3)
    answers: list[Any] = []
    request = HeartbeatRequest(group_id=GROUP, member_id="m", generation_id=1)
    world[1].ask(heartbeat.handle, request, 4, answers.append)
    world.settle_all()
    assert not answers
    world.create_topic([1, 2, 0])
    world.settle_all()
    world[1].tick()
    assert [each.error_code for each in answers] == [ErrorCode.UNKNOWN_MEMBER_ID], "it coordinates the group"


def test_and_is_sent_away_when_that_does_not_come() -> None:
    world = World(3)
    answers: list[Any] = []
    request = HeartbeatRequest(group_id=GROUP, member_id="m", generation_id=1)
    world[1].ask(heartbeat.handle, request, 4, answers.append)
    world.advance(500)
    world[1].broker.coordination.tick(world.now)
    world[1].tick()
    assert [each.error_code for each in answers] == [ErrorCode.NOT_COORDINATOR]
