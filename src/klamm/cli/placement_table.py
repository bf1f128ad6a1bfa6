"""The placement of a topic as a table: one row a broker, in the order in which replicas are placed (S7, S8).

A column says which partitions the broker leads now, the next ones of which it is the first, second, … follower: the
other replicas in their order. Where leadership has not moved that is the placement itself. A replica that is not in
sync is marked; so is a broker that does not take part.
"""

from collections.abc import Sequence

from klamm.controller.placement import Candidate, ring
from klamm.local.view import BrokerSeen, ClusterSeen, PartitionSeen

OUT_OF_SYNC = "!"
ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth")


class Row:
    """One broker: for each role, the leader's first, the partitions in which it has it."""

    __slots__ = ("broker", "roles")

    def __init__(self, broker: BrokerSeen, roles: int) -> None:
        self.broker = broker
        self.roles: list[list[PartitionSeen]] = [[] for _ in range(roles)]

    @property
    def name(self) -> str:
        rack = f"{self.broker.rack}-" if self.broker.rack else ""
        return f"{rack}B{self.broker.broker_id}"


def rows_of(seen: ClusterSeen) -> list[Row]:
    """The rows of one topic's table: every broker of the cluster, also those that hold nothing of it."""
    roles = 1 + max((len(followers(each)) for each in seen.partitions), default=0)
    known = {each.broker_id: each for each in seen.brokers}
    for partition in seen.partitions:
        for replica in partition.replicas:
            # A broker that was unregistered, and is still named as a replica.
            known.setdefault(replica, BrokerSeen(replica, None, "", 0, is_fenced=True))
    order = ring(Candidate(each.broker_id, each.rack) for each in known.values())
    rows = {candidate.broker_id: Row(known[candidate.broker_id], roles) for candidate in order}
    for partition in seen.partitions:
        if not partition.is_offline:
            rows[partition.leader].roles[0].append(partition)
        for place, follower in enumerate(followers(partition), start=1):
            rows[follower].roles[place].append(partition)
    return list(rows.values())


def followers(partition: PartitionSeen) -> list[int]:
    return [replica for replica in partition.replicas if replica != partition.leader]


def headings(roles: int) -> list[str]:
    """`broker`, `leads`, `first follower of`, …"""
    names = [ORDINALS[place] if place < len(ORDINALS) else f"{place + 1}th" for place in range(roles - 1)]
    return ["broker", "leads", *(f"{name} follower of" for name in names)]


def cells(row: Row) -> list[str]:
    marks = (("down", row.broker.is_gone), ("fenced", row.broker.is_fenced))
    name = f"{row.name}{next((f' ({mark})' for mark, is_so in marks if is_so), '')}"
    return [name, *(_partitions(row.broker.broker_id, role) for role in row.roles)]


def _partitions(broker_id: int, partitions: Sequence[PartitionSeen]) -> str:
    return " ".join(f"P{each.partition}{'' if broker_id in each.in_sync else OUT_OF_SYNC}" for each in partitions)
