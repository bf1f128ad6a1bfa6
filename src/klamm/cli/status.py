"""`klamm status`: which nodes run, who decides, and which partitions are in trouble."""

import shutil
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from klamm.cli.options import add_directory, add_json, parser_of
from klamm.cli.saying import FAILED, MISUSED, failed, is_terminal, print_json, say, say_result, table
from klamm.cli.status_document import document
from klamm.cli.tips import directory_option, mending, no_broker_runs
from klamm.escaping import one_line
from klamm.local.asking import Address, NoAnswer
from klamm.local.asking_several import SOON_SECONDS, each_answer
from klamm.local.cluster import LocalCluster
from klamm.local.deciding import NodeState, WhoRuns
from klamm.local.problems import LocalError, NoCluster
from klamm.local.record import ClusterRecord
from klamm.local.storage_seen import StorageSeen, log_dirs, storage_in
from klamm.local.topology import listed as nodes_listed
from klamm.local.view import ClusterSeen, PartitionSeen, UnknownTopic, cluster_seen, placement_seen
from klamm.local.words import called, listed, state_word, undecided, without_acks_all

DESCRIPTION = """\
Show a cluster on this machine: every node with its rack, roles, process, state (running, paused, stopped, dead) and
where it serves metrics; and, if a broker answers, the active controller and the partitions that are offline,
under-replicated, or below min.insync.replicas, and the disks that are full or fail.
Where too few voters run to decide anything, that is said, and what a broker that runs has heard last.
With --watch it stays and shows the cluster live, as `klamm up` does in the foreground, also while no node runs, until
the cluster is stopped; with --watch --json it prints a JSON document a line, whenever something changes.
"""

EXAMPLES = """\
examples:
  klamm status
  klamm status --dir demo --json
  klamm status --watch                   until Ctrl-C, which leaves the cluster alone
  klamm status --watch --plain > log     a line for what happens

exit code 0: all nodes run, every partition has a leader and every disk takes writes; 1: not so; 2: there is no
cluster
with --watch 0: until Ctrl-C; 1: the cluster was stopped
"""

ANSWER_SECONDS = 3.0
HEARD_SECONDS = 1.0
"""Where nothing can be decided. Who has heard something says it at once, and who was started after that waits for a
majority before it says anything."""


def make_parser() -> ArgumentParser:
    parser = parser_of("status", DESCRIPTION, EXAMPLES)
    add_directory(parser)
    add_json(parser)
    parser.add_argument("--watch", action="store_true", help="stay, and show it live")
    parser.add_argument(
        "--plain", action="store_true", help="with --watch: a line for what happens, on standard output, no live view"
    )
    return parser


def run(arguments: Sequence[str]) -> int:
    options = make_parser().parse_args(arguments)
    cluster = LocalCluster(Path(options.dir))
    try:
        record = cluster.record()
        who = cluster.who_runs(record)
    except NoCluster as problem:
        return failed("status", problem, MISUSED)
    except (LocalError, OSError) as problem:
        return failed("status", problem)
    if options.watch:
        return _watched(cluster, options)
    asked, seen = _seen(record, who)
    storage = _storage(record, who) if seen is not None else {}
    if options.json:
        print_json(document(cluster, record, who, seen, storage))
    else:
        columns = shutil.get_terminal_size().columns if is_terminal(sys.stdout) else None
        say_result(text(cluster.directory, record, who, seen, cluster.stopped(who.states), asked, columns, storage))
    return 0 if _is_well(who, seen) and not any(each.trouble for each in storage.values()) else FAILED


def _watched(cluster: LocalCluster, options: Namespace) -> int:
    from klamm.cli.watching import How, shown_as, was_stopped, watch

    how: How = "json" if options.json else "plain" if options.plain else "live"
    try:
        with shown_as(how, cluster, "Ctrl-C ends this view; `klamm down` stops the cluster") as shown:
            watch(cluster, shown)
    except KeyboardInterrupt:
        return 0
    except BrokenPipeError:
        raise  # `| head` has read what it wanted.
    except (LocalError, OSError) as problem:
        return failed("status", problem)
    say(was_stopped(cluster))
    return FAILED


def _seen(record: ClusterRecord, who: WhoRuns) -> tuple[Address | None, ClusterSeen | None]:
    """Asked of the brokers that run, one after the other; None where nobody answers. If what is answered is what was
    heard before the quorum lost its majority, also who says so."""
    running = [node for node in who.nodes if node.is_broker and node.node_id in who.running]
    addresses = [Address(record.host, node.port) for node in running]
    try:
        if who.can_decide:
            return None, cluster_seen(addresses, ANSWER_SECONDS)
        return placement_seen(addresses, HEARD_SECONDS, who.gone)
    except (NoAnswer, UnknownTopic):
        return None, None


