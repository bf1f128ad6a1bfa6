"""Brokers in racks and their ordered list (S6, S7); who leads and who follows (S8); partitions and keys (S1, S3)."""

from pathlib import Path

from confluent_kafka import Consumer, TopicPartition
from tools.docs.pictures.live import Live
from tools.docs.pictures.svg import Drawing

from klamm.cli.placement_table import rows_of
from klamm.local.view import ClusterSeen

KINDS = ("leader", "first", "second")
LETTERS = ("L", "F1", "F2")
TILLS = ("anna", "ben", "anna", "cleo", "ben", "dora", "anna", "emil", "cleo", "ben", "dora", "anna")


def names(seen: ClusterSeen) -> dict[int, str]:
    return {each.broker_id: f"{each.rack}-B{each.broker_id}" for each in seen.brokers}


def draw_topic(live: Live, into: Path) -> None:
    """Records of four tills, keyed by till, read back partition by partition."""
    live.create("sales", 3, 3)
    for number, till in enumerate(TILLS):
        live.produce("sales", {till: f"sale {number}"})
    picture = Drawing(640, 190, "topic sales: three partitions, each numbers its own records")
    picture.text(16, 24, "topic sales", "b")
    picture.text(624, 24, "key of each record; below it, its offset", "q s e")
    for partition in range(3):
        y = 40 + partition * 48
        picture.text(16, y + 22, f"partition {partition}", "s")
        for offset, key in read_back(live, "sales", partition):
            x = 100 + offset * 62
            picture.cell(x, y, 56, 22, key, "done")
            picture.text(x + 28, y + 35, str(offset), "m s q")
    picture.written(into / "topic.svg")


def read_back(live: Live, topic: str, partition: int) -> list[tuple[int, str]]:
    consumer = Consumer({"bootstrap.servers": live.bootstrap, "group.id": "pictures", "enable.auto.commit": False})
    end = live.high_watermark(topic, partition)
    consumer.assign([TopicPartition(topic, partition, 0)])
    found: list[tuple[int, str]] = []
    while len(found) < end:
        message = consumer.poll(10)
        assert message is not None and message.error() is None
        found.append((int(message.offset() or 0), (message.key() or b"").decode()))
    consumer.close()
    return found


def draw_brokers(live: Live, into: Path) -> None:
    """Two racks above, the list that takes one of each in turn below."""
    seen = live.seen("invoice")
    named = names(seen)
    order = [row.broker.broker_id for row in rows_of(seen)]
    picture = Drawing(640, 200, "six brokers in two racks, and the ordered list of them")
    racks = sorted({each.rack or "" for each in seen.brokers})
    for index, rack in enumerate(racks):
        left = 16 + index * 310
        picture.box(left, 14, 298, 74, "rack", 6)
        picture.text(left + 10, 32, f"rack {rack}", "b s")
        inside = [each for each in seen.brokers if each.rack == rack]
        for place, broker in enumerate(inside):
            controller = " ★" if broker.broker_id == seen.controller else ""
            picture.cell(left + 12 + place * 94, 44, 84, 32, f"broker {broker.broker_id}{controller}", "box")
    picture.text(16, 118, "ordered list", "b s")
    for place, broker_id in enumerate(order):
        x = 16 + place * 104
        kind = "done" if named[broker_id].startswith("R1") else "open"
        picture.cell(x, 130, 84, 30, named[broker_id], kind)
        if place:
            picture.line(x - 20, 145, x - 2, 145)
    note = (
        "★ leads the quorum of controllers"
        if seen.controller in named
        else "a witness outside both racks leads the quorum"
    )
    picture.text(624, 186, note, "q s e")
    picture.written(into / "brokers.svg")


def draw_placement(live: Live, into: Path) -> None:
    """A row a broker in the order of the list, a column a partition."""
    seen = live.seen("invoice")
    rows = rows_of(seen)
    width = 110 + len(seen.partitions) * 50 + 20
    picture = Drawing(width, 70 + len(rows) * 34 + 34, "topic invoice: ten partitions, three replicas each")
    picture.text(16, 24, "topic invoice, 10 partitions, replication factor 3: 30 replicas", "b")
    for number, partition in enumerate(seen.partitions):
        picture.text(110 + number * 50 + 21, 54, f"P{partition.partition}", "m s")
    for place, row in enumerate(rows):
        y = 64 + place * 34
        picture.text(16, y + 19, row.name, "b s")
        for number, partition in enumerate(seen.partitions):
            broker = row.broker.broker_id
            if broker in partition.replicas:
                followers = [each for each in partition.replicas if each != partition.leader]
                role = 0 if broker == partition.leader else 1 + followers.index(broker)
                picture.cell(110 + number * 50, y, 42, 26, LETTERS[role], KINDS[role])
    picture.text(16, 64 + len(rows) * 34 + 24, "L leads, F1 first follower, F2 second follower", "q s")
    picture.written(into / "placement.svg")
