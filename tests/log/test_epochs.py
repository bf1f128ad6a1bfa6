"""Leader epochs: the answers followers truncate by."""

from hypothesis import given
from hypothesis import strategies as st

from klamm.log.epochs import EpochCache


def test_the_answers_of_offset_for_leader_epoch() -> None:
    """TRAPS 34. The log holds epochs 2 from 10, 4 from 20, 7 from 30, and ends at 40."""
    epochs = EpochCache([(2, 10), (4, 20), (7, 30)])
    assert epochs.end_offset_of(7, 40) == (7, 40)
    assert epochs.end_offset_of(4, 40) == (4, 30)
    assert epochs.end_offset_of(5, 40) == (4, 30)
    assert epochs.end_offset_of(3, 40) == (2, 20)
    assert epochs.end_offset_of(1, 40) == (1, 10), "older than all: its records are gone"
    assert epochs.end_offset_of(8, 40) == (-1, -1), "newer than all: never heard of"
    assert epochs.end_offset_of(-1, 40) == (-1, -1)
    assert EpochCache().end_offset_of(0, 0) == (-1, -1)


def test_an_epoch_in_which_nothing_was_written_leaves_no_trace() -> None:
    epochs = EpochCache()
    epochs.assign(1, 0)
    epochs.assign(2, 5)
    epochs.assign(3, 5)
    assert epochs.entries() == [(1, 0), (3, 5)]
    assert epochs.latest == 3


def test_assigning_again_changes_nothing() -> None:
    epochs = EpochCache()
    epochs.assign(1, 0)
    epochs.changed = False
    epochs.assign(1, 7)
    assert (epochs.entries(), epochs.changed) == ([(1, 0)], False)


def test_truncation_from_both_ends() -> None:
    epochs = EpochCache([(2, 10), (4, 20), (7, 30)])
    epochs.truncate_from_end(30)
    assert epochs.entries() == [(2, 10), (4, 20)]
    epochs.truncate_from_start(15)
    assert epochs.entries() == [(2, 15), (4, 20)]
    epochs.truncate_from_start(20)
    assert epochs.entries() == [(4, 20)]
    epochs.truncate_from_end(20)
    assert (epochs.entries(), epochs.latest) == ([], -1)


class NaiveEpochs:
    """One epoch for every offset."""

    def __init__(self) -> None:
        self.start = 0
        self.log: list[int] = []

    def end_offset_of(self, epoch: int) -> tuple[int, int]:
        if not self.log or epoch > self.log[-1] or epoch < 0:
            return -1, -1
        older = [number for number, of in enumerate(self.log) if of <= epoch]
        if not older:
            return epoch, self.start
        return self.log[older[-1]], self.start + older[-1] + 1


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("append"), st.integers(0, 3), st.integers(1, 4)),
            st.tuples(st.just("cut end"), st.integers(0, 30), st.just(0)),
            st.tuples(st.just("cut start"), st.integers(0, 30), st.just(0)),
        ),
        max_size=30,
    )
)
def test_the_cache_equals_an_epoch_for_every_offset(history: list[tuple[str, int, int]]) -> None:
    epochs, naive, latest = EpochCache(), NaiveEpochs(), 0
    for what, number, count in history:
        end = naive.start + len(naive.log)
        if what == "append":
            latest += number
            epochs.assign(latest, end)
            naive.log += [latest] * count
        elif what == "cut end" and naive.start <= number <= end:
            epochs.truncate_from_end(number)
            del naive.log[number - naive.start :]
        elif what == "cut start" and naive.start <= number < end:
            epochs.truncate_from_start(number)
            del naive.log[: number - naive.start]
            naive.start = number
        end = naive.start + len(naive.log)
        for epoch in range(-1, latest + 2):
            assert epochs.end_offset_of(epoch, end) == naive.end_offset_of(epoch)
        for offset in range(naive.start, end):
            assert epochs.epoch_at(offset) == naive.log[offset - naive.start]


def test_an_epoch_that_began_in_a_gap_began_with_it() -> None:
    """Compaction took what was written in between. Nobody may keep records of an older epoch there."""
    cache = EpochCache([(4, 0)])
    cache.begin_after(78, 7)
    cache.begin_after(85, 7)
    assert cache.entries() == [(4, 0), (7, 78)]
    assert cache.end_offset_of(4, 100) == (4, 78)
