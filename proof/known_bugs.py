"""Which seed catches each of the known bugs of others (`sim/mutations.py`), beginning with the one that last did.

Whatever moves what is drawn moves these seeds: then this finds them again, and prints what belongs into
sim/mutations.py and docs/proof.md. Only runs in which the bug can be seen are tried, and counted.
"""

import argparse
import gc
import multiprocessing
from collections.abc import Iterator
from functools import partial
from itertools import chain, count, islice

from klamm.sim.many import outcome_of
from klamm.sim.mutations import CAUGHT_BY, MUTATIONS, Mutation, mutated, plan_for
from klamm.sim.plan import Plan
from proof.store import Line, Store, table


def add_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("--only", default="", metavar="NUMBERS", help="these, and not all")
    command.add_argument("--most", type=int, default=400, help="give up after so many runs (400)")
    command.add_argument("--jobs", type=int, default=1, help="so many at a time (1)")


def run(options: argparse.Namespace) -> int:
    store = Store(options.results, "known_bugs", options.fresh)
    known = {mutation.number for mutation in MUTATIONS}
    wanted = [name for name in options.only.split(",") if name] or [mutation.number for mutation in MUTATIONS]
    assert set(wanted) <= known, f"known are {', '.join(sorted(known))}"
    left = [number for number in wanted if not store.of("found", number=number)]
    with multiprocessing.get_context("fork").Pool(options.jobs, gc.disable) as pool:
        for found in pool.imap_unordered(partial(_found, most=options.most), left):
            store.append("found", **found)
            print(found, flush=True)
    by_number = {line["number"]: line for line in store.of("found")}
    text = _summary([by_number[mutation.number] for mutation in MUTATIONS if mutation.number in by_number])
    print(text)
    store.write_summary(text)
    return int(any(line["seed"] is None for line in by_number.values()))


def _found(number: str, most: int) -> Line:
    mutation = next(each for each in MUTATIONS if each.number == number)
    found: Line = {"number": number, "what": mutation.what, "seed": None, "runs": most, "seen_as": "nothing"}
    for plan in _plans(mutation, most):
        with mutated(mutation):
            outcome = outcome_of(plan)
        gc.collect()
        if outcome.failure is not None:
            assert outcome_of(plan).failure is None, f"the right code breaks a promise in seed {plan.seed}, too"
            return found | {
                "seed": plan.seed,
                "runs": sum(plan_for(mutation, seed) is not None for seed in range(plan.seed + 1)),
                "seen_as": outcome.failure.promise,
            }
    return found


def _plans(mutation: Mutation, most: int) -> Iterator[Plan]:
    plans = (plan_for(mutation, seed) for seed in chain([CAUGHT_BY.get(mutation.number, 0)], count()))
    return islice((plan for plan in plans if plan is not None), most)


def _summary(found: list[Line]) -> str:
    seeds = ", ".join(f'"{line["number"]}": {line["seed"]}' for line in found)
    rows = [(line["number"], line["what"], line["runs"], line["seen_as"]) for line in found]
    return f"CAUGHT_BY = {{{seeds}}}\n\n" + table(("number", "bug", "runs, at most", "seen as"), rows)
