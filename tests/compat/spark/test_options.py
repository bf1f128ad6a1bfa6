"""Every option that says what is read, exercised on both formats: the same rows, cut into the same triggers."""

import json
from collections.abc import Mapping

import pytest

from tests.compat.spark.both import FORMATS, Both
from tests.compat.spark.world import FIRST_MS, RECORDS, STEP_MS

MIDDLE_MS = FIRST_MS + 60 * STEP_MS
BETWEEN_MS = MIDDLE_MS + STEP_MS // 2
PAST_THE_END_MS = FIRST_MS + 10 * RECORDS * STEP_MS


def of_lz4(first: int, second: int) -> str:
    return json.dumps({"codec-lz4": {"0": first, "1": second}})


LZ4 = {"subscribe": "codec-lz4"}
ONE = {"assign": '{"codec-lz4": [1]}'}

BATCHES: dict[str, tuple[Mapping[str, str], int]] = {
    "subscribe, twice and with spaces": ({"subscribe": " codec-lz4 , codec-lz4,sparse"}, 3 * RECORDS),
    "subscribePattern": ({"subscribePattern": "codec-(lz4|zstd)"}, 4 * RECORDS),
    "subscribePattern may be found anywhere": ({"subscribePattern": "dec-l"}, 2 * RECORDS),
    "assign": ({"assign": '{"codec-lz4": [1], "sparse": [2, 3]}'}, 2 * RECORDS),
    "assign what is not there": ({"assign": '{"codec-lz4": [1, 9]}'}, RECORDS),
    "startingOffsets": ({**LZ4, "startingOffsets": of_lz4(100, -2)}, 20 + RECORDS),
    "endingOffsets": ({**LZ4, "endingOffsets": of_lz4(10, -1)}, 10 + RECORDS),
    "both": ({**LZ4, "startingOffsets": of_lz4(10, 20), "endingOffsets": of_lz4(15, 20)}, 5),
    "startingTimestamp": ({**LZ4, "startingTimestamp": str(BETWEEN_MS)}, 2 * 59),
    "endingTimestamp": ({**LZ4, "endingTimestamp": str(MIDDLE_MS)}, 2 * 60),
    "startingOffsetsByTimestamp": ({**LZ4, "startingOffsetsByTimestamp": of_lz4(MIDDLE_MS, FIRST_MS)}, 60 + RECORDS),
    "endingOffsetsByTimestamp": ({**LZ4, "endingOffsetsByTimestamp": of_lz4(MIDDLE_MS, PAST_THE_END_MS)}, 60 + RECORDS),
    "a time goes before offsets": ({**LZ4, "startingTimestamp": str(MIDDLE_MS), "startingOffsets": of_lz4(1, 1)}, 120),
    "strategy latest": (
        {**LZ4, "startingTimestamp": str(PAST_THE_END_MS), "startingOffsetsByTimestampStrategy": "latest"},
        0,
    ),
    "failOnDataLoss=false": (
        {"assign": '{"beheaded": [0]}', "failOnDataLoss": "false", "startingOffsets": '{"beheaded": {"0": 10}}'},
        RECORDS - 50,
    ),
    "endingOffsets in a gap": ({"subscribe": "compacted", "endingOffsets": '{"compacted": {"0": 795}}'}, -1),
    "names in any case": ({"SUBSCRIBE": "codec-lz4", "STARTINGOFFSETS": "Earliest"}, 2 * RECORDS),
    "what only tunes": (
        {
            **ONE,
            "kafkaConsumer.pollTimeoutMs": "10000",
            "fetchOffset.numRetries": "5",
            "fetchOffset.retryIntervalMs": "100",
            "groupIdPrefix": "mine",
            "maxOffsetsPerTrigger": "3",
            "kafka.client.id": "me",
            "kafka.fetch.min.bytes": "1",
            "kafka.isolation.level": "read_committed",
            "kafka.max.poll.records": "7",
        },
        RECORDS,
    ),
}


@pytest.mark.parametrize("case", BATCHES)
def test_batches(both: Both, case: str) -> None:
    options, expected = BATCHES[case]
    rows = both.batches(**options)
    assert len(rows) == expected or expected < 0


@pytest.mark.parametrize("kind", FORMATS)
def test_topics_are_cut_into_as_many_tasks_as_asked(both: Both, kind: str) -> None:
    """The connector counts empty partitions as tasks, and ours does not: so all of these have records."""
    for least, expected in (("1", [RECORDS] * 2), ("4", [RECORDS // 2] * 4)):
        frame = both.frame(kind, {"subscribe": "codec-lz4", "minPartitions": least})
        sizes = frame.selectExpr("spark_partition_id() as task").groupBy("task").count().collect()
        assert sorted(row["count"] for row in sizes) == expected
        assert frame.rdd.getNumPartitions() == len(expected)


STREAMS: dict[str, tuple[Mapping[str, str], int]] = {
    "maxOffsetsPerTrigger": ({"subscribe": "codec-lz4,sparse", "maxOffsetsPerTrigger": "100"}, 3 * RECORDS),
    "it is shared in proportion": ({"subscribe": "beheaded,compacted", "maxOffsetsPerTrigger": "333"}, -1),
    "minOffsetsPerTrigger": ({**LZ4, "minOffsetsPerTrigger": "1000", "maxTriggerDelay": "1h"}, 2 * RECORDS),
    "startingTimestamp": ({**LZ4, "startingTimestamp": str(MIDDLE_MS), "maxOffsetsPerTrigger": "70"}, 120),
    "startingOffsets": ({**LZ4, "startingOffsets": of_lz4(100, -1), "maxOffsetsPerTrigger": "15"}, 20),
    "latest": ({**LZ4, "startingOffsets": "latest"}, 0),
    "assign and a group": ({**ONE, "kafka.group.id": "a-group", "minPartitions": "4"}, RECORDS),
    "endingTimestamp is for batches": ({**ONE, "endingTimestamp": str(MIDDLE_MS)}, RECORDS),
}


@pytest.mark.parametrize("case", STREAMS)
def test_streams(both: Both, case: str) -> None:
    options, expected = STREAMS[case]
    streamed = both.streams(**{"startingOffsets": "earliest", **options})
    assert len(streamed.rows) == expected or expected < 0
