"""A quorum of one: a real leader, with epochs, votes on disk, and nothing committed that is not flushed."""

import json
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from klamm.config import BrokerConfig
from klamm.errors import ErrorCode, KafkaError
from klamm.facts import Fact
from klamm.ids import Now, uuid_text
from klamm.metadata import records as metadata_records
from klamm.metadata.records import ConfigRecord, FeatureLevelRecord, MetadataRecord, NoOpRecord, TopicRecord
from klamm.quorum.election import Election, UnreadableElection, read_election, write_election
from klamm.quorum.facts import LeaderElected
from klamm.quorum.identity import NodeIdentity, ReplicaKey
from klamm.quorum.messages import BeginEpoch, EndEpoch, LogPosition, VoteRequest
from klamm.quorum.raft import DIRECTORY, REPLAY_BYTES, Raft, UnreadableMetadata
from klamm.quorum.ready import CommittedBatch
from klamm.quorum.voters import Voter, Voters
from klamm.records.batch import batches
from klamm.records.builder import BatchBuilder
from klamm.records.control import KRaftVersion, LeaderChange, quorum_record_of
from klamm.records.control import Voters as VotersRecord
from klamm.records.record import records_of
from klamm.sim.disk import Disk

NODE = 3
HOME = bytes(range(1, 17))
STATE = f"{DIRECTORY}/quorum-state"
NOW = Now(1000.0, 1_700_000_000_000)
CONFIG = BrokerConfig.from_properties([], {"node.id": str(NODE)})


IDENTITY = NodeIdentity(NODE, HOME, "a-cluster")
ALONE = Voters.of([Voter(NODE)])


def opened(disk: Disk, facts: list[Fact] | None = None, config: BrokerConfig = CONFIG) -> Raft:
    tell = (lambda fact: None) if facts is None else facts.append
    return Raft.open(config, IDENTITY, ALONE, disk, Random(1), NOW, clean=False, tell=tell)


def started(disk: Disk) -> tuple[Raft, list[CommittedBatch]]:
    raft = opened(disk)
    raft.start(NOW)
    return raft, settled(raft, disk)


def settled(raft: Raft, disk: Disk) -> list[CommittedBatch]:
    """Do what is asked until nothing is."""
    found = []
    while ready := raft.ready():
        if ready.flush is not None:
            disk.flush(ready.flush.files)
            raft.flushed(ready.flush.up_to)
        found += ready.committed
    return found


def told(committed: list[CommittedBatch]) -> list[MetadataRecord]:
    return [record for batch in committed for record in batch.records]


def topic(number: int) -> TopicRecord:
    return TopicRecord(name=f"topic-{number}", topic_id=number.to_bytes(16, "big"))


def test_a_new_quorum_begins_with_a_vote_for_itself_and_a_leader_change() -> None:
    disk, facts = Disk(), list[Fact]()
    raft = opened(disk, facts)
    raft.start(NOW)
    assert json.loads(disk.read_whole(STATE)) == {
        "leaderId": NODE,
        "leaderEpoch": 1,
        "votedId": NODE,
        "votedDirectoryId": uuid_text(HOME),
        "data_version": 1,
    }
    assert [fact for fact in facts if isinstance(fact, LeaderElected)] == [LeaderElected(NODE, 1, 0)]
    stored = bytes(disk.names[f"{DIRECTORY}/{0:020}.log"].content)
    ((_, batch),) = batches(stored)
    assert batch.is_control and batch.leader_epoch == 1
    change, version, voters = (quorum_record_of(record) for record in records_of(stored))
    assert isinstance(change, LeaderChange)
    assert (change.leader_id, [voter.voter_id for voter in change.voters]) == (NODE, [NODE])
    assert [voter.voter_id for voter in change.granting_voters] == [NODE]
    assert isinstance(version, KRaftVersion) and version.kraft_version == 1
    assert isinstance(voters, VotersRecord)
    assert [(each.voter_id, each.voter_directory_id) for each in voters.voters] == [(NODE, HOME)]


def test_nothing_is_committed_before_it_is_flushed() -> None:
    disk = Disk()
    raft, _ = started(disk)
    last = raft.propose([topic(1), topic(2)], NOW)
    ready = raft.ready()
    assert ready.flush is not None and ready.flush.up_to == last + 1 and ready.committed == []
    assert not raft.ready(), "one flush at a time, and nothing else to do meanwhile"
    disk.flush(ready.flush.files)
    raft.flushed(ready.flush.up_to)
    (batch,) = raft.ready().committed
    assert (batch.base_offset, batch.last_offset, batch.epoch) == (last - 1, last, 1)
    assert batch.records == [topic(1), topic(2)]
    assert raft.high_watermark == last + 1 and not raft.ready()


