"""A group changes its kind while its members stay, either way."""

from dataclasses import replace

import pytest

from klamm.coordinator.groups.consumer import ConsumerGroup
from klamm.coordinator.groups.conversion import ClassicSnapshot, ClassicSnapshotMember
from klamm.coordinator.groups.member_timers import SESSION
from klamm.coordinator.groups.subscription import Subscription, assignment_bytes, read_assignment, subscription_bytes
from klamm.coordinator.records import (
    ConsumerGroupMetadataKey,
    GroupMetadataKey,
    GroupMetadataValue,
    GroupRecord,
)
from klamm.coordinator.settings import DOWNGRADE, GroupSettings
from klamm.coordinator.wishes import HeartbeatReply, HeartbeatWish, Joined, Verdict
from klamm.errors import ErrorCode, KafkaError
from tests.coordinator.consumer.bench import GROUP, Bench, by_name
from tests.coordinator.consumer.test_classic_members import Classic, mixed

WISH = HeartbeatWish(
    GROUP, "new", 0, rebalance_timeout_ms=60_000, subscribed_topic_names=["a"], owned={}, client_id="c"
)


def classic_member(member_id: str, *partitions: int) -> ClassicSnapshotMember:
    metadata = subscription_bytes(Subscription(frozenset("a"), version=1))
    assignment = assignment_bytes({"a": partitions}, version=1) if partitions else b""
    protocols = (("sticky", metadata), ("range", metadata))
    return ClassicSnapshotMember(member_id, None, "c", "/h", 50_000, 20_000, protocols, assignment)


def classic_group(*members: ClassicSnapshotMember) -> ClassicSnapshot:
    return ClassicSnapshot(GROUP, 7, "consumer", "range", members)


def upgraded(bench: Bench, snapshot: ClassicSnapshot) -> Verdict:
    """What the container does: the tombstone ends the classic group, and what follows is another one."""
    verdict = ConsumerGroup.upgrade(snapshot, bench.surroundings, WISH, "ticket", bench.now)
    if verdict.records:
        assert verdict.records[0] == GroupRecord(GroupMetadataKey(group=GROUP), None)
        bench.group = ConsumerGroup(GROUP, bench.surroundings)
        bench.write(verdict.records[1:])
    return verdict


def test_classic_members_keep_what_they_have() -> None:
    bench = Bench({"a": 4})
    [answered] = upgraded(bench, classic_group(classic_member("x", 0, 1), classic_member("y", 2, 3))).response
    assert isinstance(answered.reply, HeartbeatReply)
    assert (answered.reply.member_epoch, answered.reply.assignment) == (8, {})
    described = {member.member_id: member for member in bench.group.described().members}
    assert by_name(described["x"].assignment) == {"a": {0, 1}}
    assert (described["x"].member_epoch, described["x"].is_classic) == (7, True)
    assert (described["new"].member_epoch, described["new"].is_classic) == (8, False)

    x = Classic(bench, "x")
    x.generation = 7
    assert x.beat() == ErrorCode.REBALANCE_IN_PROGRESS
    x.protocol = "sticky"
    x.join("a", owned={"a": {0, 1}})
    kept = x.sync()
    assert kept["a"] <= {0, 1}


def test_upgrade_is_assigned_at_once() -> None:
    """However soon after the last rebalance: targets are an interval apart, and the classic one was not ours."""
    bench = Bench({"a": 4}, GroupSettings(assignment_interval_ms=10_000))
    [answered] = upgraded(bench, classic_group(classic_member("x", 0))).response
    assert isinstance(answered.reply, HeartbeatReply)
    assert answered.reply.member_epoch == 8
    assert len(by_name(answered.reply.assignment or {})["a"]) == 2


def test_timers_of_classic_members_run_from_the_upgrade() -> None:
    bench = Bench({"a": 4})
    bench.pass_ms(100_000)
    upgraded(bench, classic_group(classic_member("x", 0, 1)))
    bench.pass_ms(19_999)
    assert [(timer.kind, timer.member_id) for timer in bench.pass_ms(1)] == [(SESSION, "x")]


def test_a_successor_does_not_inherit_that_the_group_was_between_two_assignments() -> None:
    """Nothing changes when a static member is succeeded; yet nobody was given anything before (sim 1000346)."""
    bench = Bench({"a": 4})
    waiting = replace(classic_member("x"), instance_id="seat")
    wish = replace(WISH, instance_id="seat")
    verdict = ConsumerGroup.upgrade(classic_group(waiting), bench.surroundings, wish, "ticket", bench.now)
    [answered] = verdict.response
    assert isinstance(answered.reply, HeartbeatReply)
    assert by_name(answered.reply.assignment or {}) == {"a": {0, 1, 2, 3}}


def test_member_without_assignment_is_upgraded_with_nothing() -> None:
    bench = Bench({"a": 4})
    upgraded(bench, classic_group(classic_member("x")))
    assert bench.group.state.members["x"].assigned == {}


def test_empty_classic_group_just_ends() -> None:
    bench = Bench({"a": 4}, GroupSettings(migrations=()))
    [answered] = upgraded(bench, ClassicSnapshot(GROUP, 3, None, None, ())).response
    assert isinstance(answered.reply, HeartbeatReply)
    assert by_name(answered.reply.assignment or {}) == {"a": {0, 1, 2, 3}}


