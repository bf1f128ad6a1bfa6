"""Traps 43 and 44: the newer protocol (KIP-848), where the coordinator assigns and hands over piece by piece."""

import time
from collections.abc import Callable
from typing import Any

import pytest

from klamm.errors import ErrorCode
from klamm.wire.messages.delete_groups import DeleteGroupsRequest
from klamm.wire.messages.describe_groups import DescribeGroupsRequest
from klamm.wire.messages.list_groups import ListGroupsRequest
from klamm.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from tests.harness.fixtures import StartNode
from tests.harness.groups import SETTINGS, commit, committed, wait_coordinator
from tests.harness.raw import Raw
from tests.harness.requests import create
from tests.harness.waiting import wait_until
from tests.traps.groups.consuming import JOIN, LEAVE, LEAVE_FOR_A_WHILE, Consumer, described, wait_known

NewConsumer = Callable[[str], Consumer]
HEARTBEAT_INTERVAL_MS = 500


@pytest.fixture
def consumer(raw: Raw, group: str, topic: str, made: bytes) -> NewConsumer:
    wait_known(raw, topic, made)
    return lambda name: Consumer(raw, group, name, topic, made)


def test_trap_44_a_member_joins_with_epoch_zero_and_is_told_all_at_once(consumer: NewConsumer) -> None:
    """The first epoch is two: one for the group that came into being, one for its member."""
    one = consumer("one")
    joined = one.join()
    assert (joined.error_code, joined.member_id, joined.member_epoch) == (0, "one", 2)
    assert joined.heartbeat_interval_ms == HEARTBEAT_INTERVAL_MS
    assert one.assigned == [0, 1, 2, 3]
    quiet = one.heartbeat(0, 1, 2, 3)
    assert (quiet.error_code, quiet.member_epoch, quiet.assignment) == (0, 2, None), "null: nothing has changed"
    again = one.join()
    assert (again.member_epoch, again.assignment is not None) == (2, True), "who joins again is told again"


def test_trap_44_by_default_there_is_a_second_between_two_assignments(start_node: StartNode) -> None:
    """The first member is told at once. Others get the epoch there is, and what is theirs when it was reckoned anew."""
    node = start_node({name: value for name, value in SETTINGS.items() if name.startswith("offsets.")})
    with Raw(node.port) as raw:
        topic_id = create(raw, "slowly", partitions=4)
        wait_coordinator(raw, "scouts-of-slowly")
        wait_known(raw, "slowly", topic_id)
        wait_coordinator(raw, "patient")
        one, two, three = (Consumer(raw, "patient", name, "slowly", topic_id) for name in ("one", "two", "three"))
        began = time.monotonic()
        joined = [each.join() for each in (one, two, three)]
        assert [(answer.member_epoch, answer.heartbeat_interval_ms) for answer in joined] == [(2, 5000)] * 3
        assert (one.assigned, two.assigned, three.assigned) == ([0, 1, 2, 3], [], [])
        waiting = described(raw, "patient")
        assert (waiting.group_state, waiting.group_epoch, waiting.assignment_epoch) == ("Assigning", 4, 2)
        wait_until(lambda: one.heartbeat(0, 1, 2, 3).assignment is not None, "the assignment is new")
        assert time.monotonic() - began > 0.9
        assert one.heartbeat(*one.assigned).member_epoch == two.heartbeat().member_epoch == 4
        three.heartbeat()
        assert sorted(one.assigned + two.assigned + three.assigned) == [0, 1, 2, 3]
        assert (described(raw, "patient").group_epoch, len(one.assigned)) == (4, 2)


def test_trap_44_version_0_gives_the_id_and_version_1_is_given_it(raw: Raw, consumer: NewConsumer) -> None:
    """KIP-1082: a client that draws its id itself can join twice without being two."""
    nameless = consumer("")
    refused = nameless.join()
    assert (refused.error_code, refused.error_message) == (ErrorCode.INVALID_REQUEST, "MemberId can't be empty.")
    given = nameless.join(version=0)
    assert given.error_code == 0 and len(given.member_id or "") == 22


