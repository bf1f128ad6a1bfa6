"""The proofs' own judge: given a log in which something is wrong, it has to say so."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from proof.reckoning import Reckoning, continues, reckoned


def values(*numbers: int) -> list[bytes]:
    return [f"stream:{number}".encode() for number in numbers]


SENT = values(0, 1, 2, 3, 4)


def test_all_is_well() -> None:
    assert reckoned(SENT, SENT, SENT) == Reckoning(sent=5, acknowledged=5, stored=5)


def test_an_acknowledged_record_is_lost() -> None:
    assert reckoned(SENT, SENT, values(0, 1, 3, 4)) == Reckoning(sent=5, acknowledged=5, stored=4, lost=1)


def test_a_record_nobody_was_promised_may_be_missing_or_there() -> None:
    assert reckoned(SENT, values(0, 1), values(0, 1)).lost == 0
    assert reckoned(SENT, values(0, 1), SENT) == Reckoning(sent=5, acknowledged=2, stored=5)


def test_every_copy_too_many_is_doubled() -> None:
    found = reckoned(SENT, SENT, values(0, 1, 2, 1, 2, 3, 2, 4))
    assert (found.doubled, found.lost, found.out_of_order) == (3, 0, 0)


@pytest.mark.parametrize(("stored", "late"), [((0, 2, 1, 3, 4), 1), ((4, 0, 1, 2, 3), 4), ((1, 0, 3, 2, 4), 2)])
def test_records_behind_one_that_was_sent_later_are_out_of_order(stored: Sequence[int], late: int) -> None:
    found = reckoned(SENT, SENT, values(*stored))
    assert (found.out_of_order, found.lost, found.doubled) == (late, 0, 0)


def test_a_record_nobody_sent_is_strange() -> None:
    found = reckoned(SENT, SENT, [*SENT, b"stream:99"])
    assert (found.strange, found.lost, found.doubled, found.out_of_order) == (1, 0, 0, 0)


def test_reckonings_add_up() -> None:
    one, other = reckoned(SENT, SENT, values(0)), reckoned(values(9), values(9), values(9, 9))
    assert one + other == Reckoning(sent=6, acknowledged=6, stored=3, lost=4, doubled=1)


def test_a_log_that_was_read_may_only_grow() -> None:
    assert continues(values(0, 1), values(0, 1, 2))
    assert continues([], [])
    assert not continues(values(0, 1), values(0))
    assert not continues(values(0, 1), values(0, 2, 1))


@given(st.lists(st.integers(0, 8), max_size=20), st.sets(st.integers(0, 8)))
def test_against_counting_on_fingers(stored: list[int], acknowledged: set[int]) -> None:
    """A beginner's way: look for every record in the whole log."""
    sent = list(range(6))
    lost = sum(1 for number in acknowledged if stored.count(number) == 0)
    doubled = sum(stored.count(number) - 1 for number in sent if number in stored)
    strange = sum(1 for number in stored if number not in sent)
    firsts = [number for place, number in enumerate(stored) if number in sent and number not in stored[:place]]
    late = sum(1 for place, number in enumerate(firsts) if any(before > number for before in firsts[:place]))
    found = reckoned(values(*sent), values(*acknowledged), values(*stored))
    assert (found.lost, found.doubled, found.strange, found.out_of_order) == (lost, doubled, strange, late)
