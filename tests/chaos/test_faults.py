"""What goes wrong is drawn from the seed: the same every time, over in time, and never more than a minority is hit."""

from collections.abc import Iterable

import pytest

from klamm.chaos.faults import DISKS, HARD, KINDS, LINKS, SECONDS, Fault, drawn_faults
from klamm.chaos.plan import drawn_plan

SEEDS = range(60)


def test_every_kind_has_a_duration() -> None:
    assert set(SECONDS) == set(KINDS) and (HARD | LINKS | DISKS).issubset(KINDS)


def test_the_same_seed_is_the_same_run() -> None:
    assert drawn_plan(7, 60.0, 3, set(KINDS)) == drawn_plan(7, 60.0, 3, frozenset(reversed(list(KINDS))))
    assert drawn_plan(7, 60.0, 3, KINDS) != drawn_plan(8, 60.0, 3, KINDS)


@pytest.mark.parametrize("brokers", [3, 5])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_majority_is_well_at_any_time(seed: int, brokers: int) -> None:
    faults = drawn_faults(seed, 60.0, brokers, KINDS)
    assert faults and list(faults) == sorted(faults, key=lambda fault: fault.at)
    hard = [fault for fault in faults if fault.kind in HARD]
    for fault in hard:
        beside = [other for other in hard if other is not fault and other.at <= fault.at < other.end]
        assert len(beside) < (brokers - 1) // 2 if fault.kind != "everybody" else not beside
        assert all(other.kind != "everybody" for other in beside)


@pytest.mark.parametrize("seconds", [5.0, 60.0])
def test_everything_is_over_in_time(seconds: float) -> None:
    assert all(0 < fault.at < fault.end <= seconds for seed in SEEDS for fault in drawn_faults(seed, seconds, 3, KINDS))


def test_only_what_is_possible_is_drawn() -> None:
    possible = {"kill", "pause"}
    drawn = [fault for seed in SEEDS for fault in drawn_faults(seed, 60.0, 3, possible)]
    assert {fault.kind for fault in drawn} == possible
    assert drawn_faults(0, 60.0, 3, set()) == ()


def test_every_kind_comes_and_most_runs_have_several() -> None:
    runs = [drawn_faults(seed, 60.0, 3, KINDS) for seed in SEEDS]
    assert _kinds(fault for run in runs for fault in run) == set(KINDS)
    assert all(len(_kinds(run)) >= 2 for run in runs)


def _kinds(faults: Iterable[Fault]) -> set[str]:
    return {fault.kind for fault in faults}
