"""Our metadata records are Kafka's, byte for byte."""

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klamm.codec.primitives import Malformed
from klamm.metadata.records import (
    UNFENCE,
    BrokerEndpoint,
    BrokerFeature,
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    FeatureLevelRecord,
    MetadataRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
    UnregisterBrokerRecord,
    decode,
    encode,
)

TOPIC_ID = bytes(range(1, 17))
DIRECTORY_ID = bytes(range(17, 33))

WRITTEN_BY_KAFKA = {
    name: bytes.fromhex(text)
    for name, text in (
        line.split()
        for line in (Path(__file__).parent / "kafka_4_3_1_records.txt").read_text().splitlines()
        if not line.startswith("#")
    )
}

RECORDS: dict[str, MetadataRecord] = {
    "topic": TopicRecord(name="invoice", topic_id=TOPIC_ID),
    "partition": PartitionRecord(
        partition_id=3,
        topic_id=TOPIC_ID,
        replicas=[0, 3, 1],
        isr=[0, 3],
        leader=0,
        leader_epoch=2,
        partition_epoch=5,
        directories=[DIRECTORY_ID] * 3,
    ),
    "partition-reassigned": PartitionRecord(
        partition_id=0,
        topic_id=TOPIC_ID,
        replicas=[1, 2],
        isr=[2],
        removing_replicas=[1],
        adding_replicas=[2],
        leader=2,
        leader_recovery_state=1,
        leader_epoch=7,
        partition_epoch=9,
        directories=[DIRECTORY_ID] * 2,
        eligible_leader_replicas=[1],
        last_known_elr=[2],
    ),
    "partition-all-changed": PartitionChangeRecord(
        partition_id=3,
        topic_id=TOPIC_ID,
        isr=[3],
        leader=3,
        replicas=[3, 4],
        removing_replicas=[],
        adding_replicas=[4],
        leader_recovery_state=0,
        directories=[DIRECTORY_ID] * 2,
        eligible_leader_replicas=[4],
        last_known_elr=[3],
    ),
    "partition-leaderless": PartitionChangeRecord(partition_id=3, topic_id=TOPIC_ID, leader=-1),
    "remove-topic": RemoveTopicRecord(topic_id=TOPIC_ID),
    "config": ConfigRecord(resource_type=2, resource_name="invoice", name="retention.ms", value="86400000"),
    "config-taken-back": ConfigRecord(resource_type=4, name="log.retention.ms", value=None),
    "producer-ids": ProducerIdsRecord(broker_id=1, broker_epoch=42, next_producer_id=3000),
    "register-broker": RegisterBrokerRecord(
        broker_id=1,
        incarnation_id=TOPIC_ID,
        broker_epoch=42,
        end_points=[BrokerEndpoint(name="PLAINTEXT", host="127.0.0.1", port=61092)],
        features=[BrokerFeature(name="metadata.version", min_supported_version=7, max_supported_version=30)],
        rack="R1",
        log_dirs=[DIRECTORY_ID],
    ),
    "unregister-broker": UnregisterBrokerRecord(broker_id=1, broker_epoch=42),
    "unfence": BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=42, fenced=UNFENCE),
    "controlled-shutdown": BrokerRegistrationChangeRecord(
        broker_id=1, broker_epoch=42, in_controlled_shutdown=1, log_dirs=[DIRECTORY_ID]
    ),
    "feature-level": FeatureLevelRecord(name="metadata.version", feature_level=30),
    "no-op": NoOpRecord(),
}


@pytest.mark.parametrize("name", RECORDS)
def test_kafka_writes_the_same_bytes(name: str) -> None:
    assert encode(RECORDS[name]) == WRITTEN_BY_KAFKA[name]
    assert decode(WRITTEN_BY_KAFKA[name]) == RECORDS[name]


def test_a_field_left_out_of_a_change_means_no_change() -> None:
    change = decode(encode(PartitionChangeRecord(partition_id=1, topic_id=TOPIC_ID)))
    assert isinstance(change, PartitionChangeRecord)
    assert (change.isr, change.replicas, change.leader, change.leader_recovery_state) == (None, None, -2, -1)


@pytest.mark.parametrize(
    ("frame", "complaint"),
    [
        (b"", "whole frame"),
        (b"\x01\x02", "whole frame"),
        (b"\x00\x02\x00", "frame version 0"),
        (b"\x02\x02\x00", "frame version 2"),
        (b"\x01\x12\x00", "unknown type 18"),
        (b"\x01\x02\x01", "version 1"),
        (WRITTEN_BY_KAFKA["topic"][:-1], "too early"),
        (WRITTEN_BY_KAFKA["topic"] + b"\x00", "1 bytes too many"),
    ],
)
def test_what_is_not_understood_is_refused(frame: bytes, complaint: str) -> None:
    with pytest.raises(Malformed, match=complaint):
        decode(frame)


@given(st.sampled_from(sorted(WRITTEN_BY_KAFKA)), st.data())
def test_a_damaged_record_is_malformed_or_another_record_but_never_a_crash(name: str, data: st.DataObject) -> None:
    frame = bytearray(WRITTEN_BY_KAFKA[name])
    for _ in range(data.draw(st.integers(1, 4))):
        frame[data.draw(st.integers(0, len(frame) - 1))] = data.draw(st.integers(0, 255))
    with suppress(Malformed):
        decode(bytes(frame))
