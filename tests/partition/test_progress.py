"""What a leader knows of a follower, compared with a diary of everything that happened."""

from hypothesis import given
from hypothesis import strategies as st

from klamm.partition.progress import Progress

Events = st.lists(
    st.tuples(st.integers(0, 50), st.integers(0, 5), st.integers(0, 5)),
    min_size=1,
    max_size=30,
)
"""Milliseconds that pass, records the leader writes, records the follower still lacks when it fetches."""


@given(Events)
def test_caught_up_is_never_later_than_the_last_moment_at_which_it_held_all_the_leader_held(
    events: list[tuple[int, int, int]],
) -> None:
    follower = Progress(1)
    diary: list[tuple[float, int]] = [(0.0, 0)]
    now_ms, end, held = 0.0, 0, 0
    for passed, written, lacking in events:
        now_ms += passed
        diary.append((now_ms, end))
        if written:
            follower.leader_grows(end, now_ms)
            end += written
        diary.append((now_ms, end))
        held = max(held, end - lacking)
        follower.fetched(held, 0, 5, end, now_ms)
        # Who now holds `held` records had caught up with the leader as it was when it ended there.
        level_ms = max(at_ms for at_ms, leader_end in diary if leader_end <= held)
        assert follower.caught_up_ms <= level_ms


def test_a_fetch_at_the_leaders_end_has_caught_up() -> None:
    follower = Progress(1)
    assert not follower.is_caught_up(0, 100.0, 30.0)
    follower.fetched(10, 0, 5, 10, 100.0)
    assert follower.is_caught_up(10, 1_000.0, 30.0), "level with the leader, however long ago it said so"
    assert follower.is_caught_up(11, 130.0, 30.0) and not follower.is_caught_up(11, 131.0, 30.0)


def test_a_fetch_that_reaches_where_the_leader_was_at_the_fetch_before_had_caught_up_then() -> None:
    """Small writes at a high rate: each fetch is one record behind, and the follower keeps up all the same."""
    follower = Progress(1)
    for number in range(1, 100):
        follower.fetched(number, 0, 5, number + 1, number * 10.0)
    assert follower.caught_up_ms == 980.0
    assert follower.is_caught_up(1_000, 1_000.0, 30.0)


def test_a_follower_that_falls_back_further_and_further_is_late() -> None:
    follower = Progress(1)
    follower.fetched(0, 0, 5, 0, 0.0)
    for number in range(1, 100):
        follower.fetched(number, 0, 5, number * 10, number * 10.0)
    assert not follower.is_caught_up(990, 1_000.0, 30.0)


def test_the_follower_of_an_idle_leader_is_behind_only_from_the_next_write_on() -> None:
    follower = Progress(1)
    follower.fetched(7, 0, 5, 7, 0.0)
    follower.leader_grows(7, 1_000_000.0)
    assert follower.is_caught_up(8, 1_000_020.0, 30.0) and not follower.is_caught_up(8, 1_000_031.0, 30.0)
