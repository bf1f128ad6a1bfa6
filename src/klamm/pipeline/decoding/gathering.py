"""Batches that are decoded together, because numpy costs as much for one row as for a thousand.

Many producers send a record or two at a time. Batches are gathered until they make a good number of rows. Records that
are not compressed stay where they are; others are decompressed and put one behind the other.
"""

from collections.abc import Iterable, Iterator
from itertools import accumulate

from klamm.errors import ErrorCode
from klamm.pipeline.decoding.walking import Visible
from klamm.records.batch import SMALLEST_RECORD_BYTES
from klamm.records.compression import Codec, decompressed
from klamm.records.invalid import InvalidBatch

LARGEST_BATCH_BYTES = 512 * 2**20
"""Of one batch when decompressed. A broker takes what it is configured to; this is only against a batch that lies."""

ENOUGH_ROWS = 10_000
_ENOUGH_BYTES = 16 * 2**20


class Gathered:
    """Some batches, and where the records of each stand in `buffer`."""

    __slots__ = ("_bodies", "batches", "begins", "buffer", "ends", "rows", "size_bytes")

    def __init__(self, response: memoryview) -> None:
        self.buffer = response
        self.batches: list[Visible] = []
        self.begins: list[int] = []
        self.ends: list[int] = []
        self.rows = 0
        self.size_bytes = 0
        self._bodies: list[memoryview] = []

    def add(self, batch: Visible, body: memoryview) -> None:
        self.batches.append(batch)
        self._bodies.append(body)
        self.rows += batch.rows
        self.size_bytes += len(body)

    def packed(self) -> "Gathered":
        """Ready to decode: with a buffer of its own, unless the response can be that."""
        if not any(batch.codec for batch in self.batches):
            self.begins = [batch.begin for batch in self.batches]
            self.ends = [batch.end for batch in self.batches]
            return self
        self.buffer = self._bodies[0] if len(self._bodies) == 1 else memoryview(b"".join(self._bodies))
        self.ends = list(accumulate(map(len, self._bodies)))
        self.begins = [0, *self.ends[:-1]]
        return self


def gathered(response: memoryview, batches: Iterable[Visible]) -> Iterator[Gathered]:
    group = Gathered(response)
    for batch in batches:
        body = _body(response, batch)
        if group.batches and (
            group.rows + batch.rows > 2 * ENOUGH_ROWS or group.size_bytes + len(body) > _ENOUGH_BYTES
        ):
            yield group.packed()
            group = Gathered(response)
        group.add(batch, body)
        if group.rows >= ENOUGH_ROWS:
            yield group.packed()
            group = Gathered(response)
    if group.batches:
        yield group.packed()


def _body(response: memoryview, batch: Visible) -> memoryview:
    body = response[batch.begin : batch.end]
    if batch.codec:
        if batch.codec > Codec.ZSTD:
            raise InvalidBatch(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"no codec {batch.codec} is known")
        body = decompressed(Codec(batch.codec), body, LARGEST_BATCH_BYTES)
    if batch.rows < 1 or batch.rows * SMALLEST_RECORD_BYTES > len(body):
        raise InvalidBatch(
            ErrorCode.INVALID_RECORD,
            f"the batch at offset {batch.base_offset} claims {batch.rows} records in {len(body)} bytes",
        )
    return body