def test_what_is_proposed_while_the_disk_works_shares_the_next_flush() -> None:
    disk = Disk()
    raft, _ = started(disk)
    raft.propose([topic(1)], NOW)
    first = raft.ready().flush
    assert first is not None
    for number in range(2, 10):
        raft.propose([topic(number)], NOW)
    disk.flush(first.files)
    raft.flushed(first.up_to)
    ready = raft.ready()
    assert told(ready.committed) == [topic(1)]
    assert ready.flush is not None and ready.flush.up_to == raft.log.end_offset
    disk.flush(ready.flush.files)
    raft.flushed(ready.flush.up_to)
    ready = raft.ready()
    assert told(ready.committed) == [topic(number) for number in range(2, 10)] and ready.flush is None


def test_every_start_is_a_new_epoch_and_replays_everything() -> None:
    disk = Disk()
    raft, committed = started(disk)
    assert [(batch.base_offset, batch.epoch, list(batch.records)) for batch in committed] == [(0, 1, [])]
    assert committed[0].last_offset == 2
    raft.propose([topic(1), FeatureLevelRecord(name="metadata.version", feature_level=30)], NOW)
    settled(raft, disk)
    raft, committed = started(disk)
    assert [(batch.base_offset, batch.last_offset, batch.epoch) for batch in committed] == [
        (0, 2, 1),
        (3, 4, 1),
        (5, 5, 2),
    ]
    assert told(committed) == [topic(1), FeatureLevelRecord(name="metadata.version", feature_level=30)]
    assert raft.epoch == 2 and repr(raft) == "<quorum node=3 leader leader=3 epoch=2 log=0..6 committed=6 applied=6>"


def test_what_an_earlier_life_left_is_committed_by_the_flush_of_the_new_epochs_first_batch() -> None:
    """'Raft never commits log entries from previous terms by counting replicas.'"""
    disk = Disk()
    raft, _ = started(disk)
    raft.propose([topic(1)], NOW)
    # It is killed here: appended, perhaps not on the disk. The page cache survives a kill.
    again = opened(disk)
    again.start(NOW)
    ready = again.ready()
    assert ready.committed == [] and ready.flush is not None and ready.flush.up_to == 5
    disk.flush(ready.flush.files)
    again.flushed(ready.flush.up_to)
    assert told(settled(again, disk)) == [topic(1)]


def test_a_long_log_is_told_in_pieces() -> None:
    disk = Disk()
    raft, _ = started(disk)
    value = "v" * 1000
    proposed = [
        ConfigRecord(resource_type=4, name=f"name-{number}", value=value) for number in range(4 * REPLAY_BYTES // 1000)
    ]
    for record in proposed:
        raft.propose([record], NOW)
    settled(raft, disk)
    raft = opened(disk)
    raft.start(NOW)
    flush = raft.ready().flush
    assert flush is not None
    raft.flushed(flush.up_to)
    pieces = []
    while ready := raft.ready():
        pieces.append(told(ready.committed))
    assert len(pieces) >= 4
    assert [record for piece in pieces for record in piece] == proposed


def test_a_lost_quorum_state_does_not_bring_an_epoch_back() -> None:
    disk = Disk()
    for _ in range(3):
        started(disk)
    disk.remove(STATE)
    raft, _ = started(disk)
    assert raft.epoch == 4


def test_the_epoch_that_was_voted_in_counts_even_where_nothing_was_written_in_it() -> None:
    disk = Disk()
    started(disk)
    write_election(disk, DIRECTORY, Election(epoch=9, voted_id=NODE, voted_directory_id=HOME))
    raft, _ = started(disk)
    assert raft.epoch == 10


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"{}", b'{"leaderId":1,"leaderEpoch":2,"votedId":1,"data_version":7}', b"\xff"]
)
def test_a_vote_that_cannot_be_read_is_not_guessed(content: bytes) -> None:
    disk = Disk()
    disk.make_directory(DIRECTORY)
    disk.write_whole(STATE, content)
    with pytest.raises(UnreadableElection, match="quorum-state"):
        opened(disk).start(NOW)