@pytest.mark.parametrize(
    ("snapshot", "settings"),
    [
        (classic_group(classic_member("x")), GroupSettings(migrations=(DOWNGRADE,))),
        (replace(classic_group(classic_member("x")), protocol_type="connect"), GroupSettings()),
        (classic_group(classic_member("x"), classic_member("y")), GroupSettings(consumer_max_size=1)),
        (classic_group(replace(classic_member("x"), assignment=b"\0")), GroupSettings()),
        (classic_group(classic_member("x", 0, 1), classic_member("y", 1, 2)), GroupSettings()),
        (classic_group(replace(classic_member("x"), assignment=assignment_bytes({}, b"secret", 1))), GroupSettings()),
    ],
)
def test_what_cannot_be_upgraded_stays_as_it_is(snapshot: ClassicSnapshot, settings: GroupSettings) -> None:
    verdict = upgraded(Bench({"a": 4}, settings), snapshot)
    [answered] = verdict.response
    assert isinstance(answered.reply, KafkaError)
    assert answered.reply.code == ErrorCode.GROUP_ID_NOT_FOUND
    assert not verdict.records


def test_last_member_of_the_newer_protocol_leaves_a_classic_group() -> None:
    bench, old = mixed()
    wish = HeartbeatWish(GROUP, "new", -1)
    verdict = bench.group.heartbeat(wish, "ticket", bench.now)
    key, value = verdict.records[-1]
    assert key == GroupMetadataKey(group=GROUP)
    assert isinstance(value, GroupMetadataValue)
    assert (value.protocol_type, value.generation, value.protocol, value.leader) == ("consumer", 3, "range", "old")
    [member] = value.members
    assert (member.member_id, member.session_timeout, member.rebalance_timeout) == ("old", 30_000, 60_000)
    assert read_assignment(member.assignment).partitions == old.sync()
    assert GroupRecord(ConsumerGroupMetadataKey(group=GROUP), None) in verdict.records
    bench.write(verdict.records[:-1])
    assert bench.group.is_empty
    assert vars(bench.group.state) == vars(ConsumerGroup(GROUP, bench.surroundings).state)


def test_what_a_member_has_not_given_up_yet_stays_its_own_in_the_classic_group() -> None:
    """The next member of the newer protocol would be given it while its owner still reads (sim 1050198)."""
    bench = Bench({"a": 4})
    upgraded(bench, classic_group(classic_member("x", 0, 1, 2, 3)))
    x = Classic(bench, "x")
    x.generation = 7
    assert x.beat() == ErrorCode.REBALANCE_IN_PROGRESS, "it is to give up two of them"
    verdict = bench.group.heartbeat(HeartbeatWish(GROUP, WISH.member_id, -1), "ticket", bench.now)
    value = verdict.records[-1].value
    assert isinstance(value, GroupMetadataValue)
    [member] = value.members
    assert read_assignment(member.assignment).partitions == {"a": {0, 1, 2, 3}}


def test_session_that_ends_downgrades_as_well() -> None:
    bench, old = mixed()
    bench.pass_ms(20_000)
    old.beat()
    bench.passed_ms += 25_000
    timer = bench.surroundings.timers.take_due(bench.now)
    assert timer is not None
    verdict = bench.group.rang(timer, bench.now)
    assert timer.member_id == "new"
    assert isinstance(verdict.records[-1].value, GroupMetadataValue)


def test_static_member_that_goes_back_downgrades_and_keeps_what_it_has() -> None:
    bench = Bench({"a": 4})
    bench.join("new", "a", instance_id="i")
    other = Classic(bench, "other")
    other.join("b")
    other.sync()
    verdict = bench.group.join(Classic(bench, "", "i").wish("a"), "ticket", bench.now)
    [answered] = verdict.response
    assert isinstance(answered.reply, Joined)
    value = verdict.records[-1].value
    assert isinstance(value, GroupMetadataValue)
    by_id = {member.member_id: member for member in value.members}
    assert answered.reply.generation == value.generation == 3
    back = by_id[answered.reply.member_id]
    assert back.group_instance_id == "i"
    assert read_assignment(back.assignment).partitions == {"a": {0, 1, 2, 3}}
    assert set(by_id) == {"other", back.member_id}


def test_a_group_without_a_generation_gives_its_first_member_an_epoch_to_go_on_with() -> None:
    """Epoch 0 would be the wish to join, and a heartbeat with it is refused."""
    bench = Bench({"a": 4}, GroupSettings(assignment_interval_ms=10_000))
    verdict = upgraded(bench, replace(classic_group(classic_member("old")), generation=0))
    [(_, reply)] = verdict.response
    assert isinstance(reply, HeartbeatReply) and reply.member_epoch > 0


def test_what_a_member_says_for_a_protocol_that_was_not_in_use_may_be_anything() -> None:
    """It is chosen when the group becomes classic, by a timer, and nobody could be told that it is malformed."""
    bench = Bench({"a": 4})
    bench.join("newer", "a")
    good = subscription_bytes(Subscription(frozenset("a"), version=1))
    Classic(bench, "one").join("a", protocols=[("range", good), ("weird", b"\xff\xff")])
    Classic(bench, "two").join("a", protocols=[("weird", good)])
    verdict = bench.group.heartbeat(HeartbeatWish(GROUP, "newer", -1), "ticket", bench.now)
    key, value = verdict.records[-1]
    assert key == GroupMetadataKey(group=GROUP) and isinstance(value, GroupMetadataValue)
    assert value.protocol == "weird" and len(value.members) == 2
