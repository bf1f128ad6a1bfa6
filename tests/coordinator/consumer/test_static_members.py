"""Members with a name of their own leave for a while, and their successors have what they had."""

from klamm.errors import ErrorCode
from tests.coordinator.consumer.bench import Bench, durable, has


def test_second_one_has_to_wait_until_the_first_has_left() -> None:
    bench = Bench({"a": 2})
    bench.join("one", "a", instance_id="i")
    joins = {"rebalance_timeout_ms": 1, "subscribed_topic_names": ["a"], "instance_id": "i"}
    assert bench.refused("two", 0, {}, **joins) == ErrorCode.UNRELEASED_INSTANCE_ID


def test_who_did_not_hear_that_it_joined_is_no_second_one() -> None:
    bench = Bench({"a": 2})
    bench.join("one", "a", instance_id="i")
    reply = bench.join("one", "a", instance_id="i")
    assert (reply.member_epoch, has(reply)) == (2, {"a": {0, 1}})


def test_successor_takes_over_without_a_rebalance() -> None:
    bench = Bench({"a": 4})
    owned, epochs = {"one": {}, "two": {}}, {"one": 0, "two": 0}  # type: dict[str, dict[str, set[int]]], dict[str, int]
    for member_id in owned:
        reply = bench.join(member_id, "a", instance_id="i-" + member_id)
        owned[member_id], epochs[member_id] = has(reply) or {}, reply.member_epoch
    bench.settle(owned, epochs)
    left = bench.beat("one", -2, instance_id="i-one")
    assert left.member_epoch == -2
    assert bench.state_name == "Reconciling"
    assert bench.refused("one", 3, owned["one"], instance_id="i-one") == ErrorCode.FENCED_MEMBER_EPOCH

    three = bench.join("three", "a", instance_id="i-one")
    assert (three.member_epoch, has(three)) == (3, owned["one"])
    assert bench.beat("two", 3, owned["two"]).member_epoch == 3
    assert bench.state_name == "Stable"
    assert bench.refused("one", 3, owned["one"], instance_id="i-one") == ErrorCode.FENCED_INSTANCE_ID
    assert durable(bench.reloaded()) == durable(bench.group)


def test_who_does_not_come_back_is_gone_after_its_session() -> None:
    bench = Bench({"a": 4})
    bench.join("one", "a", instance_id="i")
    bench.beat("one", -2, instance_id="i")
    bench.pass_ms(45_000)
    assert bench.group.is_empty


def test_same_member_comes_back_under_its_own_id() -> None:
    bench = Bench({"a": 4})
    bench.join("one", "a", instance_id="i")
    bench.beat("one", -2, instance_id="i")
    again = bench.join("one", "a", instance_id="i")
    assert (again.member_epoch, has(again)) == (2, {"a": {0, 1, 2, 3}})
    assert durable(bench.reloaded()) == durable(bench.group)


def test_session_of_who_came_back_runs_as_well() -> None:
    bench = Bench({"a": 4})
    bench.join("one", "a", instance_id="i")
    bench.beat("one", -2, instance_id="i")
    bench.pass_ms(40_000)
    bench.join("one", "a", instance_id="i")
    bench.pass_ms(44_999)
    assert not bench.group.is_empty
    bench.pass_ms(1)
    assert bench.group.is_empty


def test_who_is_away_has_nothing_to_give_up() -> None:
    """It was told to revoke, and left instead: it has its session to come back, and not only its rebalance timeout."""
    bench = Bench({"a": 2})
    bench.join("one", "a", instance_id="i", rebalance_timeout_ms=10_000)
    bench.join("two", "a")
    kept = has(bench.beat("one", 2, {"a": [0, 1]}, instance_id="i"))
    bench.beat("one", -2, instance_id="i")
    assert len((has(bench.beat("two", 3, {})) or {})["a"]) == 1
    bench.pass_ms(10_000)
    back = bench.join("three", "a", instance_id="i")
    assert (back.member_epoch, has(back)) == (3, kept)


def test_unknown_instance() -> None:
    assert Bench({"a": 4}).refused("one", 3, {}, instance_id="i") == ErrorCode.UNKNOWN_MEMBER_ID
