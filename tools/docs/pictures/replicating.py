"""One partition and its replicas: followers fetch (S13), fall behind and return (S14), commit (S16), answer (S17 to
S19), and lead when the leader dies (S21, S22)."""

import time
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import KafkaError, Message, Producer
from tools.docs.pictures.live import Live
from tools.docs.pictures.placing import names
from tools.docs.pictures.svg import Drawing

from klamm.local.view import PartitionSeen

TOPIC = "invoice"


@dataclass(frozen=True, slots=True)
class Moment:
    """One partition at one time: who leads, who is in sync, how far each replica has got, what consumers see."""

    title: str
    seen: PartitionSeen
    ends: dict[int, int]
    high_watermark: int
    standing_still: tuple[int, ...] = ()


def moment(live: Live, title: str, partition: int, standing_still: tuple[int, ...] = ()) -> Moment:
    seen = live.partition(TOPIC, partition)
    ends = {broker: live.log_end(broker, TOPIC, partition) for broker in seen.replicas}
    return Moment(title, seen, ends, live.high_watermark(TOPIC, partition), standing_still)


def records(count: int) -> dict[str, str]:
    return {f"till-{number}": f"invoice {number}" for number in range(count)}


def draw_isr(live: Live, into: Path) -> None:
    """Partition 0: all in sync; a follower stands still and is out; it has caught up and is in again."""
    live.produce(TOPIC, records(4), partition=0)
    follower = live.partition(TOPIC, 0).replicas[1]
    live.wait("all have it", lambda: len(set(moment(live, "", 0).ends.values())) == 1)
    moments = [moment(live, "1. all three are in sync", 0)]
    live.cluster.pause([follower])
    try:
        live.produce(TOPIC, records(3), partition=0)  # Answered when the others have gone on without it.
        live.wait("it leaves", lambda: follower not in live.partition(TOPIC, 0).in_sync)
        moments.append(moment(live, "2. a follower stands still: it leaves the in-sync replicas", 0, (follower,)))
    finally:
        live.cluster.resume([follower])
    live.wait_in_sync(TOPIC)
    moments.append(moment(live, "3. it goes on, has caught up, and is in sync again", 0))
    draw_moments(live, moments, "a follower leaves the in-sync replicas and returns").written(into / "isr.svg")


def draw_committed(live: Live, into: Path) -> None:
    """Partition 1: what one in-sync replica does not have yet is not committed, and consumers do not see it."""
    live.produce(TOPIC, records(4), partition=1)
    follower = live.partition(TOPIC, 1).replicas[2]
    live.cluster.pause([follower])
    try:
        answered = live.produce(TOPIC, records(2), partition=1, acks="1")
        other = live.partition(TOPIC, 1).replicas[1]
        live.wait("the other follower has it", lambda: live.log_end(other, TOPIC, 1) == 6)
        now = moment(live, "written with acks=1 while one in-sync replica stands still", 1, (follower,))
    finally:
        live.cluster.resume([follower])
    assert follower in now.seen.in_sync, "it was still counted on"
    assert now.high_watermark < (answered[-1].offset() or 0) + 1
    live.wait_in_sync(TOPIC)
    live.wait("committed", lambda: live.high_watermark(TOPIC, 1) == 6)
    later = moment(live, "it goes on and fetches: committed", 1)
    draw_moments(live, [now, later], "committed and uncommitted records").written(into / "committed.svg")


def draw_moments(live: Live, moments: list[Moment], title: str) -> Drawing:
    named = names(live.seen(TOPIC))
    height = 36 + sum(54 + 30 * len(each.seen.replicas) for each in moments)
    picture = Drawing(640, height, title)
    top = 10
    for each in moments:
        picture.text(16, top + 18, each.title, "b")
        for place, broker in enumerate(each.seen.replicas):
            y = top + 32 + place * 30
            role = "leader" if broker == each.seen.leader else "follower"
            in_sync = "in sync" if broker in each.seen.in_sync else "not in sync"
            picture.text(16, y + 16, f"{named[broker]} {role}", "s b" if role == "leader" else "s")
            still = ", stands still" if broker in each.standing_still else ""
            picture.text(140, y + 16, in_sync + still, "s q")
            for offset in range(each.ends[broker]):
                kind = "done" if offset < each.high_watermark else "open"
                picture.cell(280 + offset * 32, y, 28, 22, str(offset), kind)
        line = 280 + each.high_watermark * 32 - 2
        below = top + 32 + len(each.seen.replicas) * 30
        picture.line(line, top + 26, line, below, arrow=False, kind="dash")
        words = f"high watermark {each.high_watermark}: consumers read up to here"
        picture.text(line, below + 11, words, "s q m")
        top = below + 22
    picture.text(16, height - 10, "blue: committed; yellow: written, not committed", "q s")
    return picture


