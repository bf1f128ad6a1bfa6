"""The placement of a topic as a table: one row a broker, in the order in which replicas are placed (S7, S8).

A column says which partitions the broker leads now, the next ones of which it is the first, second, … follower: the
other replicas in their order. Where leadership has not moved that is the placement itself. A replica that is not in
sync is marked; so is a broker that does not take part. The replicas of a partition that nobody leads keep their places:
at the first of them, which does not lead, it stands in parentheses.
"""

from klamm.controller.placement import Candidate, ring
from klamm.escaping import one_line
from klamm.local.view import BrokerSeen, ClusterSeen, PartitionSeen

OUT_OF_SYNC = "!"
LONGEST_NAME = 60
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
    roles = max((len(_places(each)) for each in seen.partitions), default=1)
    known = {each.broker_id: each for each in seen.brokers}
    for partition in seen.partitions:
        for replica in partition.replicas:
            # A broker that was unregistered, and is still named as a replica.
            known.setdefault(replica, BrokerSeen(replica, None, "", 0, is_fenced=True))
    order = ring(Candidate(each.broker_id, each.rack) for each in known.values())
    rows = {candidate.broker_id: Row(known[candidate.broker_id], roles) for candidate in order}
    for partition in seen.partitions:
        for place, replica in enumerate(_places(partition)):
            rows[replica].roles[place].append(partition)
    return list(rows.values())


def _places(partition: PartitionSeen) -> list[int]:
    return list(partition.replicas) if partition.is_offline else [partition.leader, *followers(partition)]


def followers(partition: PartitionSeen) -> list[int]:
    return [replica for replica in partition.replicas if replica != partition.leader]


def headings(roles: int) -> list[str]:
    """`broker`, `leads`, `first follower of`, …"""
    names = [ORDINALS[place] if place < len(ORDINALS) else f"{place + 1}th" for place in range(roles - 1)]
    return ["broker", "leads", *(f"{name} follower of" for name in names)]


def cells(row: Row) -> list[str]:
    marks = (("down", row.broker.is_gone), ("fenced", row.broker.is_fenced))
    name = f"{one_line(row.name, LONGEST_NAME)}{next((f' ({mark})' for mark, is_so in marks if is_so), '')}"
    leads, *follows = ([_marked(row.broker.broker_id, each) for each in role] for role in row.roles)
    leads = [f"({it})" if each.is_offline else it for it, each in zip(leads, row.roles[0], strict=True)]
    return [name, *(" ".join(role) for role in (leads, *follows))]


def _marked(broker_id: int, partition: PartitionSeen) -> str:
    return f"P{partition.partition}{'' if broker_id in partition.in_sync else OUT_OF_SYNC}"
