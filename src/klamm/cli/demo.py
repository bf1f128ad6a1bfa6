"""`klamm demo`: six brokers, invoices, a pipeline on Spark, a broker killed in the middle, and the reckoning."""

import argparse
import dataclasses
import shutil
import signal
import tempfile
from collections.abc import Sequence
from pathlib import Path

from klamm.cli.options import parser_of
from klamm.cli.saying import FAILED, INTERRUPTED, MISUSED, failed, print_json, say

DESCRIPTION = """\
All of it in about two minutes: six brokers on two racks; a topic with ten partitions and three replicas; invoices that
flow in with acks=all; a pipeline on Spark that makes tables of them. In the middle a broker is killed, as by a power
cut: others lead in its place, it returns and catches up. Then everything is counted.

Brokers take free ports and a temporary directory. In the end, or on Ctrl-C, everything is stopped and removed. Where
Spark or Java is missing, a client reads the invoices back instead.
"""

EXAMPLES = """\
examples:
  klamm demo
  klamm demo --no-spark              brokers and clients alone: half a minute
  klamm demo --keep                  leave the brokers running, to look around and break more
  klamm demo --json                  the reckoning as JSON on standard output, the story on standard error

exit code 0: nothing is lost, nothing doubled; 1: something is, or it could not be done; 130: interrupted
"""

COUNT = 30_000
FEWEST = 2_000


def run(arguments: Sequence[str]) -> int:
    options = make_parser().parse_args(arguments)
    if options.count < FEWEST:
        return failed("demo", f"--count is at least {FEWEST}: fewer are sent before a broker can be killed", MISUSED)
    # Whoever asks us to end means all that we started.
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler)
    directory = Path(tempfile.mkdtemp(prefix="klamm-demo-"))
    try:
        return _played(options, directory)
    except KeyboardInterrupt:
        shutil.rmtree(directory, ignore_errors=True)
        say("interrupted; everything is stopped and removed")
        return INTERRUPTED


def make_parser() -> argparse.ArgumentParser:
    parser = parser_of("demo", DESCRIPTION, EXAMPLES)
    parser.add_argument("--no-spark", action="store_true", help="the part without Spark")
    parser.add_argument("--keep", action="store_true", help="leave the brokers and the data there, and say where")
    parser.add_argument("--count", type=int, default=COUNT, metavar="N", help="invoices (%(default)s)")
    parser.add_argument(
        "--seed", type=int, default=7, metavar="N", help="the same seed, the same invoices (%(default)s)"
    )
    parser.add_argument("--plain", action="store_true", help="lines only, no colours and nothing that moves")
    parser.add_argument("--json", action="store_true", help="for programs: the reckoning as JSON on standard output")
    return parser


def _played(options: argparse.Namespace, directory: Path) -> int:
    # Imported late: help is for nothing.
    from klamm.cli.demo_story import DemoFailed, Story
    from klamm.local.problems import LocalError
    from klamm.pipeline.problems import PipelineError

    story = Story(options, directory)
    try:
        outcome = story.play()
    except (DemoFailed, LocalError, PipelineError, OSError) as problem:
        say(f"What was said and written is in {directory}.")
        return failed("demo", problem)
    if not options.keep and outcome.is_right:
        shutil.rmtree(directory, ignore_errors=True)
    elif not options.keep:
        say(f"Tables, logs and what the brokers had are in {directory}.")
    if options.json:
        left = {"dir": str(directory / "cluster")} if options.keep else {}
        print_json(
            {"seconds": round(story.seconds, 1), "right": outcome.is_right, **left, **dataclasses.asdict(outcome)}
        )
    return 0 if outcome.is_right else FAILED
