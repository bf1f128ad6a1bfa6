"""`klamm up`: a cluster on this machine, every node a process of its own."""

import argparse
import errno
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from time import monotonic

from klamm.cli.interrupting import heard_afterwards
from klamm.cli.options import (
    MOST_32,
    Misused,
    add_directory,
    add_json,
    pairs_of,
    parser_of,
    port_of,
    seconds_of,
    whole_of,
)
from klamm.cli.saying import FAILED, INTERRUPTED, MISUSED, counted, failed, is_terminal, print_json, say, say_result
from klamm.local.agreeing import BROKERS, RACKS, Wish
from klamm.local.cluster import FIRST_PORT, START_SECONDS, LocalCluster
from klamm.local.problems import LocalError
from klamm.local.record import ClusterRecord, read_record

UNHEARD = frozenset({errno.EIO, errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EBADF})
RUNS_ON = "; what was started here runs on"
"""Where the cluster's own record is what cannot be read: no command finds it by that."""

DESCRIPTION = """\
Start a cluster on this machine: every node a process, its data in DIR/node-N, its log in DIR/node-N.log.
With --detach it returns when every broker takes connections and knows the others, and prints the bootstrap servers.

Brokers are numbered in blocks, rack after rack. Three nodes vote on the cluster's metadata, chosen so that
a lost rack never takes the majority: with two racks the third is a small witness outside both.

Without --detach the command stays and shows the cluster live: brokers by rack, who leads, who is in sync, what comes
in and goes out, what consumer groups have read, and what happens, in words. Ctrl-C stops the cluster; its data stays.
It stays as well when nodes die, also when all do, and shows what starts them again; it ends by itself, with exit code
0, when somebody else has stopped the cluster (`klamm down`).
A directory that holds a cluster already starts that one again, with its data; --fresh deletes it and starts empty.
"""

EXAMPLES = """\
examples:
  klamm up
      three brokers on 127.0.0.1:9092 to 9094, data in ./klamm-data, until Ctrl-C
  klamm up --fresh
      the same, empty
  klamm up --brokers 6 --racks 2 --port 19092 --dir demo --detach
      six brokers in the racks R1 (0, 1, 2) and R2 (3, 4, 5) and a witness (6), left running
  klamm up --detach --json --port 0
      any free ports; the answer is JSON
  klamm up --set min.insync.replicas=2 --set num.partitions=6
      Kafka's own setting names, for every node

then:
  klamm status                       who runs, who decides, what is out of sync
  klamm topic create invoice --partitions 10 --replication 3
  klamm node kill 1                  and see what happens
  klamm down                         stop it

exit code 0: it was stopped, or runs on (--detach); 1: it could not be started; 2: it was asked for in a way that makes
no sense
"""


def run(arguments: Sequence[str]) -> int:
    options = make_parser().parse_args(arguments)
    cluster = LocalCluster(Path(options.dir))
    # Whoever asks us to end means the cluster.
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler)
    try:
        return _carried_out(cluster, options)
    except KeyboardInterrupt:
        return _interrupted(cluster)


def _carried_out(cluster: LocalCluster, options: argparse.Namespace) -> int:
    try:
        _bring_up(cluster, options)
        if not options.detach:
            _stay(cluster, options)
    except Misused as problem:
        return failed("up", problem, MISUSED)
    except OSError as problem:
        return _unheard(cluster, options.detach, problem) if cluster.was_started_here else failed("up", problem)
    except LocalError as problem:
        return failed("up", f"{problem}{RUNS_ON if cluster.was_started_here else ''}")
    except Exception:
        # A mistake of ours, told as such. The nodes do not depend on us: whoever sees it is told of them, too.
        if cluster.was_started_here:
            _say_if_heard(f"klamm up: {_runs_nevertheless(cluster)}")
        raise
    return 0


def _bring_up(cluster: LocalCluster, options: argparse.Namespace) -> None:
    began = monotonic()
    settings = pairs_of("--set", options.set) if options.set else None
    wish = Wish(options.brokers, options.racks, options.port, settings)
    before = None if options.port is None or options.fresh else read_record(cluster.directory)
    record = cluster.up(
        wish, options.timeout, lambda node_id: _say_ready(node_id, monotonic() - began), fresh=options.fresh
    )
    if settings:
        with heard_afterwards():
            from klamm.cli.effects import say_without_effect

        say_without_effect(settings)
    # The live view has them in its first line; a script that reads our output has not.
    if not (_is_live(options) and is_terminal(sys.stdout)):
        _print_result(cluster, record, options.json)
    if before is not None and before.bootstrap_servers != record.bootstrap_servers:
        say(f"moved from {before.bootstrap_servers} to {record.bootstrap_servers}, with its data")
    say(f"{_described(record)} up after {monotonic() - began:.2f} s; data and logs in {cluster.directory}")


