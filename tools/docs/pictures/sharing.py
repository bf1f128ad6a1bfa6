"""Consumer groups: three partitions, shared by two, three and four members; and two groups side by side (S24, S25)."""

from pathlib import Path

from confluent_kafka import Consumer
from tools.docs.pictures.live import Live
from tools.docs.pictures.svg import Drawing

TOPIC = "sales"
PARTITIONS = 3


def draw_groups(live: Live, into: Path) -> None:
    shared = {f"{size} members": owners(live, f"group of {size}", size) for size in (2, 3, 4)}
    picture = Drawing(640, 250, "a group shares partitions: each is read by one member")
    for place, (title, members) in enumerate(shared.items()):
        left = 16 + place * 210
        picture.box(left, 12, 196, 226, "rack", 6)
        picture.text(left + 10, 32, f"a group of {title}", "b s")
        step = 182 / max(len(members), PARTITIONS)
        for number in range(PARTITIONS):
            picture.cell(left + 10, 46 + number * 60, 44, 30, f"P{number}", "done")
        for index, owned in enumerate(members):
            y = 46 + index * step
            picture.cell(left + 116, y, 70, 30, f"member {index + 1}" if owned else "idle", "first" if owned else "box")
            for number in sorted(owned):
                picture.line(left + 54, 61 + number * 60, left + 114, y + 15)
    picture.written(into / "groups.svg")


def owners(live: Live, group: str, size: int) -> list[set[int]]:
    """Which partitions each of so many members owns, when every partition has its owner; the idle ones last."""
    settings = {"bootstrap.servers": live.bootstrap, "group.id": group, "auto.offset.reset": "earliest"}
    members = [Consumer({**settings, "session.timeout.ms": 6000}) for _ in range(size)]
    try:
        for member in members:
            member.subscribe([TOPIC])

        def all_owned() -> bool:
            for member in members:
                member.poll(0.05)
            owned = [each.partition for member in members for each in member.assignment()]
            busy = sum(bool(member.assignment()) for member in members)
            return sorted(owned) == list(range(PARTITIONS)) and busy == min(size, PARTITIONS)

        live.wait(f"{size} members share {PARTITIONS} partitions", all_owned)
        owned = [{each.partition for each in member.assignment()} for member in members]
        return sorted(owned, key=lambda partitions: min(partitions, default=PARTITIONS))
    finally:
        for member in members:
            member.close()
