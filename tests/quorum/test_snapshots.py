"""Snapshots: written in slices, whole or not there, fetched by who is too far behind; then the log before may go."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from klamm.config import BrokerConfig
from klamm.facts import Fact
from klamm.metadata.records import ConfigRecord, MetadataRecord
from klamm.quorum.facts import SnapshotFetched, SnapshotTaken, SnapshotUnreadable
from klamm.quorum.identity import NodeIdentity
from klamm.quorum.messages import SnapshotId
from klamm.quorum.raft import Raft, UnreadableMetadata
from klamm.quorum.snapshot import SLICE_BYTES, file_name, snapshot_of
from klamm.quorum.voters import Voter, Voters
from klamm.sim.disk import Disk
from tests.quorum.checks import Checks
from tests.quorum.test_stories import elected, others, running
from tests.quorum.world import World


@settings(deadline=None)
@given(st.integers(0, 2**63 - 1), st.integers(0, 2**31 - 1))
def test_names_are_kafkas(end_offset: int, epoch: int) -> None:
    snapshot = SnapshotId(end_offset, epoch)
    assert snapshot_of(file_name(snapshot)) == snapshot


def test_other_names_are_no_snapshots() -> None:
    assert file_name(SnapshotId(21, 3)) == "00000000000000000021-0000000003.checkpoint"
    names = ["00000000000000000021.log", "quorum-state", "21-3.checkpoint", file_name(SnapshotId(21, 3)) + ".part"]
    assert [snapshot_of(name) for name in names] == [None] * 4


def test_who_restarts_begins_with_its_snapshot() -> None:
    world, leader = running()
    for _ in range(5):
        world.propose(leader)
    world.run(100)
    follower = others(world, leader)[0]
    world.take_snapshot(follower)
    world.run(100)
    assert SnapshotTaken in map(type, world.nodes[follower].facts)
    later = world.propose(leader)
    world.run(100)
    before = world.nodes[follower].applied
    world.kill(follower)
    world.start(follower)
    assert world.nodes[follower].applied == before[:-1], "what the snapshot holds is there before anybody was asked"
    world.run(1_000)
    assert world.nodes[follower].applied == before and before[-1] == later


def compacted(world: World, node_id: int) -> None:
    """Take two snapshots, and let everything before the second go."""
    for _ in range(2):
        world.propose(node_id)
        world.run(100)
        world.take_snapshot(node_id)
        world.run(100)
    world.nodes[node_id].alive._clean_ms = 0
    world.nodes[node_id].alive.tick(world.now)
    world.settle(world.nodes[node_id])
    assert world.nodes[node_id].alive.log.start_offset > 0


def test_who_is_too_far_behind_fetches_a_snapshot_in_pieces() -> None:
    properties = {"metadata.max.retention.bytes": "0", "controller.quorum.fetch.snapshot.max.bytes": "100"}
    world = World(properties=properties)
    Checks(world)
    world.start()
    leader = elected(world)
    world.run(200)
    away = others(world, leader)[0]
    world.kill(away)
    compacted(world, leader)
    world.start(away)
    world.run(2_000)
    assert SnapshotFetched in map(type, world.nodes[away].facts)
    assert world.nodes[away].applied == world.nodes[leader].applied
    assert world.nodes[away].alive.voters == world.nodes[leader].alive.voters
    record = world.propose(leader)
    world.run(100)
    assert record in world.nodes[away].applied


def test_a_node_that_began_with_a_snapshot_can_lead() -> None:
    world = World(properties={"metadata.max.retention.bytes": "0"})
    Checks(world)
    world.start()
    leader = elected(world)
    world.run(200)
    away, other = others(world, leader)
    world.kill(away)
    compacted(world, leader)
    world.start(away)
    world.run(1_000)
    world.kill(leader)
    world.isolate(other)
    world.run(2_000)
    world.heal()
    world.run(2_000)
    successor = elected(world)
    record = world.propose(successor)
    world.start(leader)
    world.run(2_000)
    assert all(record in node.applied for node in world.nodes.values())


# One node, and the files themselves.


def alone(disk: Disk, facts: list[Fact], properties: dict[str, str] | None = None) -> Raft:
    world = World()
    raft = Raft.open(
        BrokerConfig.from_properties([], {"node.id": "0", **(properties or {})}),
        NodeIdentity(0, bytes(range(16)), "a-cluster"),
        Voters.of([Voter(0)]),
        disk,
        Random(1),
        world.now,
        clean=False,
        tell=facts.append,
    )
    raft.start(world.now)
    return raft


def settled(raft: Raft, disk: Disk) -> list[MetadataRecord]:
    """Flush and apply until nothing is left."""
    found: list[MetadataRecord] = []
    while ready := raft.ready():
        if ready.flush is not None:
            disk.flush(ready.flush.files)
            raft.flushed(ready.flush.up_to)
        if ready.snapshot is not None:
            found = list(ready.snapshot.records)
        for batch in ready.committed:
            found += batch.records
    return found


def written(disk: Disk, count: int = 200) -> tuple[list[MetadataRecord], list[Fact]]:
    """A log of one node with a snapshot of all there is."""
    facts: list[Fact] = []
    raft, now = alone(disk, facts), World().now
    records: list[MetadataRecord] = [ConfigRecord(4, "", f"name-{each}", "v" * 1_000) for each in range(count)]
    for record in records:
        raft.propose([record], now)
    assert settled(raft, disk) == records
    raft.take_snapshot(records, raft.high_watermark - 1, raft.epoch, now)
    slices = 0
    while not any(isinstance(fact, SnapshotTaken) for fact in facts):
        assert raft.next_deadline_ms == now.monotonic_ms, "it goes on at once"
        raft.tick(now)
        slices += 1
    assert slices >= 1_000 * count / SLICE_BYTES
    return records, facts


def test_a_snapshot_is_written_in_slices_and_read_again() -> None:
    disk = Disk()
    records, _ = written(disk)
    facts: list[Fact] = []
    assert settled(alone(disk, facts), disk) == records


def test_a_damaged_snapshot_is_left_aside_while_the_log_has_everything() -> None:
    disk = Disk()
    records, _ = written(disk)
    name = next(name for name in disk.names if name.endswith(".checkpoint"))
    disk.names[name].content[5_000] ^= 1
    facts: list[Fact] = []
    assert settled(alone(disk, facts), disk) == records
    assert any(isinstance(fact, SnapshotUnreadable) for fact in facts) and name not in disk.names


def test_a_log_that_begins_after_every_snapshot_is_not_opened() -> None:
    disk = Disk()
    facts: list[Fact] = []
    raft, now = alone(disk, facts, {"metadata.max.retention.bytes": "0"}), World().now
    applied: list[MetadataRecord] = []
    for number in range(2):
        raft.propose([ConfigRecord(4, "", f"name-{number}", "v")], now)
        applied += settled(raft, disk)
        raft.take_snapshot(applied, raft.high_watermark - 1, raft.epoch, now)
        raft.tick(now)
        raft.tick(now)
    raft._clean_ms = 0
    raft.tick(now)
    assert raft.log.start_offset > 0
    name = next(name for name in disk.names if name.endswith(".checkpoint"))
    disk.names[name].content[100] ^= 1
    with pytest.raises(UnreadableMetadata, match="no snapshot reaches that far"):
        alone(disk, facts)


def test_a_snapshot_is_wanted_when_enough_was_written_or_enough_time_has_passed() -> None:
    disk, facts = Disk(), list[Fact]()
    raft, now = alone(disk, facts, {"metadata.log.max.record.bytes.between.snapshots": "5000"}), World().now
    settled(raft, disk)
    assert not raft.wants_snapshot(now)
    for number in range(5):
        raft.propose([ConfigRecord(4, "", f"name-{number}", "v" * 1_000)], now)
    settled(raft, disk)
    assert raft.wants_snapshot(now)
    raft.take_snapshot([], raft.high_watermark - 1, raft.epoch, now)
    assert not raft.wants_snapshot(now), "one at a time"
    for _ in range(2):
        raft.tick(now)
    assert not raft.wants_snapshot(now)
    much_later = now._replace(monotonic_ms=now.monotonic_ms + 3_600_001)
    assert not raft.wants_snapshot(much_later), "nothing is new"
    raft.propose([ConfigRecord(4, "", "name", "v")], now)
    settled(raft, disk)
    assert raft.wants_snapshot(much_later) and not raft.wants_snapshot(now)


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**32))
def test_a_crash_while_a_snapshot_is_written_or_cleaned_up_loses_nothing(seed: int) -> None:
    random, disk, facts = Random(seed), Disk(), list[Fact]()
    records: list[MetadataRecord] = []
    now = World().now
    for life in range(3):
        raft = alone(disk, facts, {"metadata.max.retention.bytes": "0"})
        assert settled(raft, disk) == records
        for _ in range(random.randint(1, 6)):
            records.append(ConfigRecord(4, "", f"name-{life}-{len(records)}", "v" * random.choice([10, 20_000])))
            raft.propose([records[-1]], now)
            settled(raft, disk)
            if raft._writer is None and random.random() < 0.7:
                raft.take_snapshot(list(records), raft.high_watermark - 1, raft.epoch, now)
            for _ in range(random.randint(0, 3)):
                raft._clean_ms = random.choice([0, 10**9])
                raft.tick(now)
        disk.crash(random)
    assert settled(alone(disk, facts), disk) == records
