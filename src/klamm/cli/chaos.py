"""`klamm chaos`: a cluster of real processes under faults, with real clients, and what they were promised checked."""

import json
import time
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from klamm.chaos.faults import KINDS
from klamm.cli.interrupting import terminated_as_interrupted
from klamm.cli.options import MOST_64, add_json, count_of, parser_of, seconds_of, whole_of
from klamm.cli.parsing import did_you_mean
from klamm.cli.progress import Progress
from klamm.cli.saying import FAILED, INTERRUPTED, counted, failed, print_json, say, say_result

if TYPE_CHECKING:
    from klamm.chaos.abilities import Abilities
    from klamm.chaos.run import Outcome

DESCRIPTION = """\
Run a cluster of processes on this machine, each in a network namespace and on a small disk of its own, with producers
and consumers, and let things go wrong: kill -9, SIGSTOP, cut, slow and lossy links, full disks. Then all is mended, and
what the clients saw is held against what they were promised: nothing acknowledged with acks=all is lost, nothing of an
idempotent producer is doubled or out of order, every reader reads the same at every offset, without a gap, to the end.

The seed draws what goes wrong when. Namespaces and disks need root; elsewhere the brokers share the loopback interface,
and links and disks stay as they are.
"""

EXAMPLES = f"""\
faults:
{chr(10).join(f"  {kind:<10} {what}" for kind, what in KINDS.items())}

examples:
  klamm chaos                               one run of a minute
  klamm chaos --seed 100 --runs 30          thirty, with the seeds 100 to 129; stops at the first broken promise
  klamm chaos --seed 7 --verbose            with its story: what happened to whom, line by line
  klamm chaos --without cut,oneway,slow     less trouble

exit code 0: every promise was kept; 1: one was broken, and the directories and the story of that run stay;
130: Ctrl-C, after a summary of the runs until then
"""

BROKERS = (3, 5)
LAST_COMPLAINTS = 10


def make_parser() -> ArgumentParser:
    parser = parser_of("chaos", DESCRIPTION, EXAMPLES)
    parser.add_argument("--seed", type=count_of, default=0, metavar="N", help="the seed of the first run (0)")
    parser.add_argument(
        "--runs", type=whole_of(1, MOST_64), default=1, metavar="COUNT", help="so many, one after the other (1)"
    )
    parser.add_argument(
        "--seconds", type=seconds_of, default=60.0, metavar="S", help="trouble for so long in each (60)"
    )
    parser.add_argument("--brokers", type=int, default=3, choices=BROKERS, help="in the cluster (3)")
    parser.add_argument("--without", default="", metavar="NAMES", help="less trouble: names of faults, with commas")
    parser.add_argument("--loopback", action="store_true", help="no network namespaces: links stay as they are")
    parser.add_argument("--keep", action="store_true", help="the nodes' directories and logs stay")
    parser.add_argument("--results", type=Path, metavar="FILE", help="append a line of JSON a run")
    parser.add_argument("--verbose", action="store_true", help="tell the story while it happens")
    add_json(parser)
    return parser


def run(arguments: Sequence[str]) -> int:
    parser = make_parser()
    options = parser.parse_args(arguments)
    unknown = [name for name in _names(options) if name not in KINDS]
    if unknown:
        hint = did_you_mean(unknown[0], KINDS) or f" There are {', '.join(KINDS)}."
        parser.error(f"there is no such fault: {', '.join(unknown)}.{hint}")
    from klamm.chaos.problems import ChaosError

    try:
        with terminated_as_interrupted():
            return _run(options)
    except ChaosError as problem:
        return failed("chaos", problem)


def _names(options: Namespace) -> list[str]:
    return [name.strip() for name in options.without.split(",") if name.strip()]


def _run(options: Namespace) -> int:
    from klamm.chaos.abilities import found_abilities
    from klamm.chaos.scratch import tidy_up_after_others

    for leftover in tidy_up_after_others():
        say(f"removed what an earlier run left behind: {leftover}")
    abilities = found_abilities(options.loopback)
    for reason in abilities.reasons:
        say(reason)
    outcomes: list[Outcome] = []
    is_interrupted = False
    try:
        for seed in range(options.seed, options.seed + options.runs):
            outcomes.append(_one(options, seed, abilities))
            if outcomes[-1].broken:
                break
    except KeyboardInterrupt:
        is_interrupted = True
        say(f"interrupted in run {len(outcomes) + 1} of {options.runs}, seed {options.seed + len(outcomes)}")
    if options.json:
        print_json([_document(outcome) for outcome in outcomes])
    elif len(outcomes) > 1 or (outcomes and is_interrupted):
        say_result(_summary(outcomes))
    if is_interrupted:
        return INTERRUPTED
    return FAILED if outcomes[-1].broken else 0


