"""Malformed batches that the broker takes, as those of `tests/hostile/test_malformed.py`: Java's client reads them."""

import os
from random import Random

import pytest

from klamm.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.compat.java_client import JavaClient
from tests.harness.node import Node
from tests.harness.topics import create_topic
from tests.hostile.raw import Raw
from tests.hostile.target import NAMED
from tests.records.malformed import drawn

SEEDS = range(int(os.environ.get("KLAMM_MALFORMED_SEEDS", "2")))
BATCHES = 500
SETTINGS = {"retention.ms": "-1", "message.timestamp.after.max.ms": str(2**63 - 1), "max.message.bytes": str(16 << 20)}


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_accepted_java_reads_to_its_end(node: Node, topic: str, java: JavaClient, seed: int) -> None:
    """Every record, each at its offset. What was drawn last stands in the message of a failure."""
    create_topic(node.bootstrap, topic, 1, SETTINGS)
    random = Random(seed)
    accepted: list[tuple[int, str]] = []
    with Raw(node.port) as client:
        for number in range(BATCHES):
            batch, done = drawn(random, sound=number % 50 == 0)
            data = [PartitionProduceData(index=0, records=batch)]
            request = ProduceRequest(
                acks=-1, timeout_ms=30_000, topic_data=[TopicProduceData(name=topic, partition_data=data)]
            )
            (answer,) = client.ask(request, NAMED).responses[0].partition_responses
            if not answer.error_code:
                accepted.append((answer.base_offset, f"seed {seed}, batch {number}: {done}"))
    assert len(accepted) >= BATCHES // 50
    offsets = [record.offset for record in java.consume(node.bootstrap, topic, [0])[0]]
    behind = offsets[-1] if offsets else -1
    last = max((each for each in accepted if each[0] <= behind + 1), default=(0, "the first"))
    assert offsets == list(range(len(offsets))), last
    assert behind >= accepted[-1][0], last
