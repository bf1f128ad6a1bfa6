"""S12 to S16: what leaders and followers do, who is in sync, and what of it a consumer sees.

Slow, lossy, cut and one-way links are in `tests/compat/links`: they need network namespaces.
"""

import json
import time
from collections import Counter
from random import Random

from klamm.errors import ErrorCode
from tests.harness.raw import Raw
from tests.harness.requests import LATEST, batch_of, fetch, offset_at, produce
from tests.harness.waiting import wait_until
from tests.system.clients import Reader, Writer, all_of
from tests.system.running import LAG_SECONDS, System

SAFE = {"min.insync.replicas": "2"}


class Requests:
    """How many requests of a kind a client sent to which broker, told by itself."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self.sent: Counter[int] = Counter()

    def __call__(self, statistics: str) -> None:
        for broker in json.loads(statistics)["brokers"].values():
            count = broker["req"].get(self._kind, 0)
            if count:
                self.sent[broker["nodeid"]] = count


def test_s12_clients_write_to_the_leader_and_read_from_it(system: System, topic: str) -> None:
    system.eyes().create(topic, replicas=[1, 2, 4])
    produced, fetched = Requests("Produce"), Requests("Fetch")
    writer = Writer(system.bootstrap, "all", statistics_interval_ms=50, stats_cb=produced)
    with Reader(system.bootstrap, topic, statistics_interval_ms=50, stats_cb=fetched) as reader:
        for number in range(10):
            writer.write_safely(topic, f"invoice {number}")
        assert reader.read(10) == [f"invoice {number}" for number in range(10)]
        wait_until(lambda: bool(writer.wait(0.05) or produced.sent[1] >= 10), "the producer counted")
        wait_until(lambda: bool(reader.read_some(0.05) or fetched.sent), "the consumer counted")
    assert set(produced.sent) == {1} and set(fetched.sent) == {1}


def test_s12_a_follower_takes_neither_writes_nor_reads(system: System, topic: str) -> None:
    """A client that knows no better is told so, by every broker that does not lead."""
    system.eyes().create(topic, replicas=[1, 2, 4])
    Writer(system.bootstrap, "all").write_safely(topic, "the only one")
    for broker in (2, 4, 5):
        with Raw(system.record.node(broker).port) as raw:
            refusals = [produce(raw, topic, batch_of(b"refused"), acks=acks).error_code for acks in (-1, 1)] + [
                fetch(raw, topic, 0).error_code,
                offset_at(raw, topic, LATEST).error_code,
            ]
            # Who holds no replica does not even know more than that it is elsewhere.
            expected = ErrorCode.NOT_LEADER_OR_FOLLOWER
            assert refusals[:2] == [expected] * 2, f"writes to broker {broker}"
            assert refusals[3] == expected, f"the end asked of broker {broker}"
            if broker == 5:
                assert refusals[2] == expected, "there is no replica to read"
    assert all_of(system.bootstrap, topic) == ["the only one"]


def test_s12_the_leader_keeps_the_in_sync_list(system: System, topic: str) -> None:
    system.eyes().create(topic, replicas=[1, 2, 4])
    assert system.place(topic).in_sync == {1, 2, 4}
    system.pause(4)
    Writer(system.bootstrap, "all").write_safely(topic, "something to lag behind")
    system.wait_in_sync(topic, {1, 2})
    system.resume(4)
    system.wait_in_sync(topic, {1, 2, 4})


def test_s13_followers_hold_the_same_bytes_at_the_same_offsets(system: System, topic: str) -> None:
    """Many batches of many sizes and codecs, over segments and two leaders: the files are equal, byte by byte."""
    system.eyes().create(topic, replicas=[1, 2, 4], config={"segment.bytes": "1048576"})
    random = Random(13)
    for codec in ("none", "gzip", "lz4", "snappy", "zstd"):
        writer = Writer(system.bootstrap, "all", compression_type=codec)
        for _ in range(10):
            values = [random.randbytes(random.randrange(2000)).hex() for _ in range(random.randrange(1, 60))]
            writer.write_safely(topic, *values)
        if codec == "lz4":
            system.kill(1)
            system.wait_led(topic, {2, 4})
            system.start(1)
    system.wait_in_sync(topic, {1, 2, 4})
    wait_until(lambda: system.segments(2, topic) == system.segments(4, topic), "the followers have it all")
    leaders = system.segments(1, topic)
    assert len(leaders) >= 3 and sum(map(len, leaders.values())) > 2_000_000
    assert system.segments(2, topic) == leaders and system.segments(4, topic) == leaders


def test_s14_a_paused_follower_leaves_the_isr_and_comes_back_when_it_has_caught_up(system: System, topic: str) -> None:
    system.eyes().create(topic, replicas=[1, 2, 4])
    writer = Writer(system.bootstrap, "all")
    writer.write_safely(topic, "before")
    began = time.monotonic()
    system.pause(4)
    writer.write_safely(topic, "meanwhile")
    assert time.monotonic() - began > LAG_SECONDS / 2, "while it was in sync, it was waited for"
    system.wait_in_sync(topic, {1, 2})
    assert 4 in system.eyes().brokers(), "it left because it lagged, not because it was fenced"
    assert b"meanwhile" not in system.bytes_of(4, topic)
    system.resume(4)
    system.wait_in_sync(topic, {1, 2, 4})
    assert system.segments(4, topic) == system.segments(1, topic)


def test_s14_a_follower_that_has_nothing_to_copy_stays_in_sync(system: System, topic: str) -> None:
    """Twice the allowed lag without a record: nobody leaves, since who holds everything is not behind."""
    system.eyes().create(topic, replicas=[1, 2, 4])
    Writer(system.bootstrap, "all").write_safely(topic, "the only one")
    until = time.monotonic() + 2 * LAG_SECONDS
    while time.monotonic() < until:
        assert system.place(topic).in_sync == {1, 2, 4}


def test_s15_a_follower_crashes_and_restarts(system: System, topic: str) -> None:
    system.eyes().create(topic, replicas=[1, 2, 4])
    writer = Writer(system.bootstrap, "all")
    writer.write_safely(topic, "before")
    system.kill(2)
    writer.write_safely(topic, *(f"meanwhile {number}" for number in range(100)))
    system.wait_in_sync(topic, {1, 4})
    system.start(2)
    system.wait_in_sync(topic, {1, 2, 4})
    writer.write_safely(topic, "after")
    assert system.segments(2, topic) == system.segments(1, topic)
    assert len(all_of(system.bootstrap, topic)) == 102


def test_s15_both_followers_pause_and_records_flow_meanwhile(system: System, topic: str) -> None:
    """Paused for longer than the lag allows, while many records are written: nothing is lost, all are in sync again."""
    system.eyes().create(topic, replicas=[1, 2, 4])
    system.pause(2, 4)
    writer = Writer(system.bootstrap, "all", enable_idempotence=True)
    offsets = writer.write_safely(topic, *(f"{number:01000}" for number in range(3000)))
    assert offsets == list(range(3000))
    system.wait_in_sync(topic, {1})
    system.resume(2, 4)
    system.wait_in_sync(topic, {1, 2, 4})
    assert system.segments(1, topic) == system.segments(2, topic) == system.segments(4, topic)


def test_s16_a_record_is_seen_when_every_in_sync_replica_has_it(system: System, topic: str) -> None:
    """The leader has it and has said so. It is committed when those who lack it are not in sync any more."""
    system.eyes().create(topic, replicas=[1, 2, 4])
    Writer(system.bootstrap, "all").write_safely(topic, "committed")
    with Reader(system.bootstrap, topic) as reader:
        assert reader.read(1) == ["committed"]
        began = time.monotonic()
        system.pause(2, 4)
        assert Writer(system.bootstrap, "1").write_safely(topic, "uncommitted") == [1]
        ends, seen = [reader.end()], reader.read_some(0.1)
        if time.monotonic() - began < LAG_SECONDS / 2:
            assert ends == [1] and seen == [], "both followers are still in sync, and have it not"
        seen += reader.read(1 - len(seen))
        assert time.monotonic() - began > LAG_SECONDS / 2 and seen == ["uncommitted"]
        system.wait_in_sync(topic, {1})


def test_s14_who_stands_still_does_not_come_back_with_another(system: System, topic: str) -> None:
    """Two followers left together. One returns; the other is still where the watermark is, and says nothing."""
    system.eyes().create(topic, replicas=[1, 2, 4], config=SAFE)
    Writer(system.bootstrap, "all").write_safely(topic, "before")
    system.pause(2, 4)
    Writer(system.bootstrap, "1").write_safely(topic, "meanwhile")
    system.wait_in_sync(topic, {1})
    system.resume(2)
    seen = []
    wait_until(lambda: seen.append(system.place(topic).in_sync) or 2 in seen[-1], "broker 2 is back")
    assert seen[-1] == {1, 2}
    assert Writer(system.bootstrap, "all").write_safely(topic, "after") == [2]
    assert system.place(topic).in_sync == {1, 2}, "and nobody waited for broker 4"


def test_s16_below_min_isr_nothing_is_committed_until_it_heals(system: System, topic: str) -> None:
    system.eyes().create(topic, replicas=[1, 2, 4], config=SAFE)
    Writer(system.bootstrap, "all").write_safely(topic, "committed")
    with Reader(system.bootstrap, topic) as reader:
        assert reader.read(1) == ["committed"]
        system.pause(2, 4)
        assert Writer(system.bootstrap, "1").write_safely(topic, "uncommitted") == [1]
        system.wait_in_sync(topic, {1})
        assert reader.read_some(0.3) == [] and reader.end() == 1
        system.resume(2)
        assert reader.read(1) == ["uncommitted"] and reader.end() == 2
