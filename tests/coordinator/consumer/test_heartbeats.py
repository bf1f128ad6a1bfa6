"""Members come, are given partitions, hand them over and go: one heartbeat at a time."""

import pytest

from klamm.coordinator.groups.member_timers import REVOCATION, SESSION
from klamm.coordinator.settings import GroupSettings
from klamm.errors import ErrorCode
from tests.coordinator.consumer.bench import Bench, by_name, durable, has, topic_id


def test_first_member_gets_everything_at_once() -> None:
    bench = Bench({"a": 3})
    reply = bench.join("one", "a")
    assert (reply.member_id, reply.member_epoch, reply.heartbeat_interval_ms) == ("one", 2, 5_000)
    assert has(reply) == {"a": {0, 1, 2}}
    assert bench.state_name == "Stable"


def test_unchanged_heartbeat_is_answered_without_assignment_and_writes_nothing() -> None:
    bench = Bench({"a": 3})
    bench.join("one", "a")
    before = len(bench.log)
    reply = bench.beat("one", 2, {"a": [0, 1, 2]})
    assert reply.assignment is None
    assert len(bench.log) == before


def test_full_request_is_told_everything() -> None:
    bench = Bench({"a": 3})
    bench.join("one", "a")
    reply = bench.beat("one", 2, {"a": [0]}, rebalance_timeout_ms=60_000, subscribed_topic_names=["a"])
    assert has(reply) == {"a": {0, 1, 2}}


def test_partition_is_handed_over_after_its_owner_no_longer_reports_it() -> None:
    bench = Bench({"a": 4})
    bench.join("one", "a")
    two = bench.join("two", "a")
    assert (two.member_epoch, has(two)) == (3, {})
    assert bench.state_name == "Reconciling"

    told = bench.beat("one", 2, {"a": [0, 1, 2, 3]})
    kept = has(told)
    assert told.member_epoch == 2, "it stays at its epoch until it has given them up"
    assert kept is not None and len(kept["a"]) == 2
    assert bench.beat("two", 3, {}).assignment is None

    assert bench.beat("one", 2, {"a": [0, 1, 2, 3]}).member_epoch == 2
    assert bench.beat("one", 2).member_epoch == 2, "one that does not say still has them"
    assert bench.beat("two", 3, {}).assignment is None

    done = bench.beat("one", 2, kept)
    assert done.member_epoch == 3
    given = has(bench.beat("two", 3, {}))
    assert given == {"a": {0, 1, 2, 3} - kept["a"]}
    assert bench.state_name == "Stable"


def test_joining_again_gives_up_what_it_had_in_revocation() -> None:
    bench = Bench({"a": 2})
    bench.join("one", "a")
    bench.join("two", "a")
    bench.beat("one", 2, {"a": [0, 1]})
    again = bench.join("one", "a")
    assert again.member_epoch == 3
    assert len((has(again) or {})["a"]) == 1
    assert len((has(bench.beat("two", 3, {})) or {})["a"]) == 1


def test_last_to_leave_leaves_an_empty_group() -> None:
    bench = Bench({"a": 2})
    bench.join("one", "a")
    reply = bench.beat("one", -1)
    assert (reply.member_id, reply.member_epoch) == ("one", -1)
    assert (bench.state_name, bench.group.is_empty) == ("Empty", True)
    assert bench.refused("one", 2) == ErrorCode.UNKNOWN_MEMBER_ID
    assert len(bench.surroundings.timers) == 0


def test_leaving_frees_partitions_for_the_others() -> None:
    bench = Bench({"a": 2})
    bench.join("one", "a")
    bench.join("two", "a")
    bench.beat("one", -1)
    assert bench.state_name == "Assigning"
    reply = bench.beat("two", 3, {})
    assert (reply.member_epoch, has(reply)) == (4, {"a": {0, 1}})


def test_silent_member_is_gone_after_its_session() -> None:
    bench = Bench({"a": 2})
    bench.join("one", "a")
    bench.pass_ms(44_999)
    bench.beat("one", 2)
    bench.pass_ms(44_999)
    assert not bench.group.is_empty
    assert [timer.kind for timer in bench.pass_ms(1)] == [SESSION]
    assert bench.group.is_empty


