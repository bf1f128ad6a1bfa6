"""Thousands of malformed batches, drawn from seeds: each is refused as Kafka does it, or read to its end by librdkafka.

`python -m pytest tests/hostile/test_malformed.py` sends 3,000. KLAMM_MALFORMED_SEEDS=20 makes 10,000 of them. What a
seed drew stands in the message of a failure.
"""

import os
from random import Random

import pytest
from confluent_kafka import Consumer, KafkaError, TopicPartition

from klamm.errors import ErrorCode
from klamm.records.batch import InvalidBatch, checked
from klamm.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.hostile.target import NAMED, Target
from tests.records.malformed import drawn
from tests.records.naive import Unreadable, youngest

SEEDS = range(int(os.environ.get("KLAMM_MALFORMED_SEEDS", "6")))
BATCHES = 500
AS_KAFKA_SAYS = {ErrorCode.INVALID_RECORD, ErrorCode.INVALID_TIMESTAMP, ErrorCode.CORRUPT_MESSAGE}
READ_SECONDS = 60.0


@pytest.mark.parametrize("seed", SEEDS)
def test_each_is_refused_or_can_be_read(target: Target, topic: str, seed: int) -> None:
    target.create_topic(
        topic, retention_ms="-1", message_timestamp_after_max_ms=str(2**63 - 1), max_message_bytes=str(16 << 20)
    )
    random = Random(seed)
    accepted: list[tuple[int, int, str]] = []
    with target.connect() as client:
        for number in range(BATCHES):
            batch, done = drawn(random, sound=number % 50 == 0)
            what = f"seed {seed}, batch {number}: {done}"
            data = [PartitionProduceData(index=0, records=batch)]
            request = ProduceRequest(
                acks=-1, timeout_ms=30_000, topic_data=[TopicProduceData(name=topic, partition_data=data)]
            )
            (answer,) = client.ask(request, NAMED).responses[0].partition_responses
            if answer.error_code:
                assert answer.error_code in AS_KAFKA_SAYS, (what, answer.error_code)
                assert not is_readable(batch), what
            else:
                header = checked(memoryview(batch))
                accepted.append((answer.base_offset, header.count, what))
    assert len(accepted) >= BATCHES // 50
    check_librdkafka_reads(target, topic, accepted)


def is_readable(batch: bytearray) -> bool:
    try:
        youngest(batch, checked(memoryview(batch)))
    except (Unreadable, InvalidBatch):
        return False
    return True


def check_librdkafka_reads(target: Target, topic: str, accepted: list[tuple[int, int, str]]) -> None:
    """Every record of every batch, each at its offset."""
    consumer = Consumer(
        {"bootstrap.servers": f"127.0.0.1:{target.port}", "group.id": "g", "enable.partition.eof": True}
    )
    end = accepted[-1][0] + accepted[-1][1]
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        expected = 0
        while expected < end:
            for message in consumer.consume(10_000, READ_SECONDS if expected == 0 else 10.0):
                error = message.error()
                if error is not None:
                    assert error.code() == KafkaError._PARTITION_EOF, (str(error), at(accepted, expected))
                    continue
                assert message.offset() == expected, at(accepted, expected)
                # Not its headers: a name that is not UTF-8, which Kafka takes, is read by librdkafka, not by Python.
                expected += 1
            if expected < end and consumer.position([TopicPartition(topic, 0)])[0].offset < 0:
                pytest.fail(f"nothing can be read at {expected}: {at(accepted, expected)}")
    finally:
        consumer.close()


def at(accepted: list[tuple[int, int, str]], offset: int) -> str:
    return next((what for base, count, what in accepted if base <= offset < base + count), "behind the last")