@pytest.mark.parametrize(
    ("fields", "code", "message"),
    [
        ({"rebalance_timeout_ms": -1}, 42, "RebalanceTimeoutMs must be provided in first request."),
        ({"subscribed_topic_names": None}, 42, "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null"),
        ({"topic_partitions": None}, 42, "TopicPartitions must be empty when (re-)joining."),
        ({"instance_id": ""}, 42, "InstanceId can't be empty."),
        ({"rack_id": ""}, 42, "RackId can't be empty."),
        ({"server_assignor": "no-such"}, 112, "ServerAssignor no-such is not supported. Supported assignors: uniform"),
        ({"subscribed_topic_names": None, "subscribed_topic_regex": "[x"}, 128, "SubscribedTopicRegex `[x` is not a"),
    ],
)
def test_trap_44_what_a_join_must_say(consumer: NewConsumer, fields: dict[str, Any], code: int, message: str) -> None:
    refused = consumer("one").join(**fields)
    assert refused.error_code == code
    assert (refused.error_message or "").startswith(message)
    assert (refused.member_id, refused.member_epoch, refused.assignment) == (None, 0, None)


def test_trap_44_what_no_member_may_say(raw: Raw, consumer: NewConsumer) -> None:
    one = consumer("one")
    assert one.heartbeat(epoch=-3).error_code == ErrorCode.INVALID_REQUEST
    assert one.heartbeat(epoch=LEAVE_FOR_A_WHILE).error_code == ErrorCode.INVALID_REQUEST, "only static ones can"
    assert one.heartbeat(epoch=5).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert one.heartbeat(epoch=LEAVE).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    one.group = ""
    assert one.join().error_code == ErrorCode.INVALID_REQUEST


def test_trap_44_a_wrong_epoch_is_fenced(consumer: NewConsumer) -> None:
    """Too high or too low; but the last one is taken, as long as it claims no more than it has: an answer was lost."""
    one, two = consumer("one"), consumer("two")
    one.join()
    for wrong in (1, 3):
        fenced = one.heartbeat(epoch=wrong)
        assert (fenced.error_code, fenced.member_id) == (ErrorCode.FENCED_MEMBER_EPOCH, None)
    assert two.heartbeat(epoch=1).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert two.heartbeat(epoch=LEAVE).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    two.join()
    assert one.heartbeat(0, 1, 2, 3).error_code == 0
    assert one.heartbeat(*one.assigned).member_epoch == 3
    assert one.heartbeat(*one.assigned, epoch=2).member_epoch == 3
    assert one.heartbeat(0, 1, 2, 3, epoch=2).error_code == ErrorCode.FENCED_MEMBER_EPOCH


def test_trap_44_a_partition_is_handed_over_only_when_its_owner_has_let_it_go(raw: Raw, consumer: NewConsumer) -> None:
    one, two = consumer("one"), consumer("two")
    one.join()
    joined = two.join()
    assert (joined.member_epoch, two.assigned) == (3, []), "it is in the new epoch and has nothing yet"
    assert described(raw, one.group).group_state == "Reconciling"
    told = one.heartbeat(0, 1, 2, 3)
    assert (told.member_epoch, one.assigned) == (2, [0, 1]), "the old epoch, until it has let go"
    for _ in range(3):
        assert one.heartbeat(0, 1, 2, 3).member_epoch == 2
        assert two.heartbeat().assignment is None
    assert one.heartbeat().member_epoch == 2, "saying nothing is not letting go"
    freed = one.heartbeat(0, 1)
    assert (freed.member_epoch, freed.assignment) == (3, None)
    two.heartbeat()
    assert (two.epoch, two.assigned) == (3, [2, 3])
    assert two.heartbeat(2, 3).assignment is None
    assert described(raw, one.group).group_state == "Stable"


def test_trap_44_who_does_not_let_go_in_time_is_put_out(consumer: NewConsumer) -> None:
    one, two = consumer("one"), consumer("two")
    one.join(rebalance_timeout_ms=700)
    two.join()
    assert one.heartbeat(0, 1, 2, 3).error_code == 0
    began = time.monotonic()
    wait_until(lambda: one.heartbeat(0, 1, 2, 3).error_code == ErrorCode.UNKNOWN_MEMBER_ID, "it is put out")
    assert time.monotonic() - began > 0.5
    two.heartbeat()
    assert two.assigned == [0, 1, 2, 3]


