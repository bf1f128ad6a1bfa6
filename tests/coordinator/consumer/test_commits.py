"""Who may commit and read offsets: members at their epoch, and, of what they have had since, at an earlier one."""

import pytest

from klamm.coordinator.wishes import CommitWish, OffsetsWish, OffsetToCommit
from klamm.errors import ErrorCode, KafkaError
from klamm.ids import ZERO_UUID
from tests.coordinator.consumer.bench import GROUP, Bench, topic_id


def committed(bench: Bench, member_id: str, epoch: int, *partitions: tuple[str, int], **more: bool) -> ErrorCode:
    offsets = [OffsetToCommit(topic, partition, 5) for topic, partition in partitions]
    wish = CommitWish(GROUP, epoch, member_id, None, offsets, **{"knows_epochs": True, **more})
    try:
        bench.group.check_commit(wish, bench.now)
    except KafkaError as error:
        return error.code
    return ErrorCode.NONE


def read(bench: Bench, member_id: str | None, epoch: int) -> ErrorCode:
    try:
        bench.group.check_reading(OffsetsWish(GROUP, member_id, epoch))
    except KafkaError as error:
        return error.code
    return ErrorCode.NONE


def test_member_commits_at_its_epoch() -> None:
    bench = Bench({"a": 2})
    bench.join("one", "a")
    assert committed(bench, "one", 2, ("a", 0)) == ErrorCode.NONE
    assert committed(bench, "one", 2, ("z", 9)) == ErrorCode.NONE
    assert committed(bench, "one", 3, ("a", 0)) == ErrorCode.STALE_MEMBER_EPOCH
    assert committed(bench, "two", 2, ("a", 0)) == ErrorCode.UNKNOWN_MEMBER_ID
    assert committed(bench, "one", 2, ("a", 0), knows_epochs=False) == ErrorCode.UNSUPPORTED_VERSION


def test_stranger_commits_only_while_the_group_is_empty() -> None:
    bench = Bench({"a": 2})
    assert committed(bench, "", -1, ("a", 0)) == ErrorCode.NONE
    bench.join("one", "a")
    assert committed(bench, "", -1, ("a", 0)) == ErrorCode.UNKNOWN_MEMBER_ID


def test_commit_that_comes_late_is_good_for_what_the_member_had_then() -> None:
    """KIP-1251: an epoch that is over is no reason to lose an offset of a partition that stayed with the member."""
    bench = Bench({"a": 2, "b": 2})
    bench.join("one", "a")
    bench.beat("one", 2, {"a": [0, 1]}, subscribed_topic_names=["a", "b"])
    assert committed(bench, "one", 2, ("a", 0), ("a", 1)) == ErrorCode.NONE
    assert committed(bench, "one", 2, ("b", 0)) == ErrorCode.STALE_MEMBER_EPOCH
    assert committed(bench, "one", 2, ("a", 0), ("b", 0)) == ErrorCode.STALE_MEMBER_EPOCH
    assert committed(bench, "one", 2, ("z", 0)) == ErrorCode.STALE_MEMBER_EPOCH
    assert committed(bench, "one", 3, ("b", 0)) == ErrorCode.NONE


def test_what_is_being_given_up_can_still_be_committed() -> None:
    bench = Bench({"a": 2})
    bench.join("one", "a")
    bench.join("two", "a")
    bench.beat("one", 2, {"a": [0, 1]})
    assert committed(bench, "one", 2, ("a", 0), ("a", 1)) == ErrorCode.NONE


def test_epochs_survive_a_failover() -> None:
    bench = Bench({"a": 2, "b": 2})
    bench.join("one", "a")
    bench.beat("one", 2, {"a": [0, 1]}, subscribed_topic_names=["a", "b"])
    bench.group = bench.reloaded()
    assert committed(bench, "one", 2, ("a", 0)) == ErrorCode.NONE
    assert committed(bench, "one", 2, ("b", 0)) == ErrorCode.STALE_MEMBER_EPOCH


@pytest.mark.parametrize("given", [ZERO_UUID, topic_id("a")])
def test_topic_is_known_by_name_or_by_id(given: bytes) -> None:
    bench = Bench({"a": 1, "b": 1})
    bench.join("one", "a")
    bench.beat("one", 2, {"a": [0]}, subscribed_topic_names=["a", "b"])
    wish = CommitWish(GROUP, 2, "one", None, [OffsetToCommit("a", 0, 5, topic_id=given)], knows_epochs=True)
    bench.group.check_commit(wish, bench.now)


def test_reading_takes_the_very_epoch() -> None:
    bench = Bench({"a": 2, "b": 1})
    bench.join("one", "a")
    bench.beat("one", 2, {"a": [0, 1]}, subscribed_topic_names=["a", "b"])
    assert read(bench, None, -1) == ErrorCode.NONE
    assert read(bench, "one", 3) == ErrorCode.NONE
    assert read(bench, "one", 2) == ErrorCode.STALE_MEMBER_EPOCH
    assert read(bench, "two", 2) == ErrorCode.UNKNOWN_MEMBER_ID