def test_member_that_does_not_revoke_is_fenced() -> None:
    bench = Bench({"a": 2})
    bench.join("one", "a", rebalance_timeout_ms=10_000)
    bench.join("two", "a")
    bench.beat("one", 2, {"a": [0, 1]})
    for _ in range(9):
        bench.pass_ms(1_000)
        bench.beat("one", 2, {"a": [0, 1]})
    assert [timer.kind for timer in bench.pass_ms(1_000)] == [REVOCATION]
    assert bench.refused("one", 2, {"a": [0, 1]}) == ErrorCode.UNKNOWN_MEMBER_ID
    assert has(bench.beat("two", 3, {})) == {"a": {0, 1}}


def test_member_that_revoked_in_time_is_not_fenced() -> None:
    bench = Bench({"a": 2})
    bench.join("one", "a", rebalance_timeout_ms=10_000)
    bench.join("two", "a")
    kept = has(bench.beat("one", 2, {"a": [0, 1]}))
    assert kept is not None
    bench.beat("one", 2, kept)
    bench.pass_ms(10_000)
    assert bench.beat("one", 3, kept).member_epoch == 3


def test_timers_survive_what_is_not_committed() -> None:
    bench = Bench({"a": 2})
    bench.join("one", "a")
    bench.append_fails = True
    bench.pass_ms(45_000)
    assert not bench.group.is_empty
    bench.append_fails = False
    bench.pass_ms(500)
    assert bench.group.is_empty


def test_next_coordinator_gives_everybody_their_time() -> None:
    bench = Bench({"a": 2})
    bench.join("one", "a", rebalance_timeout_ms=10_000)
    bench.join("two", "a")
    bench.beat("one", 2, {"a": [0, 1]})
    group = bench.reloaded()
    assert durable(group) == durable(bench.group)
    bench.group, bench.surroundings = group, group.surroundings
    bench.pass_ms(40_000)
    group.begin(bench.now)
    assert [(timer.kind, timer.member_id) for timer in bench.pass_ms(45_000)] == [
        (REVOCATION, "one"),
        (SESSION, "two"),
    ]


class TestEpochs:
    def test_lost_reply_is_asked_for_again(self) -> None:
        bench = Bench({"a": 2, "b": 2})
        bench.join("one", "a")
        bench.beat("one", 2, {"a": [0, 1]}, subscribed_topic_names=["a", "b"])
        again = bench.beat("one", 2, {"a": [0, 1]}, rebalance_timeout_ms=60_000, subscribed_topic_names=["a", "b"])
        assert (again.member_epoch, has(again)) == (3, {"a": {0, 1}, "b": {0, 1}})

    def test_epoch_before_with_something_else_is_fenced(self) -> None:
        bench = Bench({"a": 2, "b": 2})
        bench.join("one", "a")
        bench.beat("one", 2, {"a": [0, 1]}, subscribed_topic_names=["b"])
        bench.beat("one", 2, {}, rebalance_timeout_ms=60_000, subscribed_topic_names=["b"])
        assert bench.refused("one", 2, {"a": [0]}) == ErrorCode.FENCED_MEMBER_EPOCH
        assert bench.refused("one", 2, None) == ErrorCode.FENCED_MEMBER_EPOCH

    def test_epoch_from_the_future_or_long_ago_is_fenced(self) -> None:
        bench = Bench({"a": 2, "b": 2, "c": 2})
        bench.join("one", "a")
        assert bench.refused("one", 3, {}) == ErrorCode.FENCED_MEMBER_EPOCH
        bench.beat("one", 2, {"a": [0, 1]}, subscribed_topic_names=["a", "b"])
        bench.beat("one", 3, {"a": [0, 1], "b": [0, 1]}, subscribed_topic_names=["a", "b", "c"])
        assert bench.refused("one", 2, {"a": [0, 1]}) == ErrorCode.FENCED_MEMBER_EPOCH


