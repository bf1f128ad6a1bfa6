"""The simulator catches known bugs of others, put into our code, each within one run."""

import pytest

from klamm.sim.many import outcome_of
from klamm.sim.mutations import MUTATIONS, Mutation, mutated
from klamm.sim.plan import DAMAGE_FAULTS, FORGED_FAULTS, drawn_plan

CAUGHT_BY = {
    "1": 2, "2": 6, "3": 3, "4": 0, "5": 95, "10": 2, "16": 94, "17": 95, "verdict": 13, "vote": 9, "majority": 0,
    "dirty": 0, "hasty": 13, "zombie": 31, "stale": 47, "deposed": 7, "shared": 7, "early": 7, "stranger": 4,
    "follower": 4, "asked": 43, "told": 2, "strays": 5,
}  # fmt: skip
"""A seed that catches it, mostly the first one."""
OF_DAMAGE = {"strays"}
OF_GROUPS = {"hasty", "zombie", "stale", "deposed", "shared", "early"}
"""The others are looked for in runs without groups."""
OF_FORGERS = {"asked", "told"}
"""The others were looked for before anybody forged requests."""


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.number)
def test_a_known_bug_is_caught(mutation: Mutation) -> None:
    with mutated(mutation):
        plan = drawn_plan(CAUGHT_BY[mutation.number], with_groups=mutation.number in OF_GROUPS)
        if mutation.number not in OF_FORGERS:
            plan = plan.without(*FORGED_FAULTS)
        if mutation.number not in OF_DAMAGE:
            # These seeds were found before there were such faults.
            plan = plan.without(*DAMAGE_FAULTS)
        assert outcome_of(plan).failure is not None