def _one(options: Namespace, seed: int, abilities: "Abilities") -> "Outcome":
    from klamm.chaos.plan import drawn_plan
    from klamm.chaos.run import run_once

    possible = abilities.possible - set(_names(options))
    plan = drawn_plan(seed, options.seconds, options.brokers, possible)
    began = time.monotonic()
    latest = "the cluster starts"

    def hear(line: str) -> None:
        nonlocal latest
        latest = line.split(maxsplit=1)[-1]
        if options.verbose:
            say(line)

    progress = Progress(wanted=not options.verbose, lines=True)
    with progress.shown(lambda: _how_far(options, seed, progress.seconds, latest)):
        outcome = run_once(plan, abilities, options.keep, hear)
    if options.results is not None:
        # Where it lies on this machine is nothing for a record that others read.
        document = {**_document(outcome), "seconds": round(time.monotonic() - began, 1)}
        del document["directory"]
        with options.results.open("a", encoding="utf-8") as results:
            results.write(json.dumps(document, sort_keys=True) + "\n")
    if not options.json:
        say_result(run_line(outcome))
        if outcome.broken and not options.verbose:
            say_result("\n".join(outcome.story))
    return outcome


# Texts.


def _how_far(options: Namespace, seed: int, seconds: float, latest: str) -> str:
    which = f"run {seed - options.seed + 1} of {options.runs}, " if options.runs > 1 else ""
    return f"{which}seed {seed}, {seconds:.0f} s (trouble for {options.seconds:g}): {latest}"


def run_line(outcome: "Outcome") -> str:
    gave_up = f", gave up {_counted(outcome.gave_up)}" if outcome.gave_up else ""
    verdict = "every promise was kept"
    if outcome.broken:
        verdict = "BROKEN " + "\n  ".join(map(str, outcome.broken))
    lines = [
        f"seed {outcome.plan.seed}: {outcome.plan.brokers} brokers ({outcome.where}), {outcome.plan.seconds:g} s, "
        f"{counted(sum(outcome.faults.values()), 'fault')} ({_counted(outcome.faults)}), {outcome.sent:,} sent, "
        f"{outcome.acknowledged:,} acknowledged, {outcome.read:,} read, lost {_count(outcome, 'lost')}, "
        f"doubled {_count(outcome, 'doubled', 'doubled anew')}{gave_up}, "
        f"{outcome.longest_seconds:.1f} s at most without an acknowledgement, "
        f"back after {outcome.back_seconds:.1f} s: {verdict}"
    ]
    lines += [f"  complaint: {complaint}" for complaint in outcome.complaints[:LAST_COMPLAINTS]]
    if len(outcome.complaints) > LAST_COMPLAINTS:
        lines.append(f"  and {len(outcome.complaints) - LAST_COMPLAINTS} more complaints")
    if outcome.directory is not None:
        lines.append(f"  the nodes' directories, logs and the story stay in {outcome.directory}")
    return "\n".join(lines)


def _summary(outcomes: "Sequence[Outcome]") -> str:
    kept = sum(not outcome.broken for outcome in outcomes)
    faults = sum((outcome.faults for outcome in outcomes), Counter[str]())
    return (
        f"{kept} of {counted(len(outcomes), 'run')} kept every promise: "
        f"{sum(outcome.sent for outcome in outcomes):,} sent, "
        f"{sum(outcome.acknowledged for outcome in outcomes):,} acknowledged, "
        f"{sum(outcome.read for outcome in outcomes):,} read, {sum(faults.values()):,} faults ({_counted(faults)}), "
        f"{max(outcome.longest_seconds for outcome in outcomes):.1f} s at most without an acknowledgement"
    )


def _count(outcome: "Outcome", *promises: str) -> int:
    return sum(broken.count for broken in outcome.broken if broken.promise in promises)


def _counted(counter: Counter[str]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in sorted(counter.items())) or "none"


def _document(outcome: "Outcome") -> dict[str, object]:
    return {
        "seed": outcome.plan.seed,
        "brokers": outcome.plan.brokers,
        "where": outcome.where,
        "troubleSeconds": outcome.plan.seconds,
        "faults": dict(sorted(outcome.faults.items())),
        "sent": outcome.sent,
        "acknowledged": outcome.acknowledged,
        "read": outcome.read,
        "lost": _count(outcome, "lost"),
        "doubled": _count(outcome, "doubled"),
        "doubledOfPlainProducers": outcome.doubled_plain,
        "doubledAnewByClients": _count(outcome, "doubled anew"),
        "gaveUp": dict(outcome.gave_up),
        "longestWithoutAcknowledgementSeconds": round(outcome.longest_seconds, 3),
        "backSeconds": round(outcome.back_seconds, 3),
        "broken": [str(broken) for broken in outcome.broken],
        "complaints": outcome.complaints,
        "directory": None if outcome.directory is None else str(outcome.directory),
    }
