"""`klamm down`: stop the cluster that `klamm up` started."""

from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path

from klamm.cli.options import add_directory, parser_of, seconds_of
from klamm.cli.saying import FAILED, MISUSED, counted, failed, say, say_result
from klamm.cli.tips import directory_option
from klamm.local.cluster import STOP_SECONDS, LocalCluster
from klamm.local.problems import LocalError, NoCluster
from klamm.local.topology import listed

DESCRIPTION = """\
Stop all nodes of a cluster on this machine, cleanly. Its data stays; `klamm up --dir DIR` starts it again.
A node that has not stopped in time is killed, which loses nothing: it recovers its logs at the next start.
"""

EXAMPLES = """\
examples:
  klamm down
  klamm down --dir demo --timeout 5

exit code 0: stopped; 1: some nodes had to be killed; 2: there is no cluster
"""


def make_parser() -> ArgumentParser:
    parser = parser_of("down", DESCRIPTION, EXAMPLES)
    add_directory(parser)
    parser.add_argument(
        "--timeout",
        type=seconds_of,
        default=STOP_SECONDS,
        metavar="SECONDS",
        help=f"how long nodes may take to stop, {STOP_SECONDS:.0f} by default",
    )
    return parser


def run(arguments: Sequence[str]) -> int:
    options = make_parser().parse_args(arguments)
    cluster = LocalCluster(Path(options.dir))
    try:
        running = [node.node_id for node, state in cluster.states() if state != "dead"]
        late = cluster.down(options.timeout)
    except NoCluster as problem:
        return failed("down", problem, MISUSED)
    except (LocalError, OSError) as problem:
        return failed("down", problem)
    if not running:
        say_result("no node was running")
    elif late:
        stopped = counted(len(running) - len(late), "node")
        say_result(f"{stopped} stopped; {listed(late)} killed after {options.timeout:g} s")
    else:
        say_result(f"{counted(len(running), 'node')} stopped")
    say(f"`klamm up{directory_option(cluster.directory)}` starts it again, with its data")
    return FAILED if late else 0