class TestRefusals:
    @pytest.mark.parametrize(
        ("member_id", "epoch", "owned", "more"),
        [
            ("", 1, None, {}),
            ("", 0, {}, {"rebalance_timeout_ms": 1, "subscribed_topic_names": ["a"]}),
            ("", -1, None, {"gives_its_id": False}),
            ("one", -3, None, {}),
            ("one", -2, None, {}),
            ("one", 1, None, {"instance_id": ""}),
            ("one", 1, None, {"rack_id": ""}),
            ("one", 0, {}, {"subscribed_topic_names": ["a"]}),
            ("one", 0, None, {"rebalance_timeout_ms": 1, "subscribed_topic_names": ["a"]}),
            ("one", 0, {"a": [0]}, {"rebalance_timeout_ms": 1, "subscribed_topic_names": ["a"]}),
            ("one", 0, {}, {"rebalance_timeout_ms": 1}),
        ],
    )
    def test_impossible(
        self, member_id: str, epoch: int, owned: dict[str, list[int]] | None, more: dict[str, object]
    ) -> None:
        assert Bench({"a": 1}).refused(member_id, epoch, owned, **more) == ErrorCode.INVALID_REQUEST

    def test_unknown_assignor(self) -> None:
        joins = {"rebalance_timeout_ms": 1, "subscribed_topic_names": ["a"], "server_assignor": "lottery"}
        assert Bench({"a": 1}).refused("one", 0, {}, **joins) == ErrorCode.UNSUPPORTED_ASSIGNOR

    def test_unknown_member(self) -> None:
        assert Bench({"a": 1}).refused("one", 1, {}) == ErrorCode.UNKNOWN_MEMBER_ID

    def test_member_that_reads_nothing_is_a_member(self) -> None:
        bench = Bench({"a": 1})
        reply = bench.join("one")
        assert (reply.member_epoch, reply.assignment, bench.state_name) == (1, {}, "Stable")
        assert durable(bench.reloaded()) == durable(bench.group)

    def test_malformed_pattern(self) -> None:
        joins = {"rebalance_timeout_ms": 1, "subscribed_topic_regex": "(a"}
        assert Bench({"a": 1}).refused("one", 0, {}, **joins) == ErrorCode.INVALID_REGULAR_EXPRESSION

    def test_full_group(self) -> None:
        bench = Bench({"a": 1}, GroupSettings(consumer_max_size=1))
        bench.join("one", "a")
        joins = {"rebalance_timeout_ms": 1, "subscribed_topic_names": ["a"]}
        assert bench.refused("two", 0, {}, **joins) == ErrorCode.GROUP_MAX_SIZE_REACHED
        assert bench.join("one", "a").member_epoch == 2

    def test_old_client_is_given_an_id(self) -> None:
        bench = Bench({"a": 1})
        reply = bench.join("", "a", gives_its_id=False)
        assert reply.member_id
        assert bench.beat(reply.member_id, reply.member_epoch).member_epoch == 2


def test_described_tells_what_is_and_what_is_to_be() -> None:
    bench = Bench({"a": 2})
    bench.join("one", "a", client_id="c", client_host="/h", rack_id="r")
    bench.join("two", "a", server_assignor="range")
    described = bench.group.described()
    assert (described.state, described.group_epoch, described.assignment_epoch) == ("Reconciling", 3, 3)
    assert described.assignor == "range"
    one, two = described.members
    assert (one.client_id, one.client_host, one.rack_id, one.subscribed_topic_names) == ("c", "/h", "r", ("a",))
    assert one.assignment == {topic_id("a"): {0, 1}}
    assert one.target_assignment[topic_id("a")] | two.target_assignment[topic_id("a")] == {0, 1}
    assert (two.assignment, two.member_epoch) == ({}, 3)


def test_what_is_being_given_up_is_described_as_had() -> None:
    bench = Bench({"a": 2})
    bench.join("one", "a")
    bench.join("two", "a")
    bench.beat("one", 2, {"a": [0, 1]})
    one, _ = bench.group.described().members
    assert by_name(one.assignment) == {"a": {0, 1}}
    assert len(one.target_assignment[topic_id("a")]) == 1


def test_tombstones_leave_nothing() -> None:
    bench = Bench({"a": 2})
    bench.join("one", "a", subscribed_topic_regex="a.*", instance_id="i")
    bench.write(bench.group.tombstones())
    assert durable(bench.group) == durable(Bench({}).group)
