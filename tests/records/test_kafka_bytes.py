"""The bytes of Kafka itself: batches that Kafka 4.3.1 built, kept in `kafka_4_3_1_batches.txt`, name and hex on a line.

They are what its `MemoryRecords` makes of the records below in every codec, of transaction markers, and of the
quorum's control records.
"""

from pathlib import Path

import pytest

from klamm.records.batch import InvalidBatch, intact
from klamm.records.builder import rebuilt
from klamm.records.compression import Codec
from klamm.records.control import (
    ControlType,
    EpochVoter,
    KRaftVersion,
    LeaderChange,
    QuorumRecord,
    SnapshotFooter,
    SnapshotHeader,
    SupportedVersions,
    Voter,
    VoterEndpoint,
    Voters,
    control_type_of,
    coordinator_epoch_of,
    end_transaction_marker,
    quorum_batch,
    quorum_record_of,
)
from klamm.records.record import Record, records_of

from .made import NOON

LINES = (Path(__file__).parent / "kafka_4_3_1_batches.txt").read_text().splitlines()
KAFKAS = {name: bytearray.fromhex(text) for name, text in (line.split() for line in LINES)}

RECORDS = [
    Record(100, NOON, b"first", b"one", (("trace", b"abc"), ("nothing", None))),
    Record(101, NOON + 500, None, b"two"),
    Record(102, NOON - 1000, b"third", None),
    Record(103, NOON + 100, b"fourth", b"x" * 1000),
]
DIRECTORY = bytes(7) + b"\x01" + bytes(7) + b"\x02"
QUORUM_RECORDS: dict[str, QuorumRecord] = {
    "leader_change_0": LeaderChange(
        leader_id=1, voters=[EpochVoter(voter_id=1), EpochVoter(voter_id=2)], granting_voters=[EpochVoter(voter_id=1)]
    ),
    "snapshot_header": SnapshotHeader(last_contained_log_timestamp=NOON - 1000),
    "snapshot_footer": SnapshotFooter(),
    "kraft_version": KRaftVersion(kraft_version=1),
    "kraft_voters": Voters(
        voters=[
            Voter(
                voter_id=1,
                voter_directory_id=DIRECTORY,
                endpoints=[VoterEndpoint(name="CONTROLLER", host="localhost", port=9093)],
                kraft_version_feature=SupportedVersions(max_supported_version=1),
            )
        ]
    ),
}


@pytest.mark.parametrize("codec", list(Codec))
def test_we_read_kafkas_records_in_every_codec(codec: Codec) -> None:
    built = KAFKAS[codec.name.lower()]
    header = intact(memoryview(built))
    assert header.codec is codec
    assert (header.base_offset, header.last_offset, header.leader_epoch) == (100, 103, 5)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 2, 40)
    assert (header.base_timestamp, header.max_timestamp) == (NOON, NOON + 500)
    assert list(records_of(built)) == RECORDS


@pytest.mark.parametrize("codec", list(Codec))
def test_rebuilding_kafkas_uncompressed_gives_kafkas_bytes(codec: Codec) -> None:
    built = KAFKAS[codec.name.lower()]
    assert rebuilt(built, records_of(built), Codec.NONE) == KAFKAS["none"]


def test_kafkas_transactional_batch() -> None:
    assert intact(memoryview(KAFKAS["transactional"])).is_transactional


@pytest.mark.parametrize(("name", "commit"), [("marker_commit", True), ("marker_abort", False)])
def test_transaction_markers_are_kafkas_to_the_byte(name: str, commit: bool) -> None:
    built = end_transaction_marker(
        7, 2, commit=commit, coordinator_epoch=11, timestamp=NOON, base_offset=9, leader_epoch=3
    )
    assert built == KAFKAS[name]
    header = intact(memoryview(built))
    assert header.is_control
    assert header.is_transactional
    (marker,) = records_of(built)
    assert control_type_of(marker) is (ControlType.COMMIT if commit else ControlType.ABORT)
    assert coordinator_epoch_of(marker) == 11
    assert quorum_record_of(marker) is None


@pytest.mark.parametrize("name", QUORUM_RECORDS)
def test_quorum_records_are_kafkas_to_the_byte(name: str) -> None:
    built = quorum_batch([QUORUM_RECORDS[name]], timestamp=NOON, leader_epoch=3)
    assert built == KAFKAS[name]
    (record,) = records_of(built)
    assert quorum_record_of(record) == QUORUM_RECORDS[name]


def test_a_leader_change_with_directories() -> None:
    change = LeaderChange(version=1, leader_id=1, voters=[EpochVoter(voter_id=1, voter_directory_id=DIRECTORY)])
    (record,) = records_of(quorum_batch([change], timestamp=NOON))
    assert quorum_record_of(record) == change


def test_several_quorum_records_in_one_batch() -> None:
    change, version = LeaderChange(leader_id=1), KRaftVersion(kraft_version=1)
    built = quorum_batch([change, version], timestamp=NOON, base_offset=30)
    assert [(record.offset, quorum_record_of(record)) for record in records_of(built)] == [(30, change), (31, version)]


def test_a_type_we_do_not_know_is_unknown_and_nothing_worse() -> None:
    record = Record(0, NOON, b"\x00\x00\x00\x63", b"")
    assert control_type_of(record) is ControlType.UNKNOWN
    assert quorum_record_of(record) is None


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b""),
        (b"\x00\x00", b""),
        (b"\xff\xff\x00\x02", b""),
        (b"\x00\x00\x00\x02", None),
        (b"\x00\x00\x00\x02", b"\x00"),
        (b"\x00\x00\x00\x02", b"\x00\x07"),
        (b"\x00\x00\x00\x02", b"\xff\xff"),
        (b"\x00\x00\x00\x02", b"\x00\x00\x00\x00"),
    ],
)
def test_damaged_control_records_are_refused(key: bytes | None, value: bytes | None) -> None:
    with pytest.raises(InvalidBatch):
        quorum_record_of(Record(0, NOON, key, value))


@pytest.mark.parametrize("value", [None, b"\x00\x00\x00", b"\xff\xff\x00\x00\x00\x00"])
def test_damaged_markers_are_refused(value: bytes | None) -> None:
    with pytest.raises(InvalidBatch):
        coordinator_epoch_of(Record(0, NOON, b"\x00\x00\x00\x01", value))
