"""`klamm sim`: whole clusters with their clients in a simulator, from seeds, and every promise checked."""

import time
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from pathlib import Path

from klamm.cli.options import MOST_32, MOST_64, add_json, count_of, parser_of, seconds_of, whole_of
from klamm.cli.parsing import did_you_mean
from klamm.cli.progress import Progress
from klamm.cli.saying import FAILED, INTERRUPTED, print_json, say, say_result
from klamm.sim.coverage import EXPECTED
from klamm.sim.many import Tally, outcome_of, outcomes, plan_of, shrunk
from klamm.sim.plan import ALL_FAULTS, FLUSH_TIMES, GROUPS, OPERATIONS, OPERATIONS_OF, Plan
from klamm.sim.run import Outcome
from klamm.sim.topics import EXTRA_TOPICS

DESCRIPTION = """\
Run clusters with producers, consumers and an operator in one process, on a network, disks and clocks drawn from a seed:
nodes are killed, paused, cut off, lose their power and their disks. After every event the promises are checked; then
everything is mended, and the cluster has to come back. The same seed is the same run, event by event.
"""

EXAMPLES = """\
examples:
  klamm sim --seeds 1000 --jobs 2           a thousand runs; stops at the first that breaks a promise, and shrinks it
  klamm sim --seed 42                       one run
  klamm sim --seed 42 --verbose             with its story: what happened to whom, line by line
  klamm sim --seed 42 --without pause,cut   the same run with less trouble

exit code 0: every promise was kept; 1: one was broken; 130: Ctrl-C, after a summary of the runs until then
"""

TROUBLES = (*ALL_FAULTS, *OPERATIONS, *OPERATIONS_OF.values(), *EXTRA_TOPICS, FLUSH_TIMES, GROUPS)
LAST_LINES = 60


def make_parser() -> ArgumentParser:
    parser = parser_of("sim", DESCRIPTION, EXAMPLES)
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--seed", type=count_of, metavar="N", help="one run, from this seed")
    which.add_argument("--seeds", type=whole_of(1, MOST_64), metavar="COUNT", help="so many runs (100)")
    parser.add_argument("--first", type=count_of, default=0, metavar="N", help="the first of many seeds (0)")
    parser.add_argument("--jobs", type=whole_of(1, MOST_32), default=1, metavar="COUNT", help="so many at a time (1)")
    parser.add_argument("--verbose", action="store_true", help="tell the story of the run")
    parser.add_argument(
        "--seconds", type=seconds_of, metavar="S", help="trouble for so long, in the simulated time of a run"
    )
    parser.add_argument("--without", default="", metavar="NAMES", help=f"less trouble: {', '.join(TROUBLES)}")
    parser.add_argument("--results", type=Path, metavar="FILE", help="append what the runs came to, as a line of JSON")
    add_json(parser)
    return parser


def run(arguments: Sequence[str]) -> int:
    parser = make_parser()
    options = parser.parse_args(arguments)
    unknown = [name for name in _names(options) if name not in TROUBLES]
    if unknown:
        hint = did_you_mean(unknown[0], TROUBLES) or f" There are {', '.join(TROUBLES)}."
        parser.error(f"there is no such trouble: {', '.join(unknown)}.{hint}")
    return _one(options) if options.seed is not None else _many(options)


def _names(options: Namespace) -> list[str]:
    return [name.strip() for name in options.without.split(",") if name.strip()]


def _duration_ms(options: Namespace) -> float | None:
    return None if options.seconds is None else options.seconds * 1_000.0


def _one(options: Namespace) -> int:
    plan = plan_of(options.seed, _names(options), _duration_ms(options))
    outcome = outcome_of(plan, keeps_all=options.verbose)
    if options.json:
        print_json(_document(outcome))
    else:
        if options.verbose:
            say_result("\n".join(outcome.story))
        say_result(_line(outcome))
        if outcome.failure is not None and not options.verbose:
            say_result("\n".join(outcome.story[-LAST_LINES:]))
    return 0 if outcome.failure is None else FAILED


def _outcomes(options: Namespace, count: int) -> Iterator[Outcome]:
    return outcomes(range(options.first, options.first + count), options.jobs, _names(options), _duration_ms(options))


def _many(options: Namespace) -> int:
    count = 100 if options.seeds is None else options.seeds
    tally, failed, began, is_interrupted = Tally(), None, time.monotonic(), False
    try:
        with closing(_told(_outcomes(options, count), count, tally)) as told:
            for outcome in told:
                if outcome.failure is not None:
                    failed = outcome
                    break
                tally.add(outcome)
    except KeyboardInterrupt:
        is_interrupted = True
        say(f"interrupted after {tally.runs:,} of {count:,} runs")
    seconds = time.monotonic() - began
    document = _tally_document(options, tally, failed, seconds)
    if is_interrupted:
        document["interrupted"] = True
    if options.results is not None:
        with options.results.open("a") as results:
            results.write(_one_line(document) + "\n")
    if options.json:
        print_json(document)
    else:
        say_result(_tally_text(tally, seconds))
    if failed is None:
        return INTERRUPTED if is_interrupted else 0
    if not options.json:
        _show_failure(failed)
    return FAILED


