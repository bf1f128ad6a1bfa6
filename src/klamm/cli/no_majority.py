"""A cluster on this machine in which too few of those who vote run: nothing can be decided, and it is said who is away.

Its processes tell at once what its brokers would tell after half a minute, if at all. What is there already can still
be read and mostly written: only changes are refused.
"""

import argparse

from klamm.cli.group_asking import Cluster, Refused, cluster_of
from klamm.cli.options import bootstrap_of
from klamm.local.asking import Address, takes_connections

LISTENS_SECONDS = 1.0


def undecided(directory: str | None, asked: str) -> str | None:
    """In words; None where a majority runs, where all are dead and `klamm up` is what helps, and where it is somebody
    else's cluster."""
    # Imported where it is needed: it costs the others a fiftieth of a second.
    from klamm.cli.tips import cluster_here, mending
    from klamm.local import words
    from klamm.local.topology import has_majority

    found = cluster_here(directory, asked)
    if found is None:
        return None
    cluster, record = found
    states = cluster.states()
    if all(state == "dead" for _, state in states):
        return None
    running = {
        node.node_id
        for node, state in states
        # A dead one may have been started where we do not see it.
        if state == "running"
        or (state == "dead" and node.is_voter and takes_connections(Address(record.host, node.port), LISTENS_SECONDS))
    }
    if has_majority(record.nodes, running):
        return None
    return f"{words.undecided(record.nodes, running)}; {mending(states, cluster.directory)}"


def refuse_if_undecided(options: argparse.Namespace) -> None:
    words = undecided(options.dir, bootstrap_of(options))
    if words is not None:
        raise Refused(words)


def changing(options: argparse.Namespace) -> Cluster:
    """The cluster of somebody who wants to change something."""
    refuse_if_undecided(options)
    return cluster_of(options)
