"""The simulator catches what it was built to catch. (How many seeds each mutation needs: docs/proof.md.)"""

import pytest

from klamm.sim.many import outcome_of_seed
from klamm.sim.mutations import MUTATIONS, Mutation, mutated

CAUGHT_BY: dict[str, int] = {}
"""A seed that catches the mutation."""


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.number)
def test_a_known_bug_is_caught(mutation: Mutation) -> None:
    if mutation.number not in CAUGHT_BY:
        pytest.skip("no seed is known yet")
    with mutated(mutation):
        assert outcome_of_seed(CAUGHT_BY[mutation.number]).failure is not None