def test_trap_44_who_leaves_leaves_everything(raw: Raw, consumer: NewConsumer) -> None:
    one, two = consumer("one"), consumer("two")
    one.join()
    two.join()
    gone = one.heartbeat(epoch=LEAVE)
    assert (gone.error_code, gone.member_id, gone.member_epoch, gone.assignment) == (0, "one", LEAVE, None)
    assert gone.heartbeat_interval_ms == 0
    two.heartbeat()
    assert two.assigned == [0, 1, 2, 3]
    assert two.heartbeat(epoch=LEAVE).error_code == 0
    empty = described(raw, one.group)
    assert (empty.error_code, empty.group_state, empty.members) == (0, "Empty", [])


def test_trap_44_who_is_silent_for_a_session_is_put_out(raw: Raw, consumer: NewConsumer) -> None:
    """The session's length is the broker's to say."""
    one = consumer("one")
    one.join()
    time.sleep(1.5)
    assert one.heartbeat().error_code == 0
    time.sleep(1.5)
    assert one.heartbeat().error_code == 0, "it counts from the last heartbeat"
    time.sleep(3)
    assert one.heartbeat().error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert described(raw, one.group).group_state == "Empty"


def test_trap_44_a_regular_expression_is_resolved_by_the_broker(raw: Raw, consumer: NewConsumer) -> None:
    """With Kafka some moments later: at first it has nothing. Here at once."""
    one = consumer("one")
    joined = one.join(subscribed_topic_names=None, subscribed_topic_regex=f"{one.topic[:-1]}.")
    assert (joined.error_code, joined.member_epoch, one.assigned) in ((0, 1, []), (0, 2, [0, 1, 2, 3]))
    wait_until(lambda: one.heartbeat().error_code == 0 and one.assigned == [0, 1, 2, 3], "the topics are found")
    assert one.epoch == 2
    (member,) = described(raw, one.group).members
    assert (member.subscribed_topic_names, member.subscribed_topic_regex) == ([], f"{one.topic[:-1]}.")


def test_trap_44_another_subscription_is_another_assignment(consumer: NewConsumer) -> None:
    one, two = consumer("one"), consumer("two")
    one.join()
    two.join()
    one.heartbeat(0, 1, 2, 3)
    one.heartbeat(0, 1)
    two.heartbeat()
    changed = one.heartbeat(subscribed_topic_names=["something-else"])
    assert (changed.member_epoch, one.assigned) == (3, [])
    assert one.heartbeat(topic_partitions=[]).member_epoch == 4
    two.heartbeat()
    assert (two.epoch, two.assigned) == (4, [0, 1, 2, 3])


def test_trap_43_the_newer_of_two_with_one_instance_is_refused(raw: Raw, consumer: NewConsumer) -> None:
    """Until the older has left for a while; then it takes over all that the older had, in the same epoch."""
    old, new, other = consumer("old"), consumer("new"), consumer("other")
    old.instance = new.instance = "static"
    old.join()
    refused = new.join()
    assert (refused.error_code, new.epoch) == (ErrorCode.UNRELEASED_INSTANCE_ID, JOIN)
    gone = old.heartbeat(epoch=LEAVE_FOR_A_WHILE)
    assert (gone.error_code, gone.member_epoch) == (0, LEAVE_FOR_A_WHILE)
    back = new.join()
    assert (back.error_code, back.member_epoch, new.assigned) == (0, 2, [0, 1, 2, 3])
    assert old.heartbeat(epoch=2).error_code == ErrorCode.FENCED_INSTANCE_ID
    assert old.heartbeat(epoch=LEAVE).error_code == ErrorCode.FENCED_INSTANCE_ID
    assert old.heartbeat(epoch=2, instance_id=None).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert new.heartbeat(instance_id="no-such").error_code == ErrorCode.UNKNOWN_MEMBER_ID
    other.instance = "another"
    assert other.heartbeat(epoch=LEAVE_FOR_A_WHILE).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    (member,) = described(raw, old.group).members
    assert (member.member_id, member.instance_id, member.member_epoch) == ("new", "static", 2)


