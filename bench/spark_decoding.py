"""How quickly v2 batches become Arrow's rows on one core: Klamm's decoder, and aiokafka's Cython records then Arrow.

Both check every CRC and fill the same columns. The two take turns and CPU time counts, the best of some rounds, because
the machine may be busy with other things. Values are text whose lengths vary by a third about the one named; where it
says "one length" all are alike, as counters and sensors send them.
"""

import random
import sys
from collections.abc import Callable
from time import process_time

import pyarrow as pa
from aiokafka.record import MemoryRecords

from klamm.pipeline.decoding import Decoder, arrow_schema
from klamm.records.builder import BatchBuilder
from klamm.records.compression import Codec

RESPONSE_RECORDS = {98: 60_000, 960: 16_000}
BATCH_BYTES = {"16 KB": 16_384, "256 KB": 262_144, "1 record": 1}
ROUNDS = 7
NOON = 1_700_000_000_000
EVERYTHING = 2**63 - 1


def response(value_bytes: int, batch_bytes: int, codec: Codec, *, one_length: bool = False) -> bytes:
    """A Fetch response whose batches close when they reach `batch_bytes`, with keys of eight bytes."""
    chance = random.Random(value_bytes)
    words = [chance.randbytes(6).hex() for _ in range(400)]
    out, offset = bytearray(), 0
    records = RESPONSE_RECORDS[value_bytes] // (10 if batch_bytes == 1 else 1)
    while offset < records:
        builder = BatchBuilder(codec, offset)
        while offset < records and (builder.count == 0 or builder.size_bytes < batch_bytes):
            length = value_bytes if one_length else chance.randint(value_bytes * 2 // 3, value_bytes * 4 // 3)
            value = " ".join(chance.choices(words, k=value_bytes // 9))[:length].ljust(length).encode()
            builder.append(b"%08d" % (offset % 997), value, NOON + offset // 5)
            offset += 1
        out += builder.build()
    return bytes(out)


def by_klamm(data: bytes) -> int:
    found, _ = Decoder("orders", 0).decode(memoryview(data), 0, EVERYTHING)
    return sum(batch.num_rows for batch in found)


def by_aiokafka(data: bytes) -> int:
    keys, values, offsets, timestamps, types = [], [], [], [], []
    records = MemoryRecords(data)
    while (batch := records.next_batch()) is not None:
        assert batch.validate_crc()
        for record in batch:
            keys.append(record.key)
            values.append(record.value)
            offsets.append(record.offset)
            timestamps.append(record.timestamp * 1000)
            types.append(record.timestamp_type)
    rows = len(keys)
    columns = [keys, values, ["orders"] * rows, [0] * rows, offsets, timestamps, types]
    schema = arrow_schema(False)
    arrays = [pa.array(column, type=field.type) for column, field in zip(columns, schema, strict=True)]
    return int(pa.RecordBatch.from_arrays(arrays, schema=schema).num_rows)


def thousands_a_second(data: bytes, ways: list[Callable[[bytes], int]], rounds: int) -> list[float]:
    best = [0.0] * len(ways)
    for _ in range(rounds):
        for index, way in enumerate(ways):
            began = process_time()
            rows = way(data)
            best[index] = max(best[index], rows / (process_time() - began) / 1000)
    return best


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    print("thousand records a second, one core     klamm  aiokafka  ratio")
    for value_bytes in RESPONSE_RECORDS:
        for name, batch_bytes in BATCH_BYTES.items():
            for codec in (Codec.NONE, Codec.LZ4, Codec.ZSTD):
                for one_length in (False, True) if batch_bytes == 262_144 else (False,):
                    data = response(value_bytes, batch_bytes, codec, one_length=one_length)
                    klamm, aiokafka = thousands_a_second(data, [by_klamm, by_aiokafka], rounds)
                    lengths = "one length" if one_length else ""
                    label = f"{value_bytes} B, {name} a batch, {codec.name.lower()} {lengths}"
                    print(f"{label:39} {klamm:6.0f} {aiokafka:9.0f} {klamm / aiokafka:6.1f}", flush=True)


if __name__ == "__main__":
    main()
