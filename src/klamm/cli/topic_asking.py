"""One topic, before records are sent to it or read from it: is it there, how many partitions, who leads them.

Asked before a client library is let loose: librdkafka would try for minutes where nobody answers, and make a topic
whose name was mistyped without a word.
"""

import time
from collections.abc import Collection

from klamm.cli.group_asking import Cluster, Refused
from klamm.cli.options import Misused
from klamm.cli.parsing import did_you_mean
from klamm.local.view import PartitionSeen

HEARD_SECONDS = 1.0
"""A topic that was just made: so long it may take until every broker has heard of it."""
MADE_SECONDS = 10.0
LISTED = "`klamm topic list` lists them"
PAUSE_SECONDS = 0.05


def partitions_of(cluster: Cluster, topic: str) -> dict[int, PartitionSeen]:
    deadline = time.monotonic() + HEARD_SECONDS
    while not (found := _partitions(cluster, topic)):
        if time.monotonic() > deadline:
            raise no_topic(cluster, topic)
        time.sleep(PAUSE_SECONDS)
    return found


def partitions_made(cluster: Cluster, topic: str) -> tuple[dict[int, PartitionSeen], bool]:
    """The same of a topic that the cluster may make, and whether it did: as it does for any producer."""
    found = _partitions(cluster, topic)
    if found:
        return found, False
    from klamm.controller.names import topic_name_problem

    problem = topic_name_problem(topic)
    if problem is not None:
        raise Misused(problem)
    deadline = time.monotonic() + MADE_SECONDS
    while time.monotonic() < deadline:
        found = _partitions(cluster, topic, create=True)
        if found and not any(each.is_offline for each in found.values()):
            return found, True
        time.sleep(PAUSE_SECONDS)
    raise Refused(f"there is no topic {topic}, and the cluster does not make it; `klamm topic create {topic}` does")


def no_topic(cluster: Cluster, topic: str) -> Refused:
    """To be raised: of a topic that is not there, and one that may be meant."""
    hint = did_you_mean(topic, cluster.topics())
    return Refused(f"there is no topic {topic}.{hint}" if hint else f"there is no topic {topic}; {LISTED}")


def chosen(topic: str, there: Collection[int], wanted: "list[int] | None") -> list[int]:
    """All partitions, or those of them that were asked for."""
    missing = sorted(set(wanted or ()).difference(there))
    if missing:
        raise Misused(f"there is no partition {missing[0]} of {topic}: it has 0 to {max(there)}")
    return sorted(set(wanted)) if wanted else sorted(there)


def _partitions(cluster: Cluster, topic: str, *, create: bool = False) -> dict[int, PartitionSeen]:
    return {each.partition: seen for each, seen in cluster.partitions([topic], create=create).items()}
