"""Nobody says which cluster is meant, and none is kept here: whoever has Kafka's usual port is asked, and it is said.

Not where it is likely that another one is meant, because its directory is right here, above or below. And nothing is
deleted in a cluster that nobody has named.
"""

from functools import cache
from pathlib import Path

from klamm.cli.options import DEFAULT_BOOTSTRAP, Misused, addresses_of
from klamm.cli.saying import say

LISTENS_SECONDS = 1.0


def unnamed_cluster(directory: Path, *, deletes: bool, tell: bool) -> str:
    """Its address. LocalError or Misused, in a sentence, where it is not to be asked."""
    from klamm.local.asking import takes_connections
    from klamm.local.listeners import cluster_on
    from klamm.local.mending import check_none_near

    check_none_near(directory)
    (address,) = addresses_of(DEFAULT_BOOTSTRAP)
    if not takes_connections(address, LISTENS_SECONDS):
        return DEFAULT_BOOTSTRAP
    other = cluster_on(address.port)
    whose = "" if other is None else f", the cluster in {other}"
    if deletes:
        raise Misused(
            f"there is no cluster in {directory}, and nothing is deleted in one that is not named; "
            f"--bootstrap {address} names what is there{whose}"
        )
    if tell:
        _say_once(f"klamm: there is no cluster in {directory}; asking {address}{whose}")
    return DEFAULT_BOOTSTRAP


_say_once = cache(say)
