"""'An entry is committed once the leader that created it has replicated it on a majority of the servers.'"""

from hypothesis import given
from hypothesis import strategies as st

from klamm.quorum.majority import committed_offset


def naive(ends: list[int]) -> int:
    """Try every offset, and count who has everything below it."""
    return max(offset for offset in range(21) if sum(end >= offset for end in ends) > len(ends) / 2)


@given(st.lists(st.integers(0, 20), min_size=1, max_size=9))
def test_more_than_half_hold_what_is_committed(ends: list[int]) -> None:
    assert committed_offset(ends) == naive(ends)


def test_a_quorum_of_one_agrees_with_itself() -> None:
    assert committed_offset([7]) == 7