def make_parser() -> argparse.ArgumentParser:
    parser = parser_of("up", DESCRIPTION, EXAMPLES)
    parser.add_argument(
        "--brokers", type=whole_of(1, MOST_32), metavar="N", help=f"how many brokers, {BROKERS} by default"
    )
    parser.add_argument(
        "--racks", type=whole_of(1, MOST_32), metavar="N", help=f"over how many racks, {RACKS} by default"
    )
    parser.add_argument(
        "--port",
        type=port_of,
        metavar="PORT",
        help=f"the first node's port, {FIRST_PORT} by default; the others follow. 0: any free ones. "
        "A cluster that is stopped moves there, with its data; with 0, if its own are taken",
    )
    add_directory(parser)
    parser.add_argument(
        "--fresh", action="store_true", help="start empty: what an earlier cluster left in DIR is deleted"
    )
    parser.add_argument("--detach", "-d", action="store_true", help="leave the cluster running and return")
    parser.add_argument(
        "--plain", action="store_true", help="a line for what happens, on standard output, no live view"
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="any of Kafka's broker settings, for every node; may be repeated",
    )
    parser.add_argument(
        "--timeout",
        type=seconds_of,
        default=START_SECONDS,
        metavar="SECONDS",
        help=f"give up when it is not up by then, {START_SECONDS:.0f} by default",
    )
    add_json(parser)
    return parser


def _say_ready(node_id: int, after_seconds: float) -> None:
    say(f"node {node_id} is up after {after_seconds:.2f} s")


def _described(record: ClusterRecord) -> str:
    witness = ", and a witness" if len(record.nodes) > len(record.brokers) else ""
    return f"{counted(len(record.brokers), 'broker')} in {counted(record.racks, 'rack')}{witness}:"


def _print_result(cluster: LocalCluster, record: ClusterRecord, as_json: bool) -> None:
    if not as_json:
        say_result(f"bootstrap servers: {record.bootstrap_servers}")
        return
    print_json(
        {
            "dir": str(cluster.directory),
            "cluster_id": record.cluster_id,
            "bootstrap_servers": record.bootstrap_servers,
            "nodes": [
                {
                    "id": node.node_id,
                    "rack": node.rack,
                    "roles": list(node.roles),
                    "pid": node.process.pid if node.process else None,
                    "address": f"{record.host}:{node.port}",
                    "metrics": record.metrics_url(node),
                    "log": str(cluster.log_of(node.node_id)),
                }
                for node in record.nodes
            ],
        }
    )


def _stay(cluster: LocalCluster, options: argparse.Namespace) -> None:
    """Until somebody else has stopped the cluster. While nodes are dead, be it all of them, we are here to show how
    they return, and Ctrl-C stops what was started meanwhile."""
    if not _is_live(options):
        say("Ctrl-C stops the cluster.")
    # Imported when the cluster is up, not before.
    with heard_afterwards():
        from klamm.cli.watching import How, shown_as, was_stopped, watch

    # Who did not ask for lines may read standard output for the servers alone.
    how: How = "live" if _is_live(options) else "plain"
    say_line = say_result if options.plain and not options.json else say
    with shown_as(how, cluster, "Ctrl-C stops the cluster; its data stays", say_line) as shown:
        watch(cluster, shown, all_ran=True)
    say(was_stopped(cluster))


def _is_live(options: argparse.Namespace) -> bool:
    """Whether the cluster is going to be shown live. A dumb terminal cannot."""
    can_draw = is_terminal(sys.stderr) and os.environ.get("TERM") not in ("dumb", "unknown")
    return can_draw and not (options.detach or options.plain or options.json)


def _unheard(cluster: LocalCluster, detach: bool, problem: OSError) -> int:
    """Of a cluster that runs, when what we print or draw on takes no more: its disk is full, the terminal was closed.
    That may be noticed before the signal that tells of it. Whatever else fails us is no reason to stop a cluster."""
    if detach or problem.errno not in UNHEARD:
        cannot = "cannot write: " if problem.errno in UNHEARD else ""
        return failed("up", f"{cannot}{problem.strerror or problem}; {_runs_nevertheless(cluster)}")
    _say_if_heard(f"klamm up: cannot write: {problem.strerror}; the cluster is stopped")
    _interrupted(cluster)
    return FAILED


def _runs_nevertheless(cluster: LocalCluster) -> str:
    from klamm.cli.tips import directory_option

    at = directory_option(cluster.directory)
    return f"the cluster runs nevertheless: `klamm status{at}` shows it, `klamm down{at}` stops it"


def _interrupted(cluster: LocalCluster) -> int:
    """Stop the cluster, if we started it: somebody else's, which we may have waited for, is not ours to stop."""
    if not cluster.was_started_here:
        return failed("up", "interrupted; what was started is ended again", INTERRUPTED)
    try:
        late = _stopped_or_killed(cluster)
    except LocalError as problem:
        _say_if_heard(f"klamm up: {problem}{RUNS_ON}")
        return FAILED
    if late:
        _say_if_heard(f"killed: {', '.join(map(str, late))}; they recover their logs at the next start")
    from klamm.cli.tips import directory_option

    again = f"`klamm up{directory_option(cluster.directory)}` starts it again"
    _say_if_heard(f"stopped; {again}, with its data in {cluster.directory}")
    return 0


def _stopped_or_killed(cluster: LocalCluster) -> list[int]:
    """Those that had to be killed. Whenever the second Ctrl-C comes, it finds somebody."""
    try:
        # A terminal that closes may say so twice; only Ctrl-C and SIGTERM are impatience.
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        _say_if_heard("stopping; once more Ctrl-C kills")
        return cluster.down()
    except KeyboardInterrupt:
        return cluster.down(timeout_seconds=0)


def _say_if_heard(text: str) -> None:
    """Nobody is there any more to whom it would matter, if it is not."""
    with suppress(OSError):
        say(text)
