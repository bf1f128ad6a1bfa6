"""Where the logs of a cluster begin and end: two requests to each leader, all of them at once.

Whoever looks at topics may do so because something is wrong: what is not known at once is left out, and
nobody who stands still is waited for.
"""

from collections.abc import Sequence
from typing import NamedTuple

from klamm.cli.group_asking import EARLIEST, LATEST, Cluster, offsets_said
from klamm.ids import TopicPartition
from klamm.local.asking import Address, Conversation, NoAnswer
from klamm.local.view import ClusterSeen, PartitionSeen

ANSWER_SECONDS = 1.0


class LogExtent(NamedTuple):
    first: int
    end: int

    @property
    def records(self) -> int:
        """At most: what was compacted away, and marks of transactions, have offsets, too."""
        return self.end - self.first


Extents = dict[TopicPartition, LogExtent]


def extents_of(cluster: Cluster, seen: ClusterSeen) -> Extents:
    led: dict[int, list[TopicPartition]] = {}
    for each in seen.partitions:
        led.setdefault(each.leader, []).append(place_of(each))
    leaders = {
        each.broker_id: Address(each.host, each.port)
        for each in seen.brokers
        if each.broker_id in led and not each.is_fenced
    }
    told = cluster.of_brokers(
        leaders, lambda leader, broker: _told_by(broker, led[leader]), timeout_seconds=ANSWER_SECONDS
    )
    return {
        place: extent
        for answer in told.values()
        if not isinstance(answer, NoAnswer)
        for place, extent in answer.items()
    }


def place_of(partition: PartitionSeen) -> TopicPartition:
    return TopicPartition(partition.topic, partition.partition)


def records_in(extents: Extents, partitions: Sequence[PartitionSeen]) -> int | None:
    """None unless all of them are known."""
    known = [extents.get(place_of(each)) for each in partitions]
    return None if None in known else sum(each.records for each in known if each is not None)


def _told_by(leader: Conversation, places: Sequence[TopicPartition]) -> Extents:
    firsts, ends = offsets_said(leader, places, EARLIEST), offsets_said(leader, places, LATEST)
    return {
        place: LogExtent(firsts[place].offset, ends[place].offset)
        for place in places
        if place in firsts and place in ends and not firsts[place].code and not ends[place].code
    }
