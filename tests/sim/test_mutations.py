"""The simulator catches known bugs of others, put into our code, within one run. (Those it misses: docs/proof.md.)"""

import pytest

from klamm.sim.many import outcome_of_seed
from klamm.sim.mutations import MUTATIONS, mutated

CAUGHT_BY = {"2": 2, "3": 3, "10": 2, "vote": 17, "majority": 0, "dirty": 3}
"""The first seed that catches the mutation."""


@pytest.mark.parametrize("number", CAUGHT_BY)
def test_a_known_bug_is_caught(number: str) -> None:
    (mutation,) = [each for each in MUTATIONS if each.number == number]
    with mutated(mutation):
        assert outcome_of_seed(CAUGHT_BY[number]).failure is not None
