"""S6 to S11: who is in the cluster, and who holds what, as any client learns it from any broker."""

import asyncio
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

import pytest
from aiokafka.admin import AIOKafkaAdminClient
from kafka import KafkaAdminClient

from tests.system.clients import Place, Writer, all_of
from tests.system.running import R1, R2, System

ORDERED = [0, 3, 1, 4, 2, 5]
TABLE = {
    # broker: leads, first follower of, second follower of
    "R1-B0": ([0, 6], [5], [4]),
    "R2-B3": ([1, 7], [0, 6], [5]),
    "R1-B1": ([2, 8], [1, 7], [0, 6]),
    "R2-B4": ([3, 9], [2, 8], [1, 7]),
    "R1-B2": ([4], [3, 9], [2, 8]),
    "R2-B5": ([5], [4], [3, 9]),
}


@pytest.fixture(scope="module")
def new_system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    """A new cluster whose first topic is `invoice`."""
    running = System(tmp_path_factory.mktemp("new") / "cluster")
    try:
        running.eyes().create("invoice", partitions=10, replication=3)
        yield running
    finally:
        running.close()


def test_s06_brokers_have_ids_and_racks(new_system: System) -> None:
    for broker in R1 + R2:
        racks = new_system.eyes(broker).racks()
        assert racks == {**dict.fromkeys(R1, "R1"), **dict.fromkeys(R2, "R2")}, f"as broker {broker} tells it"


def test_s07_the_list_of_brokers_alternates_the_racks(new_system: System) -> None:
    """One leader after the other: R1-B0, R2-B3, R1-B1, R2-B4, R1-B2, R2-B5, and from the beginning."""
    leaders = [place.leader for place in new_system.eyes().places("invoice")]
    assert leaders == ORDERED + ORDERED[:4]


def test_s08_invoice_is_placed_as_the_table_says(new_system: System) -> None:
    places = new_system.eyes().places("invoice")
    racks = new_system.eyes().racks()
    assert len(places) == 10 and sum(len(place.replicas) for place in places) == 30
    seen = {
        f"{racks[broker]}-B{broker}": tuple(
            [number for number, place in enumerate(places) if place.replicas[role] == broker] for role in range(3)
        )
        for broker in ORDERED
    }
    for broker, cells in TABLE.items():
        for heading, expected, found in zip(("leads", "first", "second"), cells, seen[broker], strict=True):
            assert found == expected, f"{broker}, {heading}"
    assert list(seen) == list(TABLE)
    assert all(place.leader == place.replicas[0] for place in places), "who stands first leads"


def test_s08_the_command_prints_the_table(new_system: System) -> None:
    command = [sys.executable, "-m", "klamm", "topic", "placement", "invoice", "--bootstrap", new_system.bootstrap]
    printed = subprocess.run(command, check=True, capture_output=True, text=True, timeout=30).stdout
    headings, *lines = printed.splitlines()
    columns = [headings.index(name) for name in ("broker", "leads", "first follower of", "second follower of")]
    rows = [[line[begin:end].split() for begin, end in pairwise([*columns, None])] for line in lines]
    expected = [[[broker], *([f"P{number}" for number in cell] for cell in cells)] for broker, cells in TABLE.items()]
    assert rows == expected


def test_s09_roles_are_even_topic_after_topic(new_system: System) -> None:
    """Leaders, first followers, second followers: per broker each differ by at most one, over all topics."""
    for replication, partitions in ((3, 1), (3, 4), (2, 5), (3, 7), (2, 9), (3, 13), (2, 1)):
        new_system.eyes().create(f"even-{replication}-{partitions}", partitions, replication)
        everything = _places_by_replication(new_system)[replication]
        for role in range(replication):
            held = Counter(dict.fromkeys(ORDERED, 0))
            held.update(place.replicas[role] for place in everything)
            assert max(held.values()) - min(held.values()) <= 1, f"replica {role} of {replication}: {held}"


def test_s10_replicas_are_on_different_brokers_and_in_both_racks(new_system: System) -> None:
    new_system.eyes().create("spread-2", 8, 2)
    new_system.eyes().create("spread-5", 8, 5)
    for places in _places_by_replication(new_system).values():
        for place in places:
            assert len(set(place.replicas)) == len(place.replicas)
            in_first = len(set(place.replicas) & set(R1))
            assert in_first in (len(place.replicas) // 2, (len(place.replicas) + 1) // 2), place


@pytest.mark.parametrize("rack", [R1, R2], ids=["R1", "R2"])
def test_s10_a_whole_rack_goes_and_every_partition_has_a_leader(system: System, rack: Sequence[int]) -> None:
    system.eyes().create("of-3", partitions=10, replication=3)
    system.eyes().create("of-2", partitions=7, replication=2)
    before = Writer(system.bootstrap, "all")
    for partition in range(7):
        before.write_safely("of-3", "before", partition=partition)
        before.write_safely("of-2", "before", partition=partition)
    system.kill(*rack)
    for topic in ("of-3", "of-2"):
        system.wait_places(topic, lambda place: place.leader in set(R1 + R2) - set(rack), "led in the other rack", 15.0)
        for partition in range(7):
            before.write_safely(topic, "after", partition=partition)
            assert all_of(system.bootstrap, topic, partition) == ["before", "after"]


def test_s11_every_broker_tells_every_client_the_same(new_system: System) -> None:
    expected = new_system.eyes().places("invoice")
    assert all(place.in_sync == set(place.replicas) for place in expected)
    for broker in R1 + R2:
        address = new_system.address(broker)
        assert new_system.eyes(broker).places("invoice") == expected, "confluent-kafka"
        assert _seen_by_kafka_python(address, "invoice") == expected, "kafka-python"
        assert asyncio.run(_seen_by_aiokafka(address, "invoice")) == expected, "aiokafka"


def _places_by_replication(system: System) -> dict[int, list[Place]]:
    found: dict[int, list[Place]] = {}
    for topic in sorted(system.eyes().topics()):
        for place in system.eyes().places(topic):
            found.setdefault(len(place.replicas), []).append(place)
    return found


def _seen_by_kafka_python(address: str, topic: str) -> list[Place]:
    admin = KafkaAdminClient(bootstrap_servers=address)
    try:
        (found,) = admin.describe_topics([topic])
    finally:
        admin.close()
    partitions = sorted(found["partitions"], key=lambda each: each["partition_index"])
    return [_place(each["leader_id"], each["replica_nodes"], each["isr_nodes"]) for each in partitions]


async def _seen_by_aiokafka(address: str, topic: str) -> list[Place]:
    admin = AIOKafkaAdminClient(bootstrap_servers=address)
    await admin.start()
    try:
        (found,) = await admin.describe_topics([topic])
    finally:
        await admin.close()
    partitions = sorted(found["partitions"], key=lambda each: each["partition"])
    return [_place(each["leader"], each["replicas"], each["isr"]) for each in partitions]


def _place(leader: int, replicas: list[int], in_sync: list[int]) -> Place:
    return Place(leader, tuple(replicas), frozenset(in_sync))
