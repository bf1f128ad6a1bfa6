"""Some hundred drawn lives of a quorum keep every promise. More: `python -m tests.quorum.test_chaos FIRST COUNT`."""

import sys

import pytest

from tests.quorum.chaos import Chaos

SEEDS = 200


@pytest.mark.parametrize("first", range(0, SEEDS, 20))
def test_every_promise_holds_whatever_happens(first: int) -> None:
    for seed in range(first, first + 20):
        try:
            Chaos(seed).run()
        except BaseException:
            print(f"seed {seed}")
            raise


if __name__ == "__main__":
    first, number = map(int, sys.argv[1:3])
    for seed in range(first, first + number):
        try:
            Chaos(seed).run()
        except BaseException:
            print(f"seed {seed}")
            raise
    print(f"{number} lives from seed {first} on kept every promise")
