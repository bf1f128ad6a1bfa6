"""The sparse indexes: Kafka's bytes, and searches that equal looking at every entry."""

from bisect import bisect_right

from hypothesis import given, settings
from hypothesis import strategies as st

from klamm.log.index import PENDING_ENTRIES, WINDOW_ENTRIES, OffsetIndex, TimeIndex
from klamm.sim.disk import Disk


def test_entries_are_kafkas_bytes() -> None:
    disk = Disk()
    index, times = OffsetIndex(disk, "index", 1000), TimeIndex(disk, "times", 1000)
    index.append(1007, 4096)
    times.maybe_append(1_700_000_000_000, 1007)
    index.write_pending()
    times.write_pending()
    assert disk.read_whole("index").hex() == "0000000700001000"
    assert disk.read_whole("times").hex() == "0000018bcfe5680000000007"


def test_few_entries_wait_in_memory_and_are_found_there() -> None:
    disk = Disk()
    index = OffsetIndex(disk, "index", 0)
    for number in range(PENDING_ENTRIES - 1):
        index.append(number, number * 100)
    assert not disk.exists("index")
    found = index.at_or_before(5)
    assert found is not None and (found.offset, found.position) == (5, 500)
    index.append(PENDING_ENTRIES - 1, 9999)
    assert len(disk.read_whole("index")) == PENDING_ENTRIES * 8
    assert not index.has_pending


def test_a_time_that_is_not_younger_says_nothing() -> None:
    times = TimeIndex(Disk(), "times", 0)
    assert [times.maybe_append(time, offset) for offset, time in enumerate((5, 5, 4, 6, -1))] == [
        True,
        False,
        False,
        True,
        False,
    ]
    assert times.last() == (6, 3)


@given(
    gaps=st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), max_size=30),
    repeated=st.sampled_from([1, 3, 50]),
    cut=st.integers(0, 3000),
    reopened=st.booleans(),
)
@settings(deadline=None, max_examples=60)
def test_searches_equal_looking_at_every_entry(
    gaps: list[tuple[int, int]], repeated: int, cut: int, reopened: bool
) -> None:
    """Also in an index of more entries than are searched at once, and after its end was cut."""
    disk, base = Disk(), 77
    index, times = OffsetIndex(disk, "index", base), TimeIndex(disk, "times", base)
    naive: list[tuple[int, int]] = []
    offset, other = base, 0
    for offset_gap, other_gap in gaps * repeated:
        offset, other = offset + offset_gap, other + other_gap
        index.append(offset, other)
        times.maybe_append(other, offset)
        naive.append((offset, other))
    if reopened:
        index.write_pending()
        times.write_pending()
        index, times = OffsetIndex(disk, "index", base), TimeIndex(disk, "times", base)
    if cut % 2:
        index.truncate(base + cut)
        times.truncate(base + cut)
        naive = [entry for entry in naive if entry[0] < base + cut]
    assert index.count == times.count == len(naive)
    assert index.last() == (naive[-1] if naive else None)
    for target in {
        base - 1,
        base,
        base + cut,
        *(entry[0] for entry in naive[:50]),
        *(entry[1] for entry in naive[-50:]),
    }:
        number = bisect_right(naive, target, key=lambda entry: entry[0])
        assert index.at_or_before(target) == (naive[number - 1] if number else None)
        number = bisect_right(naive, target, key=lambda entry: entry[1])
        assert index.at_or_before_position(target) == (naive[number - 1] if number else None)
        assert times.at_or_before(target) == (naive[number - 1][::-1] if number else None)
    index.append(offset + 1, other + 1)
    assert index.last() == (offset + 1, other + 1)


@given(
    steps=st.lists(
        st.one_of(
            st.tuples(st.just("append"), st.integers(1, 2 * WINDOW_ENTRIES)),
            st.tuples(st.just("write"), st.just(0)),
            st.tuples(st.just("truncate"), st.integers(0, 4000)),
            st.tuples(st.just("reset"), st.just(0)),
            st.tuples(st.just("search"), st.integers(0, 12_000)),
            st.tuples(st.just("read on"), st.integers(1, 900)),
        ),
        max_size=40,
    )
)
@settings(deadline=None, max_examples=150)
def test_the_kept_window_never_answers_for_what_has_changed(steps: list[tuple[str, int]]) -> None:
    """Searches in any order between appends, writes and cuts: the same as looking at every entry."""
    index = OffsetIndex(Disk(), "index", 0)
    naive: list[tuple[int, int]] = []
    target = 0
    for kind, number in steps:
        if kind == "append":
            for _ in range(number):
                offset = naive[-1][0] + 2 if naive else 1
                naive.append((offset, 3 * offset))
                index.append(*naive[-1])
        elif kind == "write":
            index.write_pending()
        elif kind == "truncate":
            index.truncate(number)
            naive = [entry for entry in naive if entry[0] < number]
        elif kind == "reset":
            index.reset()
            naive = []
        else:
            target = target + number if kind == "read on" else number
            found = bisect_right(naive, target, key=lambda entry: entry[1])
            assert index.at_or_before_position(target) == (naive[found - 1] if found else None)
            found = bisect_right(naive, target, key=lambda entry: entry[0])
            assert index.at_or_before(target) == (naive[found - 1] if found else None)
        assert index.count == len(naive)


def test_reading_on_costs_one_read_of_the_index_in_many() -> None:
    disk = Disk()
    index = OffsetIndex(disk, "index", 0)
    for number in range(20 * WINDOW_ENTRIES):
        index.append(number, 4096 * number)
    index.write_pending()
    calls: list[str] = []

    def count(call: str, path: str) -> None:
        calls.append(call)

    disk.failure = count
    for number in range(0, 20 * WINDOW_ENTRIES, 64):
        assert index.at_or_before_position(4096 * number) == (number, 4096 * number)
    assert 0 < len(calls) < 100, "eight questions a window, and a window costs at most three reads"
