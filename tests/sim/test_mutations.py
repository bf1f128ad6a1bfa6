"""The simulator catches known bugs of others, put into our code, each within one run."""

import pytest

from klamm.sim.many import outcome_of
from klamm.sim.mutations import CAUGHT_BY, MUTATIONS, Mutation, mutated, plan_for


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.number)
def test_a_known_bug_is_caught(mutation: Mutation) -> None:
    plan = plan_for(mutation, CAUGHT_BY[mutation.number])
    assert plan is not None, "this seed has not the faults that it takes"
    with mutated(mutation):
        assert outcome_of(plan).failure is not None
