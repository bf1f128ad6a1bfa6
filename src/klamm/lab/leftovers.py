"""What is left of experiments whose process was killed before it could tidy up: their nodes are killed, and their
directories removed."""

import shutil
from pathlib import Path

from klamm.local.cluster import LocalCluster
from klamm.local.owned import abandoned
from klamm.local.record import read_record

PREFIX = "klamm-lab-"


def remove(cluster: LocalCluster) -> None:
    """Its nodes are killed, and nothing is left of it."""
    record = read_record(cluster.directory)
    if record is not None:
        cluster.kill(node.node_id for node in record.nodes)
        cluster.states()  # Those that are our children are waited for.
    shutil.rmtree(cluster.directory, ignore_errors=True)


def tidy_up_after_others() -> list[Path]:
    """What experiments left behind that ended without tidying up is removed; where it was."""
    found = abandoned(PREFIX)
    for directory in found:
        remove(LocalCluster(directory))
    return found
