"""Replicas over racks: the placement of `invoice` on six brokers in two racks, and a whole rack gone (S7 to S10).

The ordered list takes the racks in turn, and replica j of partition p sits at position (p + j) mod 6 of it. That is
computed here on its own and compared with what the cluster did.
"""

from collections import Counter
from dataclasses import dataclass

from rich.text import Text

from klamm.lab.clients import Writer, all_values, doubled, lost
from klamm.lab.drawing import grid, titled
from klamm.lab.measured import Claim, Measured
from klamm.lab.stage import Layout, Stage
from klamm.local.view import PartitionSeen

PLAN = """\
Six brokers start in two racks: 0, 1, 2 in R1 and 3, 4, 5 in R2, and a witness outside of both for the metadata quorum.
The topic invoice gets 10 partitions with 3 replicas each. 200 invoices are written with acks=all. Then every broker of
R2 is killed with kill -9 at once, 100 more are written, R2 is started again, and the topic is read to its end."""

LAYOUT = Layout(brokers=6, racks=2, settings={"leader.imbalance.check.interval.seconds": "1"})
TOPIC, PARTITIONS, REPLICATION = "invoice", 10, 3
BEFORE, MEANWHILE = 200, 100
LOST_RACK = "R2"


@dataclass(frozen=True, slots=True)
class Racks(Measured):
    racks: dict[int, str]
    """By broker."""
    placed: tuple[PartitionSeen, ...]
    without_the_rack: tuple[PartitionSeen, ...]
    returned: tuple[PartitionSeen, ...]
    led_again_after_seconds: float
    """After the kill: every partition, from the rack that is left."""
    sent: int
    acknowledged: int
    readable: int
    lost: int
    doubled: int

    def claims(self) -> list[Claim]:
        order, partitions = self.order(), range(PARTITIONS)
        expected = [tuple(order[(p + j) % len(order)] for j in range(REPLICATION)) for p in partitions]
        leads = Counter(each.leader for each in self.placed)
        return [
            Claim(
                "replica j of partition p sits at position (p + j) of the list that takes the racks in turn",
                [each.replicas for each in self.placed] == expected,
            ),
            Claim(
                "no broker holds two replicas of a partition, and every partition is in both racks",
                all(
                    len(set(each.replicas)) == REPLICATION and self._racks_of(each.replicas) == set(self.racks.values())
                    for each in self.placed
                ),
            ),
            Claim(
                "leaders per broker differ by at most one",
                set(leads) == set(order) and max(leads.values()) - min(leads.values()) <= 1,
            ),
            Claim(
                f"without {LOST_RACK} every partition has a leader, in the rack that is left",
                len(self.without_the_rack) == PARTITIONS
                and all(each.leader in self._left() and each.leader in each.replicas for each in self.without_the_rack),
            ),
            Claim(
                "every record is acknowledged, none is lost, none is doubled",
                self.sent == self.acknowledged == self.readable and self.lost == self.doubled == 0,
            ),
            Claim("when the rack is back, all is as it was before", self.returned == self.placed),
        ]

    def order(self) -> list[int]:
        """The ordered list: the racks in turn, brokers by number within each."""
        names = sorted(set(self.racks.values()))
        columns = [sorted(broker for broker, rack in self.racks.items() if rack == name) for name in names]
        return [broker for turn in zip(*columns, strict=True) for broker in turn]

    def pictures(self) -> list[Text]:
        return [
            titled("as it was placed", self._table(self.placed)),
            titled(f"without {LOST_RACK}", self._table(self.without_the_rack)),
        ]

    def lesson(self) -> str:
        return (
            "Neighbours in the list are in different racks, so the replicas of a partition are, too, and the load is "
            "even. A rack can lose its power, and every partition still has a replica that was in sync, which leads. "
            "That the metadata quorum outlives either rack takes a vote outside of both: the witness."
        )

    def result(self) -> str:
        return (
            f"all {len(self.without_the_rack)} partitions were led from the other rack "
            f"{self.led_again_after_seconds:.2f} s after the kill; {self.acknowledged} acknowledged, {self.lost} lost, "
            f"{self.doubled} doubled"
        )

    def _racks_of(self, brokers: tuple[int, ...]) -> set[str]:
        return {self.racks[broker] for broker in brokers}

    def _left(self) -> set[int]:
        return {broker for broker, rack in self.racks.items() if rack != LOST_RACK}

    def _table(self, places: tuple[PartitionSeen, ...]) -> Text:
        """What each broker leads, and follows in sync."""
        cells: dict[int, list[list[str]]] = {broker: [[] for _ in range(REPLICATION)] for broker in self.order()}
        for place in places:
            followers = [replica for replica in place.replicas if replica != place.leader]
            for role, broker in enumerate([place.leader, *followers]):
                if broker in place.in_sync:
                    cells[broker][role].append(f"P{place.partition}")
        rows = [
            (f"{self.racks[broker]}-B{broker}", *(" ".join(role) or "-" for role in roles))
            for broker, roles in cells.items()
        ]
        return grid(("broker", "leads", "first follower of", "second follower of"), rows)


def measured(stage: Stage) -> Racks:
    racks = {node.node_id: node.rack or "" for node in stage.record.brokers}
    doomed = [broker for broker, rack in racks.items() if rack == LOST_RACK]
    left = set(racks) - set(doomed)
    stage.create(TOPIC, partitions=PARTITIONS, replication=REPLICATION)
    placed = _wait_whole(stage)
    writer = Writer(stage.bootstrap(), "all", {"enable.idempotence": True})
    _write(writer, range(BEFORE))
    stage.tell(f"{BEFORE} invoices written to {PARTITIONS} partitions")
    stage.kill(*doomed)
    killed = stage.tell(f"kill -9 to the brokers {', '.join(map(str, doomed))}: {LOST_RACK} is gone")
    stage.wait_places(TOPIC, lambda place: place.leader in left, "every partition is led from the other rack")
    led = stage.tell("every partition has a leader")
    without = stage.wait_places(TOPIC, lambda place: set(place.in_sync) <= left, "nobody dead is in sync")
    _write(writer, range(BEFORE, BEFORE + MEANWHILE))
    stage.tell(f"{MEANWHILE} more written meanwhile")
    stage.start(*doomed)
    returned = _wait_whole(stage)
    stage.tell(f"{LOST_RACK} is back, in sync, and leads what it led before")
    readable = all_values(stage.bootstrap(), TOPIC, range(PARTITIONS))
    return Racks(
        racks=racks,
        placed=placed,
        without_the_rack=without,
        returned=returned,
        led_again_after_seconds=round(led.seconds - killed.seconds, 3),
        sent=len(writer.sent),
        acknowledged=len(writer.acknowledged),
        readable=len(readable),
        lost=lost(writer.acknowledged, readable),
        doubled=doubled(readable),
    )


def _wait_whole(stage: Stage) -> tuple[PartitionSeen, ...]:
    """All replicas in sync, and led by the preferred one; in sync in the order in which they were placed."""

    def is_whole(place: PartitionSeen) -> bool:
        return place.leader == place.replicas[0] and set(place.in_sync) == set(place.replicas)

    places = stage.wait_places(TOPIC, is_whole, "every replica is in sync and every preferred leader leads")
    return tuple(
        PartitionSeen(each.topic, each.partition, each.leader, each.replicas, each.replicas) for each in places
    )


def _write(writer: Writer, numbers: range) -> None:
    for number in numbers:
        writer.send(TOPIC, f"invoice {number}", partition=number % PARTITIONS)
    writer.wait_answered()
