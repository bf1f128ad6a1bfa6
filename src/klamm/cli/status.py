"""`klamm status`: which nodes run, who decides, and which partitions are in trouble."""

from argparse import ArgumentParser
from collections.abc import Collection, Sequence
from pathlib import Path

from klamm.cli.options import add_directory, add_json, parser_of
from klamm.cli.saying import FAILED, MISUSED, failed, print_json, say, table
from klamm.cli.tips import directory_option
from klamm.local.asking import Address, NoAnswer
from klamm.local.cluster import LocalCluster, NodeState
from klamm.local.problems import LocalError, NoCluster
from klamm.local.record import ClusterRecord
from klamm.local.view import ClusterSeen, PartitionSeen, UnknownTopic, cluster_seen
from klamm.local.words import BELOW_MIN_IN_SYNC, listed, state_word

DESCRIPTION = """\
Show a cluster on this machine: every node with its rack, roles, process, state (running, paused, stopped, dead) and
where it serves metrics; and, if a broker answers, the active controller and the partitions that are offline,
under-replicated, or below min.insync.replicas.
With --watch it stays and shows the cluster live, as `klamm up` does in the foreground.
"""

EXAMPLES = """\
examples:
  klamm status
  klamm status --dir demo --json
  klamm status --watch                   until Ctrl-C, which leaves the cluster alone

exit code 0: all nodes run and every partition has a leader; 1: not so; 2: there is no cluster
"""

ANSWER_SECONDS = 3.0
MOST_NAMED = 20
"""So many partitions of people's topics are named; of the rest it is said how many there are."""


def make_parser() -> ArgumentParser:
    parser = parser_of("status", DESCRIPTION, EXAMPLES)
    add_directory(parser)
    add_json(parser)
    parser.add_argument("--watch", action="store_true", help="stay, and show it live")
    parser.add_argument("--plain", action="store_true", help="with --watch: a line for what happens, no live view")
    return parser


def run(arguments: Sequence[str]) -> int:
    options = make_parser().parse_args(arguments)
    cluster = LocalCluster(Path(options.dir))
    try:
        record, states = cluster.record(), cluster.states()
    except NoCluster as problem:
        return failed("status", problem, MISUSED)
    except (LocalError, OSError) as problem:
        return failed("status", problem)
    if options.watch:
        return _watched(cluster, options.plain or options.json)
    seen = _seen(record, states)
    if options.json:
        print_json(_document(cluster, record, states, seen))
    else:
        print(text(cluster.directory, record, states, seen, cluster.stopped(states)))
    return 0 if _is_well(states, seen) else FAILED


def _watched(cluster: LocalCluster, plain: bool) -> int:
    from klamm.cli.watching import watch

    try:
        watch(cluster, "Ctrl-C ends this view; `klamm down` stops the cluster", plain=plain)
    except KeyboardInterrupt:
        return 0
    except (LocalError, OSError) as problem:
        return failed("status", problem)
    say(f"no node runs any more; `klamm up{directory_option(cluster.directory)}` starts it again, with its data")
    return FAILED


def _seen(record: ClusterRecord, states: Sequence[NodeState]) -> ClusterSeen | None:
    """Asked of the brokers that run, one after the other; None where nobody answers."""
    addresses = [Address(record.host, node.port) for node, state in states if node.is_broker and state == "running"]
    try:
        return cluster_seen(addresses, ANSWER_SECONDS)
    except (NoAnswer, UnknownTopic):
        return None


def _is_well(states: Sequence[NodeState], seen: ClusterSeen | None) -> bool:
    everybody_runs = all(state == "running" for _, state in states)
    return everybody_runs and seen is not None and not any(each.is_offline for each in seen.partitions)


def text(
    directory: Path,
    record: ClusterRecord,
    states: Sequence[NodeState],
    seen: ClusterSeen | None,
    stopped: Collection[int] = (),
) -> str:
    rows = [
        (
            node.node_id,
            node.rack or "-",
            ", ".join(node.roles),
            node.process.pid if node.process and state != "dead" else "-",
            state_word(state, node.node_id in stopped),
            f"{record.host}:{node.port}",
            record.metrics_url(node) or "-",
        )
        for node, state in states
    ]
    columns = ("id", "rack", "roles", "pid", "state", "address", "metrics")
    lines = [f"cluster in {directory}", table(columns, rows), ""]
    if seen is None:
        return "\n".join([*lines, _why_nobody_answers(directory, states, stopped)])
    fenced = [str(each.broker_id) for each in seen.brokers if each.is_fenced]
    lines.append(f"cluster id        {seen.cluster_id}")
    lines.append(f"controller        {'unknown' if seen.controller is None else f'node {seen.controller}'}")
    lines.append(f"fenced brokers    {', '.join(fenced) or 'none'}")
    internal = sum(each.is_internal for each in seen.partitions)
    lines.append(f"partitions        {len(seen.partitions)}{f', {internal} of them internal' if internal else ''}")
    lines.append(f"offline           {_named([each for each in seen.partitions if each.is_offline])}")
    lines.append(f"under-replicated  {_named([each for each in seen.partitions if each.is_under_replicated])}")
    below = [each for each in seen.partitions if each.is_below_min_in_sync]
    if below:
        lines.append(f"{BELOW_MIN_IN_SYNC}: {listed(below, MOST_NAMED)}; acks=all is refused there")
    return "\n".join(lines)


def _why_nobody_answers(directory: Path, states: Sequence[NodeState], stopped: Collection[int]) -> str:
    dead = [str(node.node_id) for node, state in states if state == "dead"]
    if any(node.is_broker and state != "dead" for node, state in states):
        return "no broker answers"
    if len(dead) < len(states):
        return (
            f"no broker runs; `klamm node start {' '.join(dead)}{directory_option(directory)}` starts what is missing"
        )
    what = "stopped" if len(stopped) == len(states) else "no node runs"
    return f"{what}; `klamm up{directory_option(directory)}` starts it"


def _named(partitions: Sequence[PartitionSeen]) -> str:
    if all(each.is_internal for each in partitions):
        return listed(partitions) if partitions else "0"
    return f"{len(partitions)}: {listed(partitions, MOST_NAMED)}"


def _document(
    cluster: LocalCluster, record: ClusterRecord, states: Sequence[NodeState], seen: ClusterSeen | None
) -> dict[str, object]:
    return {
        "dir": str(cluster.directory),
        "bootstrap_servers": record.bootstrap_servers,
        "nodes": [
            {
                "id": node.node_id,
                "rack": node.rack,
                "roles": list(node.roles),
                "pid": node.process.pid if node.process and state != "dead" else None,
                "state": state,
                "address": f"{record.host}:{node.port}",
                "metrics": record.metrics_url(node),
                "log": str(cluster.log_of(node.node_id)),
            }
            for node, state in states
        ],
        "reachable": seen is not None,
        "cluster_id": seen.cluster_id if seen else record.cluster_id,
        "controller": seen.controller if seen else None,
        "fenced_brokers": [each.broker_id for each in seen.brokers if each.is_fenced] if seen else None,
        "partitions": len(seen.partitions) if seen else None,
        "offline_partitions": _listed(seen, "is_offline"),
        "under_replicated_partitions": _listed(seen, "is_under_replicated"),
        "under_min_isr_partitions": _listed(seen, "is_below_min_in_sync"),
    }


def _listed(seen: ClusterSeen | None, which: str) -> list[dict[str, object]] | None:
    if seen is None:
        return None
    return [{"topic": each.topic, "partition": each.partition} for each in seen.partitions if getattr(each, which)]
