"""Batches that are wrong in one way or several, drawn from a seed.

`drawn` makes a sound batch of records of all shapes, takes its body, and breaks it: bytes flipped, cut and added,
numbers written longer, larger or negative, records lost, doubled and out of order, counts and lengths that lie, streams
that are cut, doubled or not compressed at all. Its header and CRC are right in the end, so only the records are wrong.
"""

from dataclasses import dataclass
from random import Random

import cramjam
import lz4.frame
import zstandard

from klamm.records.batch import (
    COUNT_AT,
    HEADER_BYTES,
    LAST_OFFSET_DELTA_AT,
    LENGTH_AT,
    OVERHEAD_BYTES,
    set_crc,
)
from klamm.records.builder import BatchBuilder
from klamm.records.compression import Codec, compressed

BASE_MS = 1_700_000_000_000


def number(value: int, longer: int = 0) -> bytes:
    """A varint, written with so many bytes more than it needs."""
    zigzag = value << 1 if value >= 0 else (-value << 1) - 1
    out = bytearray()
    while zigzag > 127 or longer > 0:
        out.append(zigzag & 127 | 128)
        if zigzag <= 127:
            longer -= 1
        zigzag >>= 7
    out.append(zigzag)
    return bytes(out)


@dataclass
class Parts:
    """One record, as numbers and bytes that need not fit one another."""

    time: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[bytes | None, bytes | None]]
    attributes: int = 0
    length: int | None = None
    key_length: int | None = None
    value_length: int | None = None
    header_count: int | None = None
    longer: int = 0
    tail: bytes = b""

    def encoded(self) -> bytes:
        body = bytes((self.attributes,)) + number(self.time, self.longer) + number(self.offset, self.longer)
        body += _lengthy(self.key, self.key_length, self.longer) + _lengthy(self.value, self.value_length, self.longer)
        body += number(len(self.headers) if self.header_count is None else self.header_count, self.longer)
        for name, content in self.headers:
            body += _lengthy(name, None, 0) + _lengthy(content, None, 0)
        body += self.tail
        return number(len(body) if self.length is None else self.length, self.longer) + body


def _lengthy(content: bytes | None, length: int | None, longer: int) -> bytes:
    said = (-1 if content is None else len(content)) if length is None else length
    return number(said, longer) + (content or b"")


def sound_records(random: Random) -> list[Parts]:
    count = random.choice((1, 2, 5, 20, 70, 150))
    if random.random() < 0.05:
        count = 9000
    alike = random.random() < 0.5
    size = random.choice((0, 1, 10, 100, 300))
    step = random.choice((0, 0, 1, 7, 500))
    headers: list[tuple[bytes | None, bytes | None]] = []
    if random.random() < 0.3:
        headers = [(b"trace", random.randbytes(16)), (b"", None), (b"n", b"")][: random.randrange(4)]
    key_size = random.choice((None, None, 0, 8, 70))
    records = []
    for index in range(count):
        value_size = size if alike else random.randrange(2 * size + 1)
        value = None if random.random() < 0.01 else random.randbytes(value_size)
        key = None if key_size is None else random.randbytes(key_size)
        time = index * step if random.random() < 0.98 else random.randrange(-1000, 100_000)
        records.append(Parts(time, index, key, value, list(headers)))
    return records


HUGE = (-(2**31), -2, -1, 0, 1, 63, 64, 8191, 8192, 2**20, 2**31 - 1, 2**31, 2**32 + 5, 2**63)


KINDS = (
    *("offset", "time", "length", "key", "value", "headers", "name"),
    *("longer", "tail", "attributes", "lose", "double", "swap"),
)


