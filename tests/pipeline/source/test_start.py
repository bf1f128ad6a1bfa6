"""What a worker imports before its first records are there: Spark waits for it."""

import subprocess
import sys

FIRST_READ = """
import sys
import klamm.pipeline.source.klamm_source
import klamm.pipeline.kafka.raw
from klamm.pipeline.decoding import Decoder
from klamm.records.builder import BatchBuilder

builder = BatchBuilder(base_offset=0)
builder.append(b"key", b"value", 1, [("name", b"content"), ("null", None)])
builder.append(None, b"value", 1)
builder.append(b"key", None, 2**62)
(rows,), _ = Decoder("topic", 3, include_headers=True).decode(memoryview(builder.build()), 0, 10)
assert rows.column("offset").to_pylist() == [0, 1, 2]
print(*sorted({"pandas", "confluent_kafka", "rich", "asyncio"} & sys.modules.keys()))
"""


def test_the_first_read_needs_neither_pandas_nor_librdkafka() -> None:
    done = subprocess.run([sys.executable, "-c", FIRST_READ], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
