"""The same seed is the same run: twice in one process, and in processes that hash strings differently (I31)."""

import os
import subprocess
import sys

import pytest

from klamm.sim.many import outcome_of_seed

SEEDS = (2, 7)
SCRIPT = "from klamm.sim.many import outcome_of_seed; print(outcome_of_seed(%d).digest)"


def digest_elsewhere(seed: int, hash_seed: str) -> str:
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT % seed], env=environment, capture_output=True, text=True, check=True, timeout=120
    )
    return done.stdout.strip()


@pytest.mark.parametrize("seed", SEEDS)
def test_one_seed_is_one_run(seed: int) -> None:
    assert outcome_of_seed(seed).digest == outcome_of_seed(seed).digest


def test_whatever_strings_hash_to() -> None:
    assert digest_elsewhere(2, "1") == digest_elsewhere(2, "4711")


def test_other_seeds_are_other_runs() -> None:
    assert len({outcome_of_seed(seed).digest for seed in SEEDS}) == len(SEEDS)