def broken(random: Random, records: list[Parts]) -> str:
    """Break one of them; what was done."""
    one = random.choice(records)
    kind = random.choice(KINDS)
    if kind == "offset":
        one.offset = random.choice((one.offset + 1, one.offset - 1, one.offset + 64, *HUGE))
    elif kind == "time":
        one.time = random.choice((-BASE_MS - 1, -BASE_MS - 2, -(2**63), 2**63 - 1, *HUGE))
    elif kind == "length":
        one.length = random.choice((len(one.encoded()), len(one.encoded()) - 3, *HUGE))
    elif kind == "key":
        one.key_length = random.choice((len(one.key or b"") + 1, len(one.key or b"") - 1, *HUGE))
    elif kind == "value":
        one.value_length = random.choice((len(one.value or b"") + 1, len(one.value or b"") - 1, *HUGE))
    elif kind == "headers":
        one.header_count = random.choice((len(one.headers) + 1, len(one.headers) - 1, 65_536, 65_537, *HUGE))
    elif kind == "name":
        one.headers.append((None, b"content"))
    elif kind == "longer":
        one.longer = random.randrange(1, 10)
    elif kind == "tail":
        one.tail = random.randbytes(random.randrange(1, 4))
    elif kind == "attributes":
        one.attributes = random.randrange(256)
    elif kind == "lose" and len(records) > 1:
        records.remove(one)
    elif kind == "double":
        records.insert(random.randrange(len(records) + 1), one)
    else:
        other = random.randrange(len(records))
        records[0], records[other] = records[other], records[0]
    return kind


def damaged(random: Random, data: bytes) -> tuple[bytes, str]:
    """The same bytes with something done to them."""
    kind = random.choice(("flip", "flip", "cut", "add", "zeros", "twice", "byte", "gone"))
    at = random.randrange(len(data) + 1)
    if kind == "flip" and data:
        changed = bytearray(data)
        changed[at % len(data)] ^= 1 << random.randrange(8)
        return bytes(changed), kind
    if kind == "byte" and data:
        changed = bytearray(data)
        changed[at % len(data)] = random.randrange(256)
        return bytes(changed), kind
    if kind == "cut":
        return data[:at], kind
    if kind == "gone":
        return data[:at] + data[at + random.randrange(1, 9) :], kind
    if kind == "zeros":
        return data + bytes(random.randrange(1, 9)), kind
    if kind == "twice":
        return data + data, kind
    return data[:at] + random.randbytes(random.randrange(1, 9)) + data[at:], kind


def packed(random: Random, codec: Codec, body: bytes, sound: bool) -> bytes:
    """Compressed, in one of the ways that clients do it."""
    if codec is Codec.SNAPPY and random.random() < 0.5:
        return bytes(cramjam.snappy.compress_raw(body))
    if codec is Codec.LZ4 and random.random() < 0.6:
        return bytes(
            lz4.frame.compress(
                body,
                block_linked=not sound and random.random() < 0.2,
                block_checksum=random.random() < 0.3,
                content_checksum=random.random() < 0.5,
                store_size=random.random() < 0.5,
                block_size=random.choice((4, 5, 7)),
            )
        )
    if codec is Codec.ZSTD and random.random() < 0.6:
        return zstandard.ZstdCompressor(
            write_checksum=random.random() < 0.5, write_content_size=random.random() < 0.5
        ).compress(body)
    return compressed(codec, body)


def batch_of(codec: Codec, stored: bytes, count: int) -> bytearray:
    """A batch with a right header and CRC around whatever this is."""
    batch = BatchBuilder(codec, base_timestamp=BASE_MS).build()[:HEADER_BYTES] + stored
    batch[LENGTH_AT : LENGTH_AT + 4] = (len(batch) - OVERHEAD_BYTES).to_bytes(4, "big")
    batch[LAST_OFFSET_DELTA_AT : LAST_OFFSET_DELTA_AT + 4] = (count - 1).to_bytes(4, "big")
    batch[COUNT_AT : COUNT_AT + 4] = count.to_bytes(4, "big")
    batch[22] = codec
    batch[35:43] = BASE_MS.to_bytes(8, "big")
    set_crc(memoryview(batch))
    return batch


def drawn(random: Random, sound: bool = False) -> tuple[bytearray, str]:
    """A batch, and what was done to it."""
    records = sound_records(random)
    count = len(records)
    codec = random.choice((Codec.NONE, Codec.NONE, *Codec))
    done: list[str] = []
    if not sound and random.random() < 0.6:
        done += [broken(random, records) for _ in range(random.choice((1, 1, 1, 2)))]
    body = b"".join(record.encoded() for record in records)
    if not sound and not done and random.random() < 0.5:
        body, what = damaged(random, body)
        done.append(what)
    stored = packed(random, codec, body, sound)
    if not sound and not done and random.random() < 0.7:
        stored, what = damaged(random, stored)
        done.append(f"{what} of what was packed")
    elif not sound and not done:
        count = random.choice((max(1, count - 1), count + 1, 2 * count, 2**31 - 1))
        done.append("count")
    return batch_of(codec, stored, count), f"{codec.name}: {', '.join(done)}"
