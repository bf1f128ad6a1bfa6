"""The reckoning finds what it is there to find: stories that are fine, and the same with one thing wrong."""

from typing import NamedTuple

import pytest

from tests.groups.member import Told
from tests.groups.reckoning import Reckoned, reckoned


class Story(NamedTuple):
    name: str
    told: list[Told]


def assigned(at: float, *partitions: int) -> Told:
    return Told("assigned", at, partitions)


def revoked(at: float, *partitions: int) -> Told:
    return Told("revoked", at, partitions)


def handled(at: float, partition: int, first: int, last: int) -> Told:
    return Told("handled", at, (partition,), first, last)


def committed(at: float, partition: int, offset: int) -> Told:
    return Told("committed", at, offsets=((partition, offset),))


def fine() -> tuple[Story, Story]:
    """One hands partition 0 over at 5; the other handles again what was not committed, from 8 to 9."""
    one = [assigned(1, 0), handled(2, 0, 0, 7), committed(3, 0, 8), handled(4, 0, 8, 9), revoked(5, 0)]
    other = [assigned(6, 0), handled(7, 0, 8, 19), committed(8, 0, 20)]
    return Story("one", one), Story("other", other)


def test_a_fine_story_is_counted() -> None:
    assert reckoned(fine(), {0: 20}) == Reckoned(records=22, twice=2)


def test_two_owners_at_a_time() -> None:
    one, other = fine()
    one.told[-1] = revoked(6.5, 0)
    assert reckoned([one, other], {0: 20}).twice == 2, "it was late to say so, and handled nothing more"
    one.told.insert(-1, handled(6.2, 0, 10, 10))
    with pytest.raises(AssertionError, match="two at a time"):
        reckoned([one, other], {0: 20})


def test_two_owners_who_never_let_go() -> None:
    one, other = fine()
    del one.told[-1]
    one.told.append(handled(9, 0, 10, 10))
    with pytest.raises(AssertionError, match="two at a time"):
        reckoned([one, other], {0: 20})


def test_who_is_killed_or_falls_asleep_owns_nothing() -> None:
    for end in ("killed", "paused"):
        one, other = fine()
        one.told[-1] = Told(end, 5)
        assert reckoned([one, other], {0: 20}).twice == 2


def test_a_sleeper_may_go_on_for_a_moment_but_no_longer() -> None:
    one, other = fine()
    one.told[-1:] = [Told("paused", 5), handled(9, 0, 10, 11), committed(9, 0, 12), Told("lost", 10, (0,))]
    assert reckoned([one, other], {0: 20}).twice == 4
    one.told.append(assigned(11, 1))
    one.told.append(handled(12, 0, 12, 12))
    with pytest.raises(AssertionError, match="does not own"):
        reckoned([one, other], {0: 20})


def test_handled_after_it_was_revoked() -> None:
    one, other = fine()
    one.told.append(handled(5.5, 0, 10, 10))
    with pytest.raises(AssertionError, match="does not own"):
        reckoned([one, other], {0: 20})


def test_a_commit_that_was_lost() -> None:
    one, other = fine()
    other.told[1] = handled(7, 0, 7, 19)
    with pytest.raises(AssertionError, match="began partition 0 at 7, committed was 8"):
        reckoned([one, other], {0: 20})


def test_a_commit_that_moved_back() -> None:
    one, other = fine()
    other.told[2] = committed(8, 0, 7)
    with pytest.raises(AssertionError, match="moved 0 back"):
        reckoned([one, other], {0: 20})


def test_records_that_were_skipped_at_a_change_or_within() -> None:
    one, other = fine()
    other.told[1] = handled(7, 0, 11, 19)
    with pytest.raises(AssertionError, match="skipped 10 to 11"):
        reckoned([one, other], {0: 20})
    one, other = fine()
    one.told[3] = handled(4, 0, 9, 9)
    with pytest.raises(AssertionError, match="went from 8 to 9"):
        reckoned([one, other], {0: 20})


def test_records_that_nobody_handled() -> None:
    with pytest.raises(AssertionError, match="never handled"):
        reckoned(fine(), {0: 21})
