"""Offsets of a trigger, ranges of a batch, tasks of a range: each clever one beside one a beginner would write."""

from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

from klamm.ids import TopicPartition
from klamm.pipeline.kafka.ranges import Range
from klamm.pipeline.source.losses import Loss
from klamm.pipeline.source.planning import Standing, available, end_of_trigger, losses, ranges, shared, split
from klamm.pipeline.source.position import Position

sizes = st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 5000)), min_size=1, max_size=8)


def key(partition: int, topic: str = "t") -> TopicPartition:
    return TopicPartition(topic, partition)


def standing(earliest: list[int], latest: list[int], topic_id: str = "") -> Standing:
    return Standing(
        "c", {"t": topic_id}, {key(i): o for i, o in enumerate(earliest)}, {key(i): o for i, o in enumerate(latest)}
    )


def position(offsets: list[int], topic_id: str = "") -> Position:
    return Position("c", {"t": topic_id}, {key(i): offset for i, offset in enumerate(offsets)})


# maxOffsetsPerTrigger.


@given(sizes, st.integers(1, 6000))
def test_shares_are_proportional(parts: list[tuple[int, int]], most: int) -> None:
    begin = {key(i): start for i, (start, _) in enumerate(parts)}
    latest = {key(i): start + size for i, (start, size) in enumerate(parts)}
    ends = shared(most, begin, latest)
    total = sum(size for _, size in parts)
    for i, (start, size) in enumerate(parts):
        exact = Fraction(most * size, total) if total else Fraction(0)
        taken = ends[key(i)] - start
        assert 0 <= taken <= size
        # One offset of rounding; and whoever has something gets something.
        assert abs(taken - min(exact, Fraction(size))) <= 1
        assert taken > 0 or size == 0


@given(st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 200)), min_size=1, max_size=5), st.integers(1, 300))
@settings(deadline=None)
def test_triggers_come_to_an_end(parts: list[tuple[int, int]], most: int) -> None:
    now = standing([start for start, _ in parts], [start + size for start, size in parts])
    at, triggers = position([start for start, _ in parts]), 0
    while at.offsets != now.latest:
        at = now.position(end_of_trigger(at, now, most))
        triggers += 1
        assert triggers <= 200 * 5
    assert available(at, now) == 0


def test_a_trigger_without_a_limit_takes_all() -> None:
    assert end_of_trigger(position([1, 2]), standing([0, 0, 0], [5, 6, 7]), None) == {key(0): 5, key(1): 6, key(2): 7}


def test_a_new_partition_has_its_share_from_its_beginning() -> None:
    assert end_of_trigger(position([0]), standing([0, 40], [100, 140]), 20) == {key(0): 10, key(1): 50}


# minPartitions, maxRecordsPerPartition.


@given(sizes, st.none() | st.integers(1, 30), st.none() | st.integers(1, 4000))
def test_tasks_cover_every_offset_once(
    parts: list[tuple[int, int]], min_partitions: int | None, max_records: int | None
) -> None:
    pieces = [Range("t", i, start, start + size, may_begin_later=True) for i, (start, size) in enumerate(parts)]
    tasks = split(pieces, min_partitions, max_records)
    covered = [(task.partition, offset) for task in tasks for offset in range(task.start, task.end)]
    assert covered == [(piece.partition, offset) for piece in pieces for offset in range(piece.start, piece.end)]
    assert all(task.size > 0 for task in tasks)
    assert max_records is None or all(task.size <= max_records for task in tasks)
    firsts = {piece.partition: piece.start for piece in pieces}
    assert all(task.may_begin_later == (task.start == firsts[task.partition]) for task in tasks)


def test_large_ranges_are_cut_first() -> None:
    pieces = [Range("t", 0, 0, 5), Range("t", 1, 0, 100), Range("t", 2, 0, 0)]
    assert [(task.partition, task.start, task.end) for task in split(pieces, 4, None)] == [
        (0, 0, 5),
        (1, 0, 33),
        (1, 33, 66),
        (1, 66, 100),
    ]
    assert split(pieces, 2, None) == pieces[:2]


# What is lost.


def lost(start: Position, end: list[int], now: Standing) -> list[str]:
    return [str(loss) for loss in losses(start, position(end), now)]


def test_nothing_is_lost() -> None:
    now = standing([0, 3], [10, 10])
    assert losses(position([0, 3]), position([10, 10]), now) == []
    assert ranges(position([0, 3]), position([10, 9]), now) == [Range("t", 0, 0, 10), Range("t", 1, 3, 9)]


def test_retention_overtook_the_stream() -> None:
    now = standing([7], [10])
    assert lost(position([4]), [10], now) == ["t-0 offsets 4 to 6 (retention removed them before they were read)"]
    assert ranges(position([4]), position([10]), now) == [Range("t", 0, 7, 10)]
    # The batch was planned before, and all of it is gone.
    assert losses(position([4]), position([6]), now)[0].last == 5
    assert ranges(position([4]), position([6]), now) == []


def test_a_partition_is_gone() -> None:
    now = standing([0], [10])
    start, end = position([10, 5]), Position("c", {"t": ""}, {key(0): 10})
    assert [str(loss) for loss in losses(start, end, now)] == [
        "t-1 from offset 5 on (the topic or partition was deleted)"
    ]
    assert losses(start, position([10, 8]), now)[0] == Loss("t", 1, 5, 7, "the topic or partition was deleted")


def test_a_log_was_cut() -> None:
    assert "t-0 offsets 4 to 8 (the log is shorter" in lost(position([9]), [4], standing([0], [4]))[0]
    assert ranges(position([9]), position([4]), standing([0], [4])) == []


def test_a_topic_was_created_again() -> None:
    start, now = position([9], "old"), standing([0], [20], "new")
    end = now.position(end_of_trigger(start, now, 5))
    assert end.offsets == {key(0): 5}
    (loss,) = losses(start, end, now)
    assert (loss.first, loss.last) == (9, None) and "created again" in loss.why


def test_a_new_partition_without_its_beginning() -> None:
    start, end, now = position([0]), position([0, 9]), standing([0, 3], [0, 9])
    assert [(loss.partition, loss.first, loss.last) for loss in losses(start, end, now)] == [(1, 0, 2)]
    assert ranges(start, end, now) == [Range("t", 1, 3, 9)]
