"""One look at a cluster on this machine, as a value: what every node did and said within a moment.

What nobody said just now is what was said last: a broker that stands still keeps the log it had, and how far behind it
is grows with what its leader writes meanwhile.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from klamm.ids import Offset, TopicPartition
from klamm.local.deciding import NodeState, WhoRuns
from klamm.local.figures import Figures
from klamm.local.processes import State
from klamm.local.record import NodeRecord
from klamm.local.storage_seen import StorageSeen
from klamm.local.view import PartitionSeen

Sizes = Mapping[TopicPartition, int]
"""Bytes of each log that a broker holds."""
Offsets = Mapping[TopicPartition, Offset]


@dataclass(frozen=True, slots=True)
class Look:
    at_seconds: float
    nodes: tuple[NodeRecord, ...]
    states: Mapping[int, State]
    """Of the nodes' processes."""
    is_answered: bool = False
    """Whether some broker answered; if not, the rest is what was known before."""
    controller: int | None = None
    quorum_epoch: int | None = None
    live: frozenset[int] = frozenset()
    """The brokers that take part, as the cluster sees it."""
    partitions: Mapping[TopicPartition, PartitionSeen] = field(default_factory=dict)
    sizes: Mapping[int, Sizes] = field(default_factory=dict)
    """By broker."""
    storage: Mapping[int, StorageSeen] = field(default_factory=dict)
    """By broker, of those that run: how its disk does."""
    reached: Mapping[int, Offsets] = field(default_factory=dict)
    """By broker: the end of its copy of each partition, as closely as its size tells."""
    ends: Offsets = field(default_factory=dict)
    """Up to where each partition is committed, as its leader says."""
    starts: Offsets = field(default_factory=dict)
    """Where each partition begins, as its leader says: what was before is deleted. 0 where nobody said."""
    committed: Mapping[str, Offsets] = field(default_factory=dict)
    """By consumer group."""
    figures: Mapping[int, Figures] = field(default_factory=dict)
    """By broker; of those that serve metrics."""
    stopped: frozenset[int] = frozenset()
    """Of the nodes that are dead, those that were asked to end, and did."""
    was_taken_down: bool = False
    """Somebody has stopped the cluster as a whole, or is about to."""

    @property
    def own(self) -> list[PartitionSeen]:
        """The partitions of people's topics, not those that the brokers keep for themselves."""
        return [each for each in self.partitions.values() if not each.is_internal]

    @property
    def who_runs(self) -> WhoRuns:
        return WhoRuns(tuple(NodeState(node, self.state(node.node_id)) for node in self.nodes))

    @property
    def running(self) -> set[int]:
        return self.who_runs.running

    @property
    def can_decide(self) -> bool:
        """Enough voters run. Where they do not, who leads and who is in sync stays as it was, whoever else ends."""
        return self.who_runs.can_decide

    @property
    def is_known(self) -> bool:
        """Whether any broker has ever answered."""
        return self.is_answered or bool(self.live)

    @property
    def was_stopped(self) -> bool:
        """All of it, on purpose. Nodes that died are something else: whoever watches may start them again."""
        is_meant = self.was_taken_down or len(self.stopped) == len(self.nodes)
        return is_meant and not self.who_runs.is_anybody_there

    def behind(self, broker_id: int, partition: TopicPartition) -> int:
        """How many records a replica lacks."""
        end = self.ends.get(partition, 0)
        return max(0, end - self.reached.get(broker_id, {}).get(partition, end))

    def lag(self, group: str) -> int | None:
        """How many records a group has not read, of the partitions it has ever said something of."""
        read = self.committed[group]
        return sum(max(0, self.ends.get(place, 0) - offset) for place, offset in read.items()) if read else None

    def members(self, group: str) -> int | None:
        """None where no broker says."""
        return max((each.members[group] for each in self.figures.values() if group in each.members), default=None)

    @property
    def troubled_disks(self) -> dict[int, str]:
        """By broker, in words."""
        return {broker_id: seen.trouble for broker_id, seen in sorted(self.storage.items()) if seen.trouble}

    def state(self, node_id: int) -> State:
        return self.states.get(node_id, "dead")

    def is_gone(self, node_id: int) -> bool:
        """Its process has ended."""
        return self.state(node_id) == "dead"

    def is_unnoticed(self, node_id: int) -> bool:
        """Its process has ended, and what brokers say of it is from before: that it leads, and is in sync."""
        is_named = any(node_id in (each.leader, *each.in_sync) for each in self.partitions.values())
        return self.is_gone(node_id) and node_id in self.live and is_named

    def out_of_sync(self, broker_id: int) -> list[PartitionSeen]:
        """The partitions in which this broker is a replica, and not in sync."""
        return [
            each for each in self.partitions.values() if broker_id in each.replicas and broker_id not in each.in_sync
        ]


def named(partition: PartitionSeen) -> TopicPartition:
    return TopicPartition(partition.topic, partition.partition)


def reached(size: int, leaders_size: int, start: Offset, end: Offset) -> Offset:
    """Up to where a copy of this size goes. Copies are the same byte for byte, so a size is a place in the log; between
    two known places records are taken to be of one size."""
    if size >= leaders_size or leaders_size <= 0:
        return end
    return start + (end - start) * size // leaders_size
