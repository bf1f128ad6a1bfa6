"""What is rare is reached, and called by its name (I33)."""

from klamm.sim.coverage import EXPECTED
from klamm.sim.many import Tally, outcome_of, outcomes
from klamm.sim.plan import ALL_FAULTS, OPERATIONS, drawn_plan

SEEDS = range(3000, 3060)

MAY_BE_MISSED = 10
"""So many rare things may be missing in so few runs; `klamm sim --seeds 1000` names those that are."""


def test_some_sixty_runs_reach_most_of_what_is_rare() -> None:
    tally = Tally()
    for outcome in outcomes(SEEDS, jobs=2):
        assert outcome.failure is None, f"klamm sim --seed {outcome.plan.seed} --verbose: {outcome.failure}"
        tally.add(outcome)
    assert set(tally.reached) <= set(EXPECTED), "only names that are known"
    missed = [name for name in EXPECTED if not tally.reached[name]]
    assert len(missed) <= MAY_BE_MISSED, f"{len(missed)} were not reached: {', '.join(missed)}"
    assert sum(not tally.faults[name] for name in ALL_FAULTS) <= 1, "but for one perhaps, every fault happened"
    assert not [name for name in OPERATIONS if not tally.operations[name]], "every operation was done"


def test_every_name_stands_for_one_thing() -> None:
    assert len(set(EXPECTED)) == len(EXPECTED)


def test_a_run_that_is_listened_to_leaves_nothing_behind() -> None:
    from klamm.partition.partition import Partition

    before = Partition.append
    outcome_of(drawn_plan(1).lasting(500.0))
    assert Partition.append is before
