"""Runs that once broke a promise, each with what it taught, and some that nobody has seen before."""

from random import SystemRandom

import pytest

from klamm.sim.many import outcome_of_seed

PINNED: dict[int, str] = {}
"""A seed that once failed, and why."""

FRESH = [SystemRandom().randrange(1_000_000, 1_000_000_000) for _ in range(6)]


def check(seed: int) -> None:
    outcome = outcome_of_seed(seed)
    assert outcome.failure is None, f"klamm sim --seed {seed} --verbose\n" + "\n".join(outcome.story[-60:])


@pytest.mark.parametrize("seed", PINNED)
def test_a_run_that_once_failed(seed: int) -> None:
    check(seed)


@pytest.mark.parametrize("seed", range(12))
def test_the_first_seeds(seed: int) -> None:
    check(seed)


@pytest.mark.parametrize("number", range(len(FRESH)))
def test_a_fresh_seed(number: int) -> None:
    check(FRESH[number])