def _storage(record: ClusterRecord, who: WhoRuns) -> dict[int, StorageSeen]:
    """Every broker that runs is asked about its own disk, side by side; who does not answer is left out."""
    running = [node for node in who.nodes if node.is_broker and node.node_id in who.running]
    addresses = {node.node_id: Address(record.host, node.port) for node in running}
    answers = each_answer(addresses, HEARD_SECONDS, lambda _, broker: storage_in(log_dirs(broker)), SOON_SECONDS)
    return {broker_id: seen for broker_id, seen in answers.items() if not isinstance(seen, NoAnswer)}


def _is_well(who: WhoRuns, seen: ClusterSeen | None) -> bool:
    everybody_runs = len(who.running) == len(who.states)
    return everybody_runs and seen is not None and not any(each.is_offline for each in seen.partitions)


def text(
    directory: Path,
    record: ClusterRecord,
    who: WhoRuns,
    seen: ClusterSeen | None,
    stopped: Collection[int] = (),
    asked: Address | None = None,
    columns: int | None = None,
    storage: Mapping[int, StorageSeen] = MappingProxyType({}),
) -> str:
    """On a terminal of so many columns; None where there is room for all."""
    lines = [f"cluster in {directory}", _nodes(record, who.states, stopped, columns), ""]
    if who.elsewhere:
        lines.append(_elsewhere(sorted(who.elsewhere)))
    if seen is None:
        return "\n".join([*lines, *_why_nobody_answers(directory, record, who, stopped)])
    if not who.can_decide:
        heard = next(called(node) for node in who.nodes if asked == (record.host, node.port))
        lines += _why_undecided(directory, who)
        lines += [f"what {heard} heard last, without those that do not run:", ""]
    fenced = [str(each.broker_id) for each in seen.brokers if each.is_fenced]
    lines.append(f"cluster id        {one_line(seen.cluster_id)}")
    decides = "unknown" if seen.controller is None else f"node {seen.controller}"
    lines.append(f"controller        {decides if who.can_decide else 'none'}")
    lines.append(f"fenced brokers    {', '.join(fenced) or 'none'}")
    internal = sum(each.is_internal for each in seen.partitions)
    lines.append(f"partitions        {len(seen.partitions)}{f', {internal} of them internal' if internal else ''}")
    lines.append(f"offline           {_named([each for each in seen.partitions if each.is_offline])}")
    lines.append(f"under-replicated  {_named([each for each in seen.partitions if each.is_under_replicated])}")
    below = [each for each in seen.partitions if each.is_below_min_in_sync]
    lines += [f"broker {broker_id} {seen.trouble}" for broker_id, seen in storage.items() if seen.trouble]
    if below:
        lines.append(without_acks_all(listed(below), can_decide=who.can_decide))
    return "\n".join(lines)


def _nodes(record: ClusterRecord, states: Sequence[NodeState], stopped: Collection[int], columns: int | None) -> str:
    """As a table. Where it would not fit, the port alone says where metrics are."""
    whole = _table(record, states, stopped, [record.metrics_url(node) for node, _ in states])
    if columns is None or max(map(len, whole.splitlines())) <= columns:
        return whole
    places = [record.metrics_place(node) for node, _ in states]
    ports = [None if place is None else f":{place.rpartition(':')[2]}/metrics" for place in places]
    return _table(record, states, stopped, ports)


def _table(
    record: ClusterRecord, states: Sequence[NodeState], stopped: Collection[int], metrics: Sequence[str | None]
) -> str:
    rows = [
        (
            node.node_id,
            node.rack or "-",
            ", ".join(node.roles),
            node.process.pid if node.process and state != "dead" else "-",
            state_word(state, node.node_id in stopped),
            f"{record.host}:{node.port}",
            where or "-",
        )
        for (node, state), where in zip(states, metrics, strict=True)
    ]
    return table(("id", "rack", "roles", "pid", "state", "address", "metrics"), rows)


def _why_nobody_answers(directory: Path, record: ClusterRecord, who: WhoRuns, stopped: Collection[int]) -> list[str]:
    if any(node.is_broker and node.node_id not in who.dead for node in who.nodes):
        return ["no broker answers"] if who.can_decide else _why_undecided(directory, who)
    if who.is_anybody_there:
        return [no_broker_runs(who, directory)]
    what = "stopped" if record.was_stopped or len(stopped) == len(who.states) else "no node runs"
    return [f"{what}; `klamm up{directory_option(directory)}` starts it"]


def _elsewhere(node_ids: Sequence[int]) -> str:
    whose, they = ("its port", "it counts") if len(node_ids) == 1 else ("their ports", "they count")
    return f"{nodes_listed(node_ids)}: somebody listens at {whose}, so {they} as running"


def _why_undecided(directory: Path, who: WhoRuns) -> list[str]:
    return [f"{undecided(who.nodes, who.running)};", mending(who, directory)]


def _named(partitions: Sequence[PartitionSeen]) -> str:
    if all(each.is_internal for each in partitions):
        return listed(partitions) if partitions else "0"
    return f"{len(partitions)}: {listed(partitions)}"