def test_trap_40_commits_are_of_a_member_and_its_epoch(raw: Raw, consumer: NewConsumer) -> None:
    """Members of older versions do not know STALE_MEMBER_EPOCH."""
    one = consumer("one")
    one.join()
    where = (raw, one.group, one.topic)
    assert commit(*where, 5, generation=2, member_id="one") == ErrorCode.NONE
    assert commit(*where, 6, generation=3, member_id="one") == ErrorCode.STALE_MEMBER_EPOCH
    assert commit(*where, 6, generation=-1, member_id="one") == ErrorCode.STALE_MEMBER_EPOCH
    assert commit(*where, 6, generation=2, member_id="x") == ErrorCode.UNKNOWN_MEMBER_ID
    assert commit(*where, 6) == ErrorCode.UNKNOWN_MEMBER_ID
    assert commit(*where, 6, generation=2, member_id="one", version=8) == ErrorCode.UNSUPPORTED_VERSION
    assert committed(*where) == 5
    one.heartbeat(epoch=LEAVE)
    assert commit(*where, 7) == ErrorCode.NONE, "the group is empty"


def test_trap_41_a_fetch_that_names_its_member_is_of_its_epoch(raw: Raw, consumer: NewConsumer) -> None:
    one = consumer("one")
    one.join()
    assert commit(raw, one.group, one.topic, 5, generation=2, member_id="one") == 0

    def code(member_id: str | None, epoch: int) -> int:
        asked = OffsetFetchRequestGroup(one.group, member_id, epoch, topics=None)
        (answer,) = raw.call("OffsetFetch", 9, OffsetFetchRequest(groups=[asked])).groups
        assert bool(answer.topics) == (answer.error_code == 0)
        return int(answer.error_code)

    assert code("one", 2) == code(None, -1) == ErrorCode.NONE
    assert code("one", 1) == code("one", 3) == ErrorCode.STALE_MEMBER_EPOCH
    assert code("x", 2) == code("", -1) == ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("version", [0, 1])
def test_trap_45_a_consumer_group_is_described_in_its_own_way(raw: Raw, consumer: NewConsumer, version: int) -> None:
    one = consumer("one")
    one.join(rack_id="R1")
    group = described(raw, one.group, version)
    assert (group.error_code, group.group_state, group.assignor_name) == (0, "Stable", "uniform")
    assert (group.group_epoch, group.assignment_epoch) == (2, 2)
    (member,) = group.members
    assert (member.member_id, member.rack_id, member.instance_id, member.member_epoch) == ("one", "R1", None, 2)
    assert (member.client_id, member.client_host) == ("raw", "/127.0.0.1")
    assert (member.subscribed_topic_names, member.subscribed_topic_regex) == ([one.topic], "")
    assert member.member_type == (1 if version else -1)
    for assignment in (member.assignment, member.target_assignment):
        (found,) = assignment.topic_partitions
        assert (found.topic_id, found.topic_name, list(found.partitions)) == (one.topic_id, one.topic, [0, 1, 2, 3])


def test_trap_45_which_kind_a_group_is(raw: Raw, consumer: NewConsumer) -> None:
    """DescribeGroups does not find it; lists say both; one that is not empty stays."""
    one = consumer("one")
    absent = described(raw, one.group)
    assert (absent.error_code, absent.error_message) == (
        ErrorCode.GROUP_ID_NOT_FOUND,
        f"Group {one.group} not found.",
    )
    assert described(raw, "").error_code == ErrorCode.INVALID_GROUP_ID
    one.join()
    (classic,) = raw.call("DescribeGroups", 6, DescribeGroupsRequest([one.group])).groups
    assert (classic.error_code, classic.group_state) == (ErrorCode.GROUP_ID_NOT_FOUND, "Dead")
    assert classic.error_message == f"Group {one.group} is not a classic group."
    (older,) = raw.call("DescribeGroups", 5, DescribeGroupsRequest([one.group])).groups
    assert (older.error_code, older.group_state) == (0, "Dead")
    for states, types in (([], []), (["stable"], ["Consumer"]), ([], ["consumer", "classic"])):
        groups = raw.call("ListGroups", 5, ListGroupsRequest(states, types)).groups
        (found,) = (each for each in groups if each.group_id == one.group)
        assert (found.protocol_type, found.group_state, found.group_type) == ("consumer", "Stable", "consumer")
    classics = raw.call("ListGroups", 5, ListGroupsRequest([], ["classic"])).groups
    assert one.group not in [each.group_id for each in classics]
    (result,) = raw.call("DeleteGroups", 2, DeleteGroupsRequest([one.group])).results
    assert result.error_code == ErrorCode.NON_EMPTY_GROUP
    one.heartbeat(epoch=LEAVE)
    (result,) = raw.call("DeleteGroups", 2, DeleteGroupsRequest([one.group])).results
    assert result.error_code == ErrorCode.NONE
