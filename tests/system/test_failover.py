"""S21 and S22: a leader fails, a follower takes over, clients go on; the broker returns and is what it was before."""

import asyncio

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from tests.system.clients import Place, Reader, Writer, all_of
from tests.system.running import System

SAFE = {"min.insync.replicas": "2"}


def test_s21_broker_1_dies_and_the_follower_on_broker_2_leads(system: System, topic: str) -> None:
    """The same producer and the same consumer go on, and were told nothing."""
    system.eyes().create(topic, replicas=[1, 2])
    writer = Writer(system.bootstrap, "all")
    with Reader(system.bootstrap, topic) as reader:
        writer.write_safely(topic, "before")
        assert reader.read(1) == ["before"] and system.place(topic).leader == 1
        system.kill(1)
        writer.write_safely(topic, "after")
        assert reader.read(1) == ["after"]
    system.wait_in_sync(topic, {2})
    assert system.place(topic) == Place(leader=2, replicas=(1, 2), in_sync=frozenset({2}))


def test_s21_kafka_python_goes_on(system: System, topic: str) -> None:
    system.eyes().create(topic, replicas=[1, 2, 4])
    producer = KafkaProducer(bootstrap_servers=system.bootstrap, acks="all")
    consumer = KafkaConsumer(bootstrap_servers=system.bootstrap, auto_offset_reset="earliest")
    try:
        consumer.assign([TopicPartition(topic, 0)])
        for value in (b"before", b"after"):
            assert producer.send(topic, value, partition=0).get(timeout=20).partition == 0
            assert next(consumer).value == value
            if value == b"before":
                system.kill(1)
    finally:
        producer.close(timeout=5)
        consumer.close(autocommit=False)


def test_s21_aiokafka_goes_on(system: System, topic: str) -> None:
    system.eyes().create(topic, replicas=[1, 2, 4])

    async def story() -> None:
        place = TopicPartition(topic, 0)
        async with AIOKafkaProducer(bootstrap_servers=system.bootstrap, acks="all") as producer:
            consumer = AIOKafkaConsumer(bootstrap_servers=system.bootstrap, auto_offset_reset="earliest")
            async with consumer:
                consumer.assign([place])
                for value in (b"before", b"after"):
                    await asyncio.wait_for(producer.send_and_wait(topic, value, partition=0), 20)
                    assert (await asyncio.wait_for(consumer.getone(), 20)).value == value
                    if value == b"before":
                        system.kill(1)

    asyncio.run(story())


def test_s21_who_was_not_in_sync_does_not_lead(system: System, topic: str) -> None:
    """Broker 4 lives and leads fewer partitions than broker 2, but it lacks a record."""
    system.eyes().create(topic, replicas=[1, 2, 4])
    system.eyes().create(f"{topic}-ballast", replicas=[2])
    writer = Writer(system.bootstrap, "all")
    # It has to know the cluster by then: a client that begins with the broker that is paused waits for it for long.
    writer.write_safely(topic, "on all")
    system.pause(4)
    writer.write_safely(topic, "not on 4")
    system.wait_in_sync(topic, {1, 2})
    system.kill(1)
    system.resume(4)
    assert system.wait_led(topic, {2, 4}) == 2
    assert all_of(system.bootstrap, topic) == ["on all", "not on 4"]


def test_s21_a_dead_brokers_load_spreads(system: System, topic: str) -> None:
    """The in-sync follower that leads the fewest partitions takes over: two thirds do not go to one broker."""
    system.eyes().create(topic, partitions=30, replication=3)
    system.kill(1)
    places = system.eyes().places(topic)
    system.wait_places(topic, lambda place: place.leader in {0, 2, 3, 4, 5}, "all led", 15.0)
    places = system.eyes().places(topic)
    leads = [sum(place.leader == broker for place in places) for broker in (0, 2, 3, 4, 5)]
    assert sum(leads) == 30 and max(leads) <= 8, leads


def test_s22_a_broker_returns_truncates_and_leads_again(system: System, topic: str) -> None:
    system.eyes().create(topic, replicas=[1, 2, 4], config=SAFE)
    careful = Writer(system.bootstrap, "all")
    careful.write_safely(topic, "before")
    system.pause(2, 4)
    hasty = Writer(system.bootstrap, "1")
    # Fetches of the followers wait at the leader: the first record they will have, and no more.
    hasty.write_safely(topic, "asked for already")
    hasty.write_safely(topic, "never committed")
    system.kill(1)
    system.resume(2, 4)
    system.wait_led(topic, {2, 4})
    (after,) = careful.write_safely(topic, "after")
    assert after <= 2 and b"never committed" in system.bytes_of(1, topic)
    system.start(1)
    system.wait_in_sync(topic, {1, 2, 4})
    assert system.segments(1, topic) == system.segments(2, topic) == system.segments(4, topic)
    assert b"never committed" not in system.bytes_of(1, topic), "truncated"
    system.wait_healed(topic)
    assert system.place(topic).leader == 1, "preferred leadership returned"
    assert careful.write_safely(topic, "led by 1 again") == [after + 1]
    assert all_of(system.bootstrap, topic)[after:] == ["after", "led by 1 again"]


def test_s22_a_broker_returns_to_much_that_it_missed(system: System, topic: str) -> None:
    """Twenty megabytes over six partitions, then in sync everywhere, and leading where it is preferred."""
    system.eyes().create(topic, partitions=6, replication=3)
    system.kill(1)
    writer = Writer(system.bootstrap, "all", linger_ms=5, compression_type="none")
    for partition in range(6):
        writer.send(topic, *("x" * 10_000 for _ in range(330)), partition=partition)
    assert writer.wait(30) == 0
    system.start(1)
    system.wait_healed(topic)
    for partition, place in enumerate(system.eyes().places(topic)):
        if 1 in place.replicas:
            copies = [system.segments(broker, topic, partition) for broker in place.replicas]
            assert copies[0] == copies[1] == copies[2]
            assert sum(map(len, copies[0].values())) > 3_300_000


def test_s22_a_paused_leader_returns_as_a_zombie_and_is_fenced(system: System, topic: str) -> None:
    """It was deposed while it stood still. Whoever writes goes to the new leader, and nothing acknowledged is gone."""
    system.eyes().create(topic, replicas=[1, 2, 4], config=SAFE)
    # How long a client waits for a broker that stands still is the client's choice: half a minute by default.
    writer = Writer(system.bootstrap, "all", request_timeout_ms=1000, socket_timeout_ms=1000)
    writer.write_safely(topic, "before")
    system.pause(1)
    system.wait_led(topic, {2, 4})
    writer.write_safely(topic, "after")
    system.resume(1)
    system.wait_healed(topic)
    assert writer.write_safely(topic, "led by 1 again") == [2]
    assert all_of(system.bootstrap, topic) == ["before", "after", "led by 1 again"]
    assert system.segments(1, topic) == system.segments(2, topic) == system.segments(4, topic)