def draw_acks(live: Live, into: Path) -> None:
    """Partition 2, a follower that stands still: who is answered, after how long, and who had the record then."""
    live.produce(TOPIC, records(1), partition=2)
    seen = live.partition(TOPIC, 2)
    named = names(live.seen(TOPIC))
    picture = Drawing(640, 206, "acks 0, 1 and all while an in-sync follower stands still")
    picture.text(16, 24, "one follower of three replicas stands still", "b")
    for place, heading in enumerate([f"{named[each]}" for each in seen.replicas]):
        picture.text(372 + place * 84, 50, heading, "m s b")
        role = "leader" if not place else "stands still" if place == 2 else "follower"
        picture.text(372 + place * 84, 64, role, "m s q")
    for place, acks in enumerate(("0", "1", "all")):
        y = 76 + place * 38
        told_ms, holders = answered_after(live, seen, acks)
        picture.text(16, y + 17, f"acks={acks}", "b s")
        picture.text(80, y + 17, f"answered after {told_ms:,.0f} ms" if acks != "0" else "not waited for: 0 ms", "s")
        for number, broker in enumerate(seen.replicas):
            has = broker in holders
            picture.cell(336 + number * 84, y, 72, 24, "has it" if has else "not yet", "done" if has else "bad")
    picture.text(
        16,
        196,
        "acks=all was answered when the follower had left the in-sync replicas (replica.lag.time.max.ms=4000)",
        "q s",
    )
    picture.written(into / "acks.svg")


def answered_after(live: Live, seen: PartitionSeen, acks: str) -> tuple[float, set[int]]:
    """Milliseconds until the producer was told, and the replicas whose files held the record at that moment."""
    live.wait_in_sync(TOPIC)
    offset = live.high_watermark(TOPIC, 2)
    producer = Producer({"bootstrap.servers": live.bootstrap, "acks": acks, "linger.ms": 0})
    producer.list_topics(TOPIC, timeout=10)
    told: list[float] = []

    def note(error: KafkaError | None, _: Message) -> None:
        assert error is None, error
        told.append(time.monotonic())

    # The connection to the leader is there before the clock runs.
    producer.produce(TOPIC, b"before", partition=2, on_delivery=note)
    assert producer.flush(30) == 0
    live.wait("all have what came before", lambda: all(live.log_end(b, TOPIC, 2) > offset for b in seen.replicas))
    live.cluster.pause([seen.replicas[2]])
    try:
        told.clear()
        began = time.monotonic()
        producer.produce(TOPIC, b"the record", partition=2, on_delivery=note)
        assert producer.flush(30) == 0
        holders = {broker for broker in seen.replicas if live.log_end(broker, TOPIC, 2) > offset + 1}
    finally:
        live.cluster.resume([seen.replicas[2]])
    return (told[0] - began) * 1000, holders


def draw_failover(live: Live, into: Path) -> None:
    """Partition 3: its leader is killed, another leads, it comes back, and leads again."""
    live.produce(TOPIC, records(3), partition=3)
    live.wait_in_sync(TOPIC)
    first = live.partition(TOPIC, 3)
    moments = [("1. as placed", first)]
    live.cluster.kill([first.leader])
    live.wait("another leads", lambda: live.partition(TOPIC, 3).leader not in (first.leader, -1))
    moments.append((f"2. broker {first.leader} killed with kill -9", live.partition(TOPIC, 3)))
    live.cluster.start([first.leader])
    live.wait_in_sync(TOPIC)
    live.wait("the preferred one leads", lambda: live.partition(TOPIC, 3).leader == first.leader)
    moments.append(("3. it returned, caught up, leads again", live.partition(TOPIC, 3)))
    named = names(live.seen(TOPIC))
    picture = Drawing(640, 36 + 52 * len(moments), "the leader of a partition dies and returns")
    picture.text(624, 22, "partition 3 of invoice", "q s e")
    for place, (title, seen) in enumerate(moments):
        y = 36 + place * 52
        picture.text(16, y + 20, title, "s b")
        for number, broker in enumerate(seen.replicas):
            kind = "leader" if broker == seen.leader else "first" if broker in seen.in_sync else "bad"
            word = "leads" if broker == seen.leader else "in sync" if broker in seen.in_sync else "gone"
            picture.cell(290 + number * 114, y, 104, 30, f"{named[broker]} {word}", kind)
    picture.written(into / "failover.svg")
