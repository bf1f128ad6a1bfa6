"""A cluster on this machine in which too few of those who vote run: nothing can be decided, and it is said who is away.

Its processes tell at once what its brokers would tell after half a minute, if at all. What is there already can still
be read and mostly written: only changes are refused.

It is the same cluster whether it is asked for by its directory or by the addresses of its brokers.
"""

from collections.abc import Collection
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from klamm.local.cluster import LocalCluster
    from klamm.local.deciding import WhoRuns


def undecided(directory: str | None, asked: str) -> str | None:
    """In words; None where a majority runs, where all are dead and `klamm up` is what helps, and where it is somebody
    else's cluster."""
    found = _who_runs_here(directory, asked)
    if found is None:
        return None
    cluster, who = found
    if who.can_decide or not who.is_anybody_there:
        return None
    from klamm.cli.tips import mending
    from klamm.local import words

    return f"{words.undecided(who.nodes, who.running)}; {mending(who, cluster.directory)}"


def gone(directory: str | None, asked: str) -> Collection[int]:
    """Its brokers that do not run, where it cannot decide anything about them."""
    found = _who_runs_here(directory, asked)
    return () if found is None else found[1].gone


def _who_runs_here(directory: str | None, asked: str) -> "tuple[LocalCluster, WhoRuns] | None":
    # Imported where it is needed: it costs the others a fiftieth of a second.
    from klamm.cli.tips import cluster_here

    found = cluster_here(directory, asked)
    if found is None:
        return None
    cluster, record = found
    return cluster, cluster.who_runs(record)
