"""A partition is offline for what happened to its own files, and a disk that does not fail takes none offline.

I31. A flush is of files of many owners, and a disk that fails one of them says which. Whoever is offline for a file of
somebody else would have served.
"""

import re

from klamm.broker.facts import PartitionFailed
from klamm.facts import Fact
from klamm.node.facts import MetadataFailed
from klamm.quorum.raft import DIRECTORY
from klamm.sim.machine import Machine
from klamm.sim.promise import broken

REFUSED = re.compile(r"(\S+): (?:input/output error|no space left)")
"""What a disk says that was told to fail, and of which file."""
NOT_THERE = "No such file or directory"


def check_offline(machine: Machine, fact: Fact) -> None:
    if isinstance(fact, PartitionFailed):
        directory, reason = fact.partition, fact.reason
    elif isinstance(fact, MetadataFailed):
        directory, reason = DIRECTORY, fact.reason
    else:
        return
    if NOT_THERE in reason:
        broken("I31", f"{machine.name}: {fact}, and nobody has taken it away")
    refused = REFUSED.search(reason)
    # (Without the checkpoints, which are everybody's, nothing can be put down of anybody.)
    if refused is not None and "/" in refused[1] and not refused[1].startswith(f"{directory}/"):
        broken("I31", f"{machine.name}: {fact}, which is none of its files")