def _told(runs: Iterator[Outcome], count: int, tally: Tally) -> Generator[Outcome, None, None]:
    """The same runs, and how far they are. Between them: a thread would be copied with the processes that run them."""
    progress = Progress(lines=True)
    try:
        for outcome in runs:
            yield outcome
            progress.show(
                lambda: (
                    f"{tally.runs:,} of {count:,} runs, {tally.simulated_ms / 3_600_000:.1f} simulated hours, "
                    f"{sum(tally.faults.values()):,} faults"
                )
            )
    finally:
        progress.clear()


def _show_failure(failed: Outcome) -> None:
    say_result(f"\nseed {failed.plan.seed} broke a promise: {failed.failure}")
    say_result("looking for a smaller run that does, too ...")
    small = shrunk(failed)
    say_result("\n".join(small.story[-LAST_LINES:]))
    gone = [name for name in (*failed.plan.faults, *failed.plan.operations) if name not in _all_of(small.plan)]
    without = f" --without '{','.join(gone)}'" if gone else ""
    say_result(f"\nklamm sim --seed {failed.plan.seed} --seconds {small.plan.duration_ms / 1_000:g}{without} --verbose")


def _all_of(plan: Plan) -> list[str]:
    return [*plan.faults, *plan.operations]


# Texts.


def _line(outcome: Outcome) -> str:
    plan = outcome.plan
    verdict = "every promise was kept" if outcome.failure is None else f"BROKEN {outcome.failure}"
    return (
        f"seed {plan.seed}: {plan.brokers} brokers, {outcome.simulated_ms / 1_000:.1f} s, {outcome.events:,} events, "
        f"{outcome.acknowledged:,} records acknowledged, {outcome.reads:,} read, "
        f"{sum(outcome.faults.values())} faults: {verdict}\nhash of all events: {outcome.digest}"
    )


def _tally_text(tally: Tally, seconds: float) -> str:
    rate = tally.runs / seconds if seconds else 0.0
    speed = tally.simulated_ms / 1_000 / seconds if seconds else 0.0
    return (
        f"{tally.runs:,} runs kept every promise: "
        f"{tally.simulated_ms / 3_600_000:.2f} simulated hours in {seconds:.0f} s "
        f"({rate:.1f} runs a second, {speed:.0f} times as fast as life), {tally.events:,} events, "
        f"{tally.acknowledged:,} records acknowledged, {tally.reads:,} read\n"
        f"faults: {_counted(tally.faults)}\n"
        f"operations: {_counted(tally.operations)}\n"
        f"reached: {_counted(tally.reached)}\n"
        f"not reached: {', '.join(_not_reached(tally.reached)) or 'nothing of what is expected'}"
    )


def _not_reached(reached: Counter[str]) -> list[str]:
    return [name for name in EXPECTED if not reached[name]]


def _counted(counter: Counter[str]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in sorted(counter.items())) or "none"


def _document(outcome: Outcome) -> dict[str, object]:
    return {
        "seed": outcome.plan.seed,
        "broken": None if outcome.failure is None else str(outcome.failure),
        "hash": outcome.digest,
        "simulatedSeconds": outcome.simulated_ms / 1_000,
        "events": outcome.events,
        "acknowledged": outcome.acknowledged,
        "read": outcome.reads,
        "faults": dict(outcome.faults),
        "operations": dict(outcome.operations),
        "reached": dict(outcome.reached),
        "notReached": _not_reached(outcome.reached),
    }


def _tally_document(options: Namespace, tally: Tally, failed: Outcome | None, seconds: float) -> dict[str, object]:
    return {
        "first": options.first,
        "without": _names(options),
        "troubleSeconds": options.seconds,
        "runs": tally.runs,
        "seconds": seconds,
        "simulatedSeconds": tally.simulated_ms / 1_000,
        "events": tally.events,
        "acknowledged": tally.acknowledged,
        "read": tally.reads,
        "faults": dict(tally.faults),
        "operations": dict(tally.operations),
        "reached": dict(tally.reached),
        "notReached": _not_reached(tally.reached),
        "brokenSeed": None if failed is None else failed.plan.seed,
        "broken": None if failed is None else str(failed.failure),
    }


def _one_line(document: dict[str, object]) -> str:
    import json

    return json.dumps(document, sort_keys=True)