def test_the_state_of_an_older_kafka_is_read() -> None:
    disk = Disk()
    disk.make_directory(DIRECTORY)
    old = {"clusterId": "", "leaderId": 1, "leaderEpoch": 2, "votedId": -1, "appliedOffset": 0, "currentVoters": []}
    disk.write_whole(STATE, json.dumps({**old, "data_version": 0}).encode())
    assert read_election(disk, DIRECTORY) == Election(epoch=2, leader_id=1)


def test_nobody_talks_a_quorum_of_one_out_of_leading() -> None:
    disk = Disk()
    raft, _ = started(disk)
    stranger = ReplicaKey(9, bytes(16))
    vote = raft.vote(VoteRequest(None, IDENTITY.key, stranger, 50, LogPosition(9, 1_000)), NOW)
    began = raft.begin_quorum_epoch(BeginEpoch(None, IDENTITY.key, 9, 50), NOW)
    ended = raft.end_quorum_epoch(EndEpoch(None, 9, 50), NOW)
    assert not vote.granted
    assert [reply.error for reply in (vote, began, ended)] == [ErrorCode.INCONSISTENT_VOTER_SET] * 3
    assert raft.is_active_leader and raft.epoch == 1


def test_a_failed_flush_ends_it() -> None:
    disk = Disk()
    raft, _ = started(disk)
    raft.propose([topic(1)], NOW)
    assert raft.ready().flush is not None
    raft.flush_failed("the disk is on fire")
    with pytest.raises(KafkaError) as refused:
        raft.propose([topic(2)], NOW)
    assert refused.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert not raft.ready() and raft.high_watermark == 3


def test_a_batch_larger_than_a_segment_is_refused_and_nothing_has_happened() -> None:
    disk = Disk()
    config = BrokerConfig.from_properties([], {"node.id": str(NODE), "metadata.log.segment.bytes": "8388608"})
    raft = opened(disk, config=config)
    raft.start(NOW)
    settled(raft, disk)
    value = "v" * 32_000
    with pytest.raises(KafkaError) as refused:
        raft.propose([ConfigRecord(name=str(number), value=value) for number in range(300)], NOW)
    assert refused.value.code == ErrorCode.RECORD_LIST_TOO_LARGE
    raft.propose([topic(1)], NOW)
    assert told(settled(raft, disk)) == [topic(1)]


def test_a_committed_record_that_cannot_be_understood_stops_the_node() -> None:
    disk = Disk()
    raft, _ = started(disk)
    builder = BatchBuilder()
    builder.append(None, b"\x01\x63\x00", NOW.wall_ms)
    raft.log.append_own(builder, raft.epoch, NOW)
    again = opened(disk)
    again.start(NOW)
    flush = again.ready().flush
    assert flush is not None
    again.flushed(flush.up_to)
    with pytest.raises(UnreadableMetadata, match=r"__cluster_metadata-0 at offset 3: .*type 99"):
        told(again.ready().committed)


@settings(deadline=None)
@given(st.integers(0, 2**32))
def test_what_was_told_as_committed_survives_any_crash(seed: int) -> None:
    """Flushes come late, and crashes at any point tear what was not flushed; what was applied is there afterwards."""
    random, disk = Random(seed), Disk()
    applied: list[MetadataRecord] = []
    proposed = 0
    for _ in range(4):
        raft = opened(disk)
        raft.start(NOW)
        replayed: list[MetadataRecord] = []
        flush = None
        for _ in range(random.randint(1, 25)):
            match random.choice(["propose", "propose", "ready", "flush"]):
                case "propose":
                    proposed += 1
                    raft.propose([topic(proposed), NoOpRecord()], NOW)
                case "ready":
                    ready = raft.ready()
                    flush = ready.flush or flush
                    replayed += told(ready.committed)
                case "flush" if flush is not None:
                    disk.flush(flush.files)
                    raft.flushed(flush.up_to)
                    flush = None
        if flush is not None and random.random() < 0.5:
            disk.flush(flush.files)
            raft.flushed(flush.up_to)
            replayed += told(raft.ready().committed)
        seen = min(len(applied), len(replayed))
        assert replayed[:seen] == applied[:seen], "history does not change"
        applied = max(applied, replayed, key=len)
        disk.crash(random)
    raft, committed = started(disk)
    survived = told(committed)
    assert survived[: len(applied)] == applied
    numbers = [int(record.name[6:]) for record in survived if isinstance(record, TopicRecord)]
    assert numbers == sorted(set(numbers)) and len(survived) == 2 * len(numbers), "batches survive whole"
    assert all(metadata_records.decode(metadata_records.encode(record)) == record for record in survived)
