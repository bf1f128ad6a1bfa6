"""Records to send and what has to come back: drawn from a seed, so that every client sends the same.

Keys, values and headers cover what the format allows and clients can say: null and empty keys, null and empty values,
none to three headers with repeated names, bytes that are no text. Values repeat themselves, so that every codec gains.
"""

import struct
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple, TypeAlias

from klamm.records.compression import by_name, compressed

FRAME_SLACK_BYTES = 32
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
# An hour ago. Retention would delete records of long ago, whenever it next looks.
FIRST_TIMESTAMP_MS = int(time.time() * 1000) - 3_600_000

Headers: TypeAlias = tuple[tuple[str, bytes | None], ...]


class Sent(NamedTuple):
    """A record as its producer has it."""

    partition: int
    key: bytes | None
    value: bytes | None
    headers: Headers
    timestamp_ms: int


class Received(NamedTuple):
    """A record as a consumer has it, with the place it was found at."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: Headers
    timestamp_ms: int


def drawn_records(count: int, partitions: int, seed: int = 1) -> list[Sent]:
    """`count` records over the partitions, in the order they are to be sent. The number `i` is in every value."""
    random = Random(seed)
    words = [random.randbytes(5).hex().encode() for _ in range(200)]
    records = []
    for i in range(count):
        key = None if i % 7 == 0 else b"" if i % 101 == 5 else b"store-%d" % random.randrange(1000)
        value: bytes | None = b"%d:%s" % (i, b" ".join(random.choices(words, k=random.randrange(1, 12))))
        if key is not None and i % 13 == 1:
            value = None
        elif i % 97 == 3:
            value = b""
        elif i % 89 == 4:
            value = b"\xff\x00\xfe" + random.randbytes(20)
        headers = tuple((f"h{random.randrange(3)}", b"%d" % (i + n)) for n in range(i % 4 if i % 2 else 0))
        records.append(Sent(random.randrange(partitions), key, value, headers, FIRST_TIMESTAMP_MS + i))
    return records


def odd_records() -> list[Sent]:
    """What only some clients can say: key and value both null, a header without a value, bytes that are no text."""
    at = FIRST_TIMESTAMP_MS
    return [
        Sent(0, None, None, (), at),
        Sent(0, b"", b"", (("", b""),), at),
        Sent(0, None, b"v", (("empty", b""), ("null", None), ("null", None)), at),
        Sent(0, b"\xff\xfe", b"\x00" * 3000, (("ключ", b"\x80"),), at - 5_000),
        Sent(0, b"k" * 5000, None, tuple((f"h{n}", b"%d" % n) for n in range(200)), at + 5_000),
    ]


def expected(records: Iterable[Sent], partitions: int) -> dict[int, list[Received]]:
    """What a consumer finds in a topic that held nothing before: per partition, in order, at offsets 0, 1, 2, …"""
    found: dict[int, list[Received]] = {partition: [] for partition in range(partitions)}
    for partition, key, value, headers, timestamp_ms in records:
        held = found[partition]
        held.append(Received(partition, len(held), key, value, headers, timestamp_ms))
    return found


def assert_same(found: dict[int, list[Received]], wanted: dict[int, list[Received]]) -> None:
    """Exactly the wanted records, in order per partition. Says where the first difference is, not all of them."""
    assert sorted(found) == sorted(wanted)
    for partition, records in sorted(wanted.items()):
        got = found[partition]
        if got == records:
            continue
        for place, (left, right) in enumerate(zip(got, records, strict=False)):
            assert left == right, f"partition {partition}, record {place}"
        assert len(got) == len(records), f"partition {partition}: {len(got)} records, {len(records)} were sent"


class StoredBatch(NamedTuple):
    """One batch in a segment file, as far as tests look at it; `body` is its records, compressed or not."""

    base_offset: int
    codec: str
    record_count: int
    body: bytes


def stored_batches(data_directory: Path, topic: str, partition: int) -> list[StoredBatch]:
    """Reads a partition's segment files as they lie on the disk, batch header by batch header."""
    batches = []
    for segment in sorted((data_directory / f"{topic}-{partition}").glob("*.log")):
        content = segment.read_bytes()
        position = 0
        while position + 61 <= len(content):
            base_offset, length, _, magic, _, attributes = struct.unpack_from(">qiibih", content, position)
            if length <= 0:
                break  # A preallocated tail of zeros.
            assert magic == 2, f"{segment} at {position}: magic {magic}"
            count = struct.unpack_from(">i", content, position + 57)[0]
            following = position + length + 12
            batches.append(StoredBatch(base_offset, CODECS[attributes & 7], count, content[position + 61 : following]))
            position = following
    return batches


def assert_stored_with(data_directory: Path, topic: str, partitions: Sequence[int], codec: str) -> None:
    """The batches on the disk carry the codec that was asked for.

    librdkafka and kafka-python leave a batch alone that compression would not make smaller: a few short records.
    """
    for partition in partitions:
        batches = stored_batches(data_directory, topic, partition)
        assert any(batch.codec == codec for batch in batches), f"{topic}-{partition}: none is {codec}"
        for batch in batches:
            left_alone = batch.codec == "none" and not _would_gain(codec, batch.body)
            assert batch.codec == codec or left_alone, batch


def _would_gain(codec: str, body: bytes) -> bool:
    """Whether compressing these records saves more than the few bytes by which the libraries' frames differ."""
    return len(compressed(by_name(codec), body)) + FRAME_SLACK_BYTES < len(body)
