"""What one format refuses, the other refuses too."""

import pytest

from tests.compat.spark.both import Both

ONE = {"subscribe": "sparse"}
BATCH, STREAM = False, True

WRONG = {
    "nothing to read": (BATCH, {}),
    "two strategies": (BATCH, {**ONE, "assign": '{"sparse": [0]}'}),
    "subscribe without a topic": (BATCH, {"subscribe": " , "}),
    "an empty pattern": (BATCH, {"subscribePattern": " "}),
    "a broken pattern": (BATCH, {"subscribePattern": "("}),
    "assign is no JSON": (BATCH, {"assign": "sparse"}),
    "assign of no partition": (BATCH, {"assign": '{"sparse": "0"}'}),
    "a topic that is not there": (BATCH, {"subscribe": "nowhere"}),
    "startingOffsets latest": (BATCH, {**ONE, "startingOffsets": "latest"}),
    "a partition's startingOffsets latest": (
        BATCH,
        {**ONE, "startingOffsets": '{"sparse": {"0": -1, "1": 0, "2": 0, "3": 0}}'},
    ),
    "endingOffsets earliest": (BATCH, {**ONE, "endingOffsets": "earliest"}),
    "startingOffsets is a word": (BATCH, {**ONE, "startingOffsets": "first"}),
    "startingOffsets of some partitions": (BATCH, {**ONE, "startingOffsets": '{"sparse": {"2": 0}}'}),
    "startingOffsets of others": (BATCH, {**ONE, "startingOffsets": '{"wide": {"0": 0}}'}),
    "start and end name different partitions": (
        BATCH,
        {
            "assign": '{"sparse": [1, 2]}',
            "startingOffsets": '{"sparse": {"1": 0, "2": 0}}',
            "endingOffsets": '{"sparse": {"2": 1}}',
        },
    ),
    "the end before the start": (
        BATCH,
        {
            "assign": '{"sparse": [2]}',
            "startingOffsets": '{"sparse": {"2": 9}}',
            "endingOffsets": '{"sparse": {"2": 5}}',
        },
    ),
    "startingOffsets that are lost": (
        BATCH,
        {"assign": '{"beheaded": [0]}', "startingOffsets": '{"beheaded": {"0": 10}}'},
    ),
    "startingOffsets after the end": (
        BATCH,
        {"assign": '{"sparse": [2]}', "startingOffsets": '{"sparse": {"2": 5000}}'},
    ),
    "startingTimestamp without a match": (BATCH, {**ONE, "startingTimestamp": "1900000000000"}),
    "startingTimestamp is no number": (BATCH, {**ONE, "startingTimestamp": "yesterday"}),
    "startingOffsetsByTimestamp is no JSON": (BATCH, {**ONE, "startingOffsetsByTimestamp": "5"}),
    "an unknown strategy": (
        BATCH,
        {**ONE, "startingTimestamp": "0", "startingOffsetsByTimestampStrategy": "earliest"},
    ),
    "minPartitions 0": (BATCH, {**ONE, "minPartitions": "0"}),
    "minPartitions is no number": (BATCH, {**ONE, "minPartitions": "many"}),
    "maxRecordsPerPartition 0": (BATCH, {**ONE, "maxRecordsPerPartition": "0"}),
    "failOnDataLoss maybe": (BATCH, {**ONE, "failOnDataLoss": "maybe"}),
    "includeHeaders maybe": (BATCH, {**ONE, "includeHeaders": "maybe"}),
    "auto.offset.reset": (BATCH, {**ONE, "kafka.auto.offset.reset": "latest"}),
    "key.deserializer": (BATCH, {**ONE, "kafka.key.deserializer": "X"}),
    "value.deserializer": (BATCH, {**ONE, "kafka.value.deserializer": "X"}),
    "enable.auto.commit": (BATCH, {**ONE, "kafka.enable.auto.commit": "true"}),
    "interceptor.classes": (BATCH, {**ONE, "kafka.interceptor.classes": "X"}),
    "an isolation level": (BATCH, {**ONE, "kafka.isolation.level": "serializable"}),
    "no bootstrap servers": (BATCH, {**ONE, "kafka.bootstrap.servers": ""}),
    "endingOffsets of a stream": (STREAM, {**ONE, "endingOffsets": "latest"}),
    "endingOffsetsByTimestamp of a stream": (
        STREAM,
        {**ONE, "endingOffsetsByTimestamp": '{"sparse": {"2": 5}}'},
    ),
    "maxOffsetsPerTrigger is no number": (STREAM, {**ONE, "maxOffsetsPerTrigger": "few"}),
    "min above max": (STREAM, {**ONE, "minOffsetsPerTrigger": "9", "maxOffsetsPerTrigger": "5"}),
    "maxTriggerDelay is no time": (
        STREAM,
        {**ONE, "minOffsetsPerTrigger": "9", "maxTriggerDelay": "soon"},
    ),
    "a stream of a topic that is not there": (STREAM, {"subscribe": "nowhere"}),
}


@pytest.mark.parametrize("case", WRONG)
def test_both_refuse(both: Both, case: str) -> None:
    streaming, options = WRONG[case]
    theirs = both.refusal("kafka", options, streaming)
    ours = both.refusal("klamm", options, streaming)
    print(f"theirs: {theirs}\nours: {ours}")


def test_a_schema_cannot_be_given(both: Both, world: object) -> None:
    for kind in ("klamm", "kafka"):
        with pytest.raises(Exception, match=r"(?i)schema|columns"):
            both.spark.read.schema("value string").format(kind).options(**both.where, **ONE).load().collect()
