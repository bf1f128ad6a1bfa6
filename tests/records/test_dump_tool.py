"""Kafka's own dump tool reads a segment of our batches: every codec, markers, and what compaction leaves."""

import subprocess
from pathlib import Path

import pytest

from klamm.records.batch import stamp
from klamm.records.builder import BatchBuilder, rebuilt
from klamm.records.compression import Codec
from klamm.records.control import end_transaction_marker
from klamm.records.record import records_of
from tests.harness.kafka_node import JVM, jar_directory, skip_without_kafka

from .made import NOON

pytestmark = pytest.mark.compat

LONG = "0123456789" * 15_000  # More than one block of lz4, chunk of snappy, block of zstd.


def built(codec: Codec, level: int | None = None) -> bytearray:
    builder = BatchBuilder(codec, producer_id=7, producer_epoch=0, base_sequence=0, level=level)
    builder.append(b"key", LONG.encode(), NOON, [("trace", b"abc")])
    builder.append(None, b"no key", NOON + 1)
    builder.append(b"no value", None, NOON + 2)
    return builder.build()


def test_the_dump_tool_reads_our_batches(tmp_path: Path) -> None:
    skip_without_kafka()
    whole = [built(codec, level) for codec in Codec for level in (None, 1, 9)]
    compacted = rebuilt(whole[0], list(records_of(whole[0]))[1:], Codec.ZSTD, delete_horizon_ms=NOON + 5)
    marker = end_transaction_marker(7, 0, commit=True, coordinator_epoch=3, timestamp=NOON)
    segment, offset = bytearray(), 0
    for batch in [*whole, compacted, rebuilt(whole[1], [], Codec.GZIP), marker]:
        stamp(memoryview(batch), offset, 1)
        segment += batch
        offset += 3
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(segment)

    dumped = dump(path)

    heads = [line for line in dumped if line.startswith("baseOffset:")]
    records = [line for line in dumped if line.startswith("| offset:")]
    assert len(heads) == len(whole) + 3
    assert all("isvalid: true" in line for line in heads)
    assert len(records) == 3 * len(whole) + 2 + 1
    for index in range(len(whole)):
        first, second, third = records[3 * index : 3 * index + 3]
        assert f"offset: {3 * index} CreateTime: {NOON} keySize: 3 valueSize: {len(LONG)} sequence: 0" in first
        assert "headerKeys: [trace]" in first
        assert f"payload: {LONG}" in first
        assert "keySize: -1" in second
        assert "valueSize: -1" in third
    assert f"deleteHorizonMs: OptionalLong[{NOON + 5}]" in heads[-3]
    assert "count: 0" in heads[-2]
    assert "endTxnMarker: COMMIT coordinatorEpoch: 3" in records[-1]


def dump(path: Path) -> list[str]:
    tool = [*JVM, "-cp", f"{jar_directory()}/*", "org.apache.kafka.tools.DumpLogSegments"]
    command = [*tool, "--files", str(path), "--print-data-log"]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    return answer.stdout.splitlines()
