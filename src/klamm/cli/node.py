"""`klamm node`: stop, kill, pause, resume or start single nodes of a cluster on this machine."""

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

from klamm.cli.options import add_directory, id_of, parser_of, seconds_of
from klamm.cli.saying import MISUSED, failed, say, say_result
from klamm.cli.tips import directory_option
from klamm.local.cluster import START_SECONDS, STOP_SECONDS, LocalCluster
from klamm.local.problems import LocalError, NoCluster
from klamm.local.topology import listed

DESCRIPTION = """\
Do something to nodes of a cluster that `klamm up` started:

  stop     end cleanly: leadership moves first, everything is on disk; one that is paused goes on first
  kill     end at once, as by kill -9 or a power cut of that node
  pause    stand still: connections stay open, nothing is answered; the others have to notice
  resume   go on after a pause, maybe as a leader that is none any more
  start    start again after stop or kill; returns when it serves clients again
"""

EXAMPLES = """\
examples:
  klamm node kill 1
  klamm node kill 0 1 2 --dir demo       a whole rack of `klamm up --brokers 6 --racks 2`
  klamm node start 0 1 2 --dir demo
  klamm node pause 3 && sleep 5 && klamm node resume 3

exit code 0: done; 1: could not be done; 2: there is no such cluster or node
"""


def run(arguments: Sequence[str]) -> int:
    options = make_parser().parse_args(arguments)
    # Whoever names a node twice means it once.
    options.id = list(dict.fromkeys(options.id))
    cluster = LocalCluster(Path(options.dir))
    try:
        record = cluster.record()
        unknown = set(options.id) - {node.node_id for node in record.nodes}
        if unknown:
            record.node(min(unknown))
    except LocalError as problem:
        return failed("node", problem, MISUSED)
    try:
        return VERBS[options.verb](cluster, options)
    except (LocalError, OSError) as problem:
        return failed(f"node {options.verb}", problem, MISUSED if isinstance(problem, NoCluster) else 1)


def make_parser() -> argparse.ArgumentParser:
    parser = parser_of("node", DESCRIPTION, EXAMPLES)
    parser.add_argument("verb", choices=list(VERBS), help="what to do")
    parser.add_argument("id", type=id_of, nargs="+", metavar="ID", help="the nodes, by their numbers")
    add_directory(parser)
    parser.add_argument(
        "--timeout", type=seconds_of, metavar="SECONDS", help="for start and stop: how long they may take"
    )
    return parser


def _stop(cluster: LocalCluster, options: argparse.Namespace) -> int:
    running = _said_who_runs(cluster, options.id)
    timeout = STOP_SECONDS if options.timeout is None else options.timeout
    late = cluster.stop(running, timeout)
    if late:
        return failed("node stop", f"{listed(late)} did not stop within {timeout:g} s; {_kill_of(cluster, late)}")
    return _done(running, "stopped")


def _kill_of(cluster: LocalCluster, node_ids: Sequence[int]) -> str:
    which = " ".join(map(str, node_ids))
    return (
        f"`klamm node kill {which}{directory_option(cluster.directory)}` ends {'it' if len(node_ids) == 1 else 'them'}"
    )


def _kill(cluster: LocalCluster, options: argparse.Namespace) -> int:
    running = _said_who_runs(cluster, options.id)
    cluster.kill(running)
    return _done(running, "killed")


def _pause(cluster: LocalCluster, options: argparse.Namespace) -> int:
    cluster.pause(options.id)
    return _done(options.id, "paused")


def _resume(cluster: LocalCluster, options: argparse.Namespace) -> int:
    paused = {node.node_id for node, state in cluster.states() if state == "paused"}
    for node_id in options.id:
        if node_id not in paused:
            say(f"node {node_id} was not paused")
    cluster.resume(options.id)
    return _done([node_id for node_id in options.id if node_id in paused], "resumed")


def _start(cluster: LocalCluster, options: argparse.Namespace) -> int:
    alive = {node.node_id for node, state in cluster.states() if state != "dead"}
    for node_id in sorted(alive & set(options.id)):
        say(f"node {node_id} runs already")
    starting = [node_id for node_id in options.id if node_id not in alive]
    timeout = START_SECONDS if options.timeout is None else options.timeout
    if not cluster.start(starting, timeout):
        say("the quorum has no majority yet: clients are served when more voters run (`klamm status`)")
    return _done(starting, "started")


VERBS: dict[str, Callable[[LocalCluster, argparse.Namespace], int]] = {
    "stop": _stop,
    "kill": _kill,
    "pause": _pause,
    "resume": _resume,
    "start": _start,
}


def _said_who_runs(cluster: LocalCluster, node_ids: Sequence[int]) -> list[int]:
    """Those of them that run; of the others it is said that they do not."""
    alive = {node.node_id for node, state in cluster.states() if state != "dead"}
    for node_id in node_ids:
        if node_id not in alive:
            say(f"node {node_id} was not running")
    return [node_id for node_id in node_ids if node_id in alive]


def _done(node_ids: Sequence[int], how: str) -> int:
    if node_ids:
        say_result(f"{listed(node_ids)} {how}")
    return 0
