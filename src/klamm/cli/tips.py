"""What to type next: as the live view says it, how to use the cluster, how to mend it, and how to break it; and to who
finds no broker, how to have those back that were here.

Who sees something broken is told how to mend all of it. Only a cluster that is well is broken, and never so that the
quorum loses its majority: then nothing would move any more, and that is another lesson. A broker alone is all there is.
"""

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from klamm.cli.options import DEFAULT_DIRECTORY, Misused, addresses_of
from klamm.local.asking import Address, takes_connections
from klamm.local.cluster import LocalCluster
from klamm.local.deciding import LISTENS_SECONDS, WhoRuns
from klamm.local.look import Look
from klamm.local.problems import LocalError
from klamm.local.record import ClusterRecord, read_record
from klamm.local.topology import has_majority


class Tip(NamedTuple):
    what_for: str
    command: str
    is_needed: bool = True
    """Also on a small screen."""


def tips(look: Look, directory: Path) -> Iterator[Tip]:
    at = directory_option(directory)
    if look.is_answered and look.can_decide:
        replicas = min(3, sum(node.is_broker for node in look.nodes))
        yield Tip("use it", f"klamm topic create invoice --partitions 10 --replication {replicas}{at}", not look.own)
    commands = _mending(look.who_runs, at)
    for command in commands:
        yield Tip("mend it", command)
    victim = None if commands else _victim(look)
    if victim is not None:
        yield Tip("break it", f"klamm node kill {victim}{at}")
        pause = f"klamm node pause {victim}{at} && sleep 20 && klamm node resume {victim}{at}"
        yield Tip("or so", pause, is_needed=False)


def mending(who: WhoRuns, directory: Path) -> str:
    """What has all nodes run again: ``klamm node start 1 2` mends it`."""
    commands = [f"`{command}`" for command in _mending(who, directory_option(directory))]
    return f"{' and '.join(commands)} {'mends' if len(commands) == 1 else 'mend'} it"


def _mending(who: WhoRuns, at: str) -> list[str]:
    wrong = (("start", who.dead), ("resume", who.paused))
    return [f"klamm node {verb} {' '.join(map(str, nodes))}{at}" for verb, nodes in wrong if nodes]


def no_broker_runs(who: WhoRuns, directory: Path) -> str:
    """Where a witness does."""
    start = f"klamm node start {' '.join(map(str, who.dead))}{directory_option(directory)}"
    return f"no broker runs; `{start}` starts what is missing"


def way_back(directory: str | None, asked: str) -> str | None:
    """Of brokers that do not answer: that they are those of a cluster here which does not run, and what starts it
    again. None where they are somebody else's, or where somebody listens at one of the addresses."""
    found = cluster_here(directory, asked)
    if found is None or any(takes_connections(address, LISTENS_SECONDS) for address in addresses_of(asked)):
        return None
    cluster, record = found
    # Nobody listens where brokers would: nobody was started elsewhere.
    who = WhoRuns(tuple(cluster.states()))
    if who.is_anybody_there:
        return f"of the cluster in {cluster.directory} {no_broker_runs(who, cluster.directory)}" if who.dead else None
    was_stopped = record.was_stopped or len(cluster.stopped(who.states)) == len(who.states)
    how = "was stopped" if was_stopped else "does not run any more"
    up = f"`klamm up{directory_option(cluster.directory)}`"
    return f"the cluster in {cluster.directory} {how}; {up} starts it again, with its data"


def cluster_here(directory: str | None, asked: str) -> tuple[LocalCluster, ClusterRecord] | None:
    """The one on this machine that has the brokers who are asked."""
    cluster = LocalCluster(Path(directory or DEFAULT_DIRECTORY))
    try:
        record, addresses = read_record(cluster.directory), addresses_of(asked)
    except (LocalError, Misused):
        return None
    if record is None or not {Address(record.host, node.port) for node in record.brokers}.intersection(addresses):
        return None
    return cluster, record


def directory_option(directory: Path) -> str:
    """` --dir DIR`, where commands need to be told."""
    if directory == Path(DEFAULT_DIRECTORY).absolute():
        return ""
    return f" --dir {shlex.quote(str(directory))}"


def _victim(look: Look) -> int | None:
    """The second broker rather than the first: it is no less instructive, and mostly not the controller."""
    brokers = [node.node_id for node in look.nodes if node.is_broker]
    if len(brokers) == 1:
        return brokers[0]
    # One that has just been started may not have caught up with the quorum's log: it does not count yet.
    well = {node.node_id for node in look.nodes if not node.is_broker or node.node_id in look.live}
    candidates = (each for each in (*brokers[1:], brokers[0]) if each in well)
    return next((each for each in candidates if has_majority(look.nodes, well - {each})), None)
