"""S17 to S20: what an acknowledgement is worth. Not asserted from theory: records are lost here, and counted."""

import time
from threading import Event, Thread

from confluent_kafka import KafkaError

from tests.harness.waiting import wait_until
from tests.system.clients import Fate, Reader, Writer, all_of
from tests.system.running import LAG_SECONDS, System

SAFE = {"min.insync.replicas": "2"}


def test_s17_acks_0_loses_records_and_nobody_says_so(system: System, topic: str) -> None:
    """The leader stands still, and dies before it read what was sent to it."""
    system.eyes().create(topic, replicas=[1, 2, 4])
    Writer(system.bootstrap, "all").write_safely(topic, "before")
    problems: list[KafkaError] = []
    writer = Writer(system.bootstrap, "0", error_cb=problems.append)
    writer.write(topic, "connected")
    with Reader(system.bootstrap, topic) as reader:
        assert reader.read(2) == ["before", "connected"]
        system.pause(1)
        doomed = writer.write(topic, *(f"doomed {number}" for number in range(10)))
        assert [fate.error for fate in doomed] == [None] * 10, "each of them is told to be delivered"
        assert problems == [], "and nothing else is heard"
        system.kill(1)
        system.wait_led(topic, {2, 4})
        assert reader.end() == 2, "all ten are lost"
    system.start(1)
    system.wait_in_sync(topic, {1, 2, 4})
    assert all_of(system.bootstrap, topic) == ["before", "connected"], "for good"


def test_s18_acks_1_loses_what_the_followers_had_not_copied(system: System, topic: str) -> None:
    system.eyes().create(topic, replicas=[1, 2, 4], config=SAFE)
    Writer(system.bootstrap, "all").write_safely(topic, "before")
    system.pause(2, 4)
    writer = Writer(system.bootstrap, "1")
    # The followers' fetches are waiting at the leader already. This answers them; they read it when they wake up.
    writer.write_safely(topic, "last that was asked for")
    doomed = writer.write_safely(topic, *(f"doomed {number}" for number in range(10)))
    assert doomed == list(range(2, 12)), "acknowledged, each with its offset"
    system.kill(1)
    system.resume(2, 4)
    system.wait_led(topic, {2, 4})
    (after,) = Writer(system.bootstrap, "all").write_safely(topic, "after")
    assert after <= 2, "another record has an offset that was promised"
    values = all_of(system.bootstrap, topic)
    assert values[0] == "before" and values[after] == "after"
    assert not any(value.startswith("doomed") for value in values), "acknowledged and lost"


def test_s19_acks_all_is_answered_when_all_in_sync_replicas_have_it(system: System, topic: str) -> None:
    system.eyes().create(topic, replicas=[1, 2, 4])
    writer = Writer(system.bootstrap, "all")
    writer.write_safely(topic, "before")
    began = time.monotonic()
    system.pause(4)
    (fate,) = writer.send(topic, "waiting")
    writer.wait(0.2)
    was_open = fate.is_open
    if time.monotonic() - began < LAG_SECONDS / 2:
        assert was_open, "broker 4 is in sync, and has it not"
    system.resume(4)
    assert writer.wait(10) == 0 and fate.is_acknowledged
    assert b"waiting" in system.bytes_of(4, topic) or time.monotonic() - began > LAG_SECONDS / 2


def test_s19_acknowledged_records_survive_while_one_in_sync_replica_does(system: System, topic: str) -> None:
    """Two of three brokers die, one after the other, the leader each time."""
    system.eyes().create(topic, replicas=[1, 2, 4])
    writer = Writer(system.bootstrap, "all")
    written = ["three hold it"]
    writer.write_safely(topic, *written)
    left = {1, 2, 4}
    while len(left) > 1:
        leader = system.wait_led(topic, left)
        system.kill(leader)
        left.remove(leader)
        written.append(f"{len(left)} hold it")
        writer.write_safely(topic, written[-1])
        assert all_of(system.bootstrap, topic) == written


def test_s19_no_acknowledged_record_is_lost_when_leaders_are_killed_mid_stream(system: System, topic: str) -> None:
    system.eyes().create(topic, replicas=[1, 2, 4], config=SAFE)
    stream = Stream(system.bootstrap, topic)
    for _ in range(3):
        stream.wait_acknowledged(200)
        leader = system.wait_led(topic, {1, 2, 4})
        system.kill(leader)
        stream.wait_acknowledged(200)
        system.start(leader)
        system.wait_in_sync(topic, {1, 2, 4})
    fates = stream.end()
    assert [fate.error for fate in fates if fate.error] == []
    values = all_of(system.bootstrap, topic)
    lost = [fate for fate in fates if fate.is_acknowledged and values[fate.offset or 0] != fate.value.decode()]
    assert lost == []
    assert values == [fate.value.decode() for fate in fates], "none lost, none doubled, all in their order"


def test_s20_below_min_isr_acks_all_is_refused_and_the_rest_goes_on(system: System, topic: str) -> None:
    system.eyes().create(topic, replicas=[1, 2, 4], config=SAFE)
    careful = Writer(system.bootstrap, "all", retries=0)
    hasty = Writer(system.bootstrap, "1")
    careful.write_safely(topic, "three in sync")
    system.kill(2)
    system.wait_in_sync(topic, {1, 4})
    careful.write_safely(topic, "two in sync")
    system.kill(4)
    system.wait_in_sync(topic, {1})
    (refused,) = careful.write(topic, "refused")
    assert refused.error is not None and refused.error.code() == KafkaError.NOT_ENOUGH_REPLICAS
    assert all_of(system.bootstrap, topic) == ["three in sync", "two in sync"], "reads go on"
    assert hasty.write_safely(topic, "acks 1 goes on") == [2], "what was refused was not appended"
    system.start(2)
    system.wait_in_sync(topic, {1, 2})
    careful.write_safely(topic, "two again")
    assert all_of(system.bootstrap, topic)[2:] == ["acks 1 goes on", "two again"]


def test_s20_acks_all_by_a_default_client_waits_until_it_heals(system: System, topic: str) -> None:
    """The refusal is one that clients retry."""
    system.eyes().create(topic, replicas=[1, 2, 4], config={"min.insync.replicas": "3"})
    system.kill(2)
    system.wait_in_sync(topic, {1, 4})
    writer = Writer(system.bootstrap, "all")
    (fate,) = writer.send(topic, "patient")
    assert writer.wait(0.5) == 1 and fate.is_open
    system.start(2)
    assert writer.wait(20) == 0 and fate.offset == 0


class Stream:
    """Somebody who writes on and on, a record at a time, with acks=all and idempotence."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._writer = Writer(bootstrap, "all", enable_idempotence=True)
        self._topic = topic
        self._fates: list[Fate] = []
        self._enough = Event()
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def wait_acknowledged(self, more: int, within_seconds: float = 20.0) -> None:
        """Until so many more are."""
        wanted = self._writer.acknowledged + more
        wait_until(lambda: self._writer.acknowledged >= wanted, f"{more} more acknowledged", within_seconds)

    def end(self) -> list[Fate]:
        self._enough.set()
        self._thread.join(30)
        assert not self._thread.is_alive()
        assert self._writer.wait(20) == 0
        return self._fates

    def _run(self) -> None:
        while not self._enough.wait(0.001):
            self._fates += self._writer.send(self._topic, f"record {len(self._fates)}")
