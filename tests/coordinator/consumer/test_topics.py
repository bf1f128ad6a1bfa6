"""What a group reads: topics by name and by pattern, that come, grow, go, and are looked at again."""

from klamm.coordinator.settings import GroupSettings
from klamm.errors import ErrorCode
from tests.coordinator.consumer.bench import Bench, has


def test_topic_that_comes_later() -> None:
    bench = Bench({})
    assert has(bench.join("one", "a")) == {}
    bench.change_topics({"a": 2})
    reply = bench.beat("one", 2, {})
    assert (reply.member_epoch, has(reply)) == (3, {"a": {0, 1}})


def test_topic_that_grows() -> None:
    bench = Bench({"a": 2})
    bench.join("one", "a")
    bench.change_topics({"a": 3})
    assert has(bench.beat("one", 2, {"a": [0, 1]})) == {"a": {0, 1, 2}}


def test_other_topics_are_no_reason() -> None:
    bench = Bench({"a": 2})
    bench.join("one", "a")
    before = len(bench.log)
    bench.change_topics({"a": 2, "b": 2})
    assert bench.beat("one", 2, {"a": [0, 1]}).member_epoch == 2
    assert len(bench.log) == before


def test_racks_are_a_reason() -> None:
    bench = Bench({"a": 2})
    bench.join("one", "a")
    bench.change_topics({"a": 2}, racks=["x", "y"])
    assert bench.beat("one", 2, {"a": [0, 1]}).member_epoch == 3


def test_deleted_topic_is_given_up() -> None:
    bench = Bench({"a": 2, "b": 1})
    bench.join("one", "a", "b")
    bench.change_topics({"a": 2})
    told = bench.beat("one", 2, {"a": [0, 1], "b": [0]})
    assert (told.member_epoch, has(told)) == (2, {"a": {0, 1}})
    assert bench.beat("one", 2, {"a": [0, 1]}).member_epoch == 3


def test_topics_are_looked_at_again_if_the_append_failed() -> None:
    bench = Bench({"a": 2})
    bench.join("one", "a")
    bench.change_topics({"a": 3})
    bench.append_fails = True
    assert bench.refused("one", 2, {"a": [0, 1]}) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    bench.append_fails = False
    assert has(bench.beat("one", 2, {"a": [0, 1]})) == {"a": {0, 1, 2}}


def test_unsubscribed_topic_is_given_up_even_if_there_is_no_new_target_yet() -> None:
    bench = Bench({"a": 2, "b": 2}, GroupSettings(assignment_interval_ms=10_000))
    bench.join("one", "a", "b")
    told = bench.beat("one", 2, {"a": [0, 1], "b": [0, 1]}, subscribed_topic_names=["a"])
    assert (told.member_epoch, has(told)) == (2, {"a": {0, 1}})
    two = bench.join("two", "b")
    assert (two.member_epoch, has(two)) == (2, {})
    bench.pass_ms(10_000)
    reply = bench.beat("two", 2, {})
    assert (reply.member_epoch, has(reply)) == (4, None), "one has not given it up"
    assert bench.beat("one", 2, {"a": [0, 1]}).member_epoch == 4
    assert has(bench.beat("two", 4, {})) == {"b": {0, 1}}


def test_targets_are_an_interval_apart() -> None:
    bench = Bench({"a": 4}, GroupSettings(assignment_interval_ms=10_000))
    bench.join("one", "a")
    bench.pass_ms(9_999)
    two = bench.join("two", "a")
    assert (two.member_epoch, has(two)) == (2, {})
    assert bench.beat("one", 2, {"a": [0, 1, 2, 3]}).assignment is None
    bench.pass_ms(1)
    told = bench.beat("one", 2, {"a": [0, 1, 2, 3]})
    assert len((has(told) or {})["a"]) == 2


def test_pattern_is_resolved_at_once_and_written_down() -> None:
    bench = Bench({"a": 1, "b": 1, "c": 1})
    reply = bench.join("one", subscribed_topic_names=None, subscribed_topic_regex="[ab]")
    assert has(reply) == {"a": {0}, "b": {0}}
    assert bench.group.topics_read() == {"a", "b"}
    assert bench.group.state.patterns["[ab]"].topics == {"a", "b"}


def test_new_topics_are_found_after_a_while() -> None:
    bench = Bench({"a": 1})
    bench.join("one", subscribed_topic_names=None, subscribed_topic_regex="[ab]")
    bench.change_topics({"a": 1, "b": 1})
    assert bench.beat("one", 2, {"a": [0]}).assignment is None
    bench.pass_ms(10_001)
    reply = bench.beat("one", 2, {"a": [0]})
    assert (reply.member_epoch, has(reply)) == (3, {"a": {0}, "b": {0}})


def test_pattern_goes_with_the_last_who_has_it() -> None:
    bench = Bench({"a": 2, "b": 2})
    bench.join("one", subscribed_topic_names=None, subscribed_topic_regex="a")
    bench.join("two", subscribed_topic_names=None, subscribed_topic_regex="a")
    bench.beat("one", -1)
    assert list(bench.group.state.patterns) == ["a"]
    bench.beat("two", 3, {}, subscribed_topic_regex="b")
    assert list(bench.group.state.patterns) == ["b"]
    bench.beat("two", -1)
    assert not bench.group.state.patterns


def test_names_and_patterns_add_up_and_an_empty_pattern_is_none() -> None:
    bench = Bench({"a": 1, "b": 1})
    assert has(bench.join("one", "a", subscribed_topic_regex="b")) == {"a": {0}, "b": {0}}
    assert has(bench.beat("one", 2, {"a": [0], "b": [0]}, subscribed_topic_regex="")) == {"a": {0}}
