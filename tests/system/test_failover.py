"""S21 and S22: a leader fails, a follower takes over, clients go on; the broker returns and is what it was before."""

import asyncio

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from tests.harness.waiting import wait_until
from tests.system.clients import Reader, Writer, all_of
from tests.system.running import System

SAFE = {"min.insync.replicas": "2"}


def test_s21_broker_1_dies_and_the_follower_on_broker_2_leads(system: System) -> None:
    """The same producer and the same consumer go on, and were told nothing."""
    system.eyes().create("invoice", replicas=[1, 2])
    writer = Writer(system.bootstrap, "all")
    with Reader(system.bootstrap, "invoice") as reader:
        writer.write_safely("invoice", "before")
        assert reader.read(1) == ["before"] and system.place("invoice").leader == 1
        system.kill(1)
        writer.write_safely("invoice", "after")
        assert reader.read(1) == ["after"]
    place = system.place("invoice")
    assert place.leader == 2 and place.in_sync == {2} and place.replicas == (1, 2)


def test_s21_kafka_python_goes_on(system: System) -> None:
    system.eyes().create("invoice", replicas=[1, 2, 4])
    producer = KafkaProducer(bootstrap_servers=system.bootstrap, acks="all")
    consumer = KafkaConsumer(bootstrap_servers=system.bootstrap, auto_offset_reset="earliest")
    try:
        consumer.assign([TopicPartition("invoice", 0)])
        for value in (b"before", b"after"):
            assert producer.send("invoice", value, partition=0).get(timeout=20).partition == 0
            assert next(consumer).value == value
            if value == b"before":
                system.kill(1)
    finally:
        producer.close(timeout=5)
        consumer.close(autocommit=False)


def test_s21_aiokafka_goes_on(system: System) -> None:
    system.eyes().create("invoice", replicas=[1, 2, 4])

    async def story() -> None:
        place = TopicPartition("invoice", 0)
        async with AIOKafkaProducer(bootstrap_servers=system.bootstrap, acks="all") as producer:
            consumer = AIOKafkaConsumer(bootstrap_servers=system.bootstrap, auto_offset_reset="earliest")
            async with consumer:
                consumer.assign([place])
                for value in (b"before", b"after"):
                    await asyncio.wait_for(producer.send_and_wait("invoice", value, partition=0), 20)
                    assert (await asyncio.wait_for(consumer.getone(), 20)).value == value
                    if value == b"before":
                        system.kill(1)

    asyncio.run(story())


def test_s21_who_was_not_in_sync_does_not_lead(system: System) -> None:
    """Broker 4 lives and leads fewer partitions than broker 2, but it lacks a record."""
    system.eyes().create("invoice", replicas=[1, 2, 4])
    system.eyes().create("ballast", replicas=[2])
    writer = Writer(system.bootstrap, "all")
    system.pause(4)
    writer.write_safely("invoice", "not on 4")
    system.wait_in_sync("invoice", {1, 2})
    system.kill(1)
    system.resume(4)
    assert system.wait_led("invoice", {2, 4}) == 2
    assert all_of(system.bootstrap, "invoice") == ["not on 4"]


def test_s21_a_dead_brokers_load_spreads(system: System) -> None:
    """The in-sync follower that leads the fewest partitions takes over: two thirds do not go to one broker."""
    system.eyes().create("invoice", partitions=30, replication=3)
    system.kill(1)
    places = system.eyes().places("invoice")
    system.wait_places("invoice", lambda place: place.leader in {0, 2, 3, 4, 5}, "all led", 15.0)
    places = system.eyes().places("invoice")
    leads = [sum(place.leader == broker for place in places) for broker in (0, 2, 3, 4, 5)]
    assert sum(leads) == 30 and max(leads) <= 8, leads


def test_s22_a_broker_returns_truncates_and_leads_again(system: System) -> None:
    system.eyes().create("invoice", replicas=[1, 2, 4], config=SAFE)
    careful = Writer(system.bootstrap, "all")
    careful.write_safely("invoice", "before")
    system.pause(2, 4)
    Writer(system.bootstrap, "1").write_safely("invoice", "never committed", "nor this")
    system.kill(1)
    system.resume(2, 4)
    system.wait_led("invoice", {2, 4})
    assert careful.write_safely("invoice", "after") == [1]
    assert b"never committed" in b"".join(system.segments(1, "invoice").values())
    system.start(1)
    system.wait_in_sync("invoice", {1, 2, 4})
    assert system.segments(1, "invoice") == system.segments(2, "invoice") == system.segments(4, "invoice")
    assert b"never committed" not in b"".join(system.segments(1, "invoice").values()), "truncated"
    system.wait_healed("invoice")
    assert system.place("invoice").leader == 1, "preferred leadership returned"
    assert careful.write_safely("invoice", "led by 1 again") == [2]
    assert all_of(system.bootstrap, "invoice") == ["before", "after", "led by 1 again"]


def test_s22_a_broker_returns_to_much_that_it_missed(system: System) -> None:
    """Twenty megabytes over six partitions, then in sync everywhere, and leading where it is preferred."""
    system.eyes().create("invoice", partitions=6, replication=3)
    system.kill(1)
    writer = Writer(system.bootstrap, "all", linger_ms=5, compression_type="none")
    for partition in range(6):
        writer.send("invoice", *("x" * 10_000 for _ in range(330)), partition=partition)
    assert writer.wait(30) == 0
    system.start(1)
    system.wait_healed("invoice")
    for partition, place in enumerate(system.eyes().places("invoice")):
        if 1 in place.replicas:
            copies = [system.segments(broker, "invoice", partition) for broker in place.replicas]
            assert copies[0] == copies[1] == copies[2]
            assert sum(map(len, copies[0].values())) > 3_300_000


def test_s22_a_paused_leader_returns_as_a_zombie_and_is_fenced(system: System) -> None:
    """It was deposed meanwhile. What it was sent as a zombie is refused or lost with acks=1, never with acks=all."""
    system.eyes().create("invoice", replicas=[1, 2, 4], config=SAFE)
    writer = Writer(system.bootstrap, "all")
    writer.write_safely("invoice", "before")
    system.pause(1)
    wait_until(lambda: system.eyes(2).places("invoice")[0].leader in {2, 4}, "another leads", 20.0)
    writer.write_safely("invoice", "after")
    system.resume(1)
    system.wait_healed("invoice")
    assert writer.write_safely("invoice", "led by 1 again") == [2]
    assert all_of(system.bootstrap, "invoice") == ["before", "after", "led by 1 again"]
    assert system.segments(1, "invoice") == system.segments(2, "invoice") == system.segments(4, "invoice")
