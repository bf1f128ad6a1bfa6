"""`klamm lab`: the guarantees as experiments on a real cluster."""

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from klamm.cli.interrupting import terminated_as_interrupted
from klamm.cli.options import add_json, parser_of
from klamm.cli.saying import FAILED, failed, print_json, say, say_result
from klamm.lab.catalogue import EXPERIMENTS, experiment

if TYPE_CHECKING:
    from klamm.lab.catalogue import Experiment
    from klamm.lab.measured import Measured
    from klamm.lab.stage import Stage

DESCRIPTION = """\
What replication promises, shown on a real cluster: each experiment starts one of its own (free ports, a temporary
directory, removed at the end and on Ctrl-C), breaks something in it, counts with a real client what became of the
records, draws it, and says whether the promise was kept. Each takes two to fifteen seconds. Without a name: the list.
"""

EXAMPLES = """\
examples:
  klamm lab                   the experiments, a line each
  klamm lab acks              records lost with acks 0 and 1, none with all
  klamm lab acks --help       what it will do
  klamm lab racks --keep      the cluster stays, to look around in it
  klamm lab isr --json        what was measured, for a program

exit code 0: what was claimed was seen; 1: it was not, or the experiment could not be done
"""


def run(arguments: Sequence[str]) -> int:
    options = make_parser(arguments).parse_args(arguments)
    if options.experiment is None:
        return _list(options.json)
    from klamm.lab.problems import LabError
    from klamm.local.asking import NoAnswer
    from klamm.local.problems import LocalError

    try:
        with terminated_as_interrupted():
            return _run(options)
    except BrokenPipeError:
        raise  # `| head` has read what it wanted.
    except (LabError, LocalError, NoAnswer, OSError) as problem:
        return failed(f"lab {options.experiment}", problem)


def make_parser(arguments: Sequence[str] = ()) -> argparse.ArgumentParser:
    parser = parser_of("lab", DESCRIPTION, EXAMPLES)
    add_json(parser)
    names = parser.add_subparsers(dest="experiment", metavar="EXPERIMENT")
    for name, what in EXPERIMENTS.items():
        one = names.add_parser(
            name,
            help=what,
            # Its own words are asked for only where they are wanted.
            description=experiment(name).plan if name in arguments else what,
            epilog=f"examples:\n  klamm lab {name}\n  klamm lab {name} --json",
        )
        one.add_argument("--keep", action="store_true", help="leave the cluster running, and say how to stop it")
        # Without a default of its own: else one that stood before the name would be forgotten.
        one.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="what was measured, as JSON")
    return parser


def _list(as_json: bool) -> int:
    if as_json:
        print_json([{"experiment": name, "what": what} for name, what in EXPERIMENTS.items()])
        return 0
    width = max(map(len, EXPERIMENTS))
    for name, what in EXPERIMENTS.items():
        say_result(f"{name:<{width}}  {what}")
    say_result("\n`klamm lab acks` runs one of them, `klamm lab acks --help` says what it does.")
    return 0


def _run(options: argparse.Namespace) -> int:
    from klamm.lab.leftovers import tidy_up_after_others
    from klamm.lab.stage import Stage
    from klamm.lab.telling import Narrator

    for directory in tidy_up_after_others():
        say(f"removed what an earlier experiment left behind: {directory}")
    chosen = experiment(options.experiment)
    narrator = Narrator(silent=options.json)
    narrator.announce(chosen)
    stage = Stage(chosen.name, chosen.layout, options.keep, narrator.hear)
    try:
        with stage:
            found = chosen.measured(stage)
        if options.json:
            print_json(_document(chosen, found, stage))
        narrator.conclude(found)
    finally:
        if stage.is_kept:
            narrator.kept(stage)
    return 0 if found.holds else FAILED


def _document(chosen: "Experiment", found: "Measured", stage: "Stage") -> dict[str, Any]:
    kept = {"dir": str(stage.directory), "bootstrap_servers": stage.record.bootstrap_servers}
    return {
        "experiment": chosen.name,
        "holds": found.holds,
        "claims": [claim._asdict() for claim in found.claims()],
        "measured": found.document(),
        "kept": kept if stage.is_kept else None,
    }
