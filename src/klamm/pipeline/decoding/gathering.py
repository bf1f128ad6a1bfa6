"""Batches that are decoded together, because numpy costs as much for one row as for a thousand.

Many producers send a record or two at a time, so batches are gathered until they make a good number of rows. Records
that are not compressed stay where they are in the response. Others are decompressed and put one behind the other, so
that the decoder's output buffer, which is as large as the worst case, lives no longer than its batch.
"""

from collections.abc import Iterable, Iterator

from klamm.errors import ErrorCode
from klamm.pipeline.decoding.walking import Visible
from klamm.records.batch import SMALLEST_RECORD_BYTES
from klamm.records.compression import Codec, decompressed
from klamm.records.invalid import InvalidBatch

LARGEST_BATCH_BYTES = 512 * 2**20
"""Of one batch when decompressed. A broker takes what it is configured to; this is only against a batch that lies."""

ENOUGH_ROWS = 10_000
_ENOUGH_BYTES = 16 * 2**20
_CODECS = tuple(Codec)


class Gathered:
    """Some batches, and where the records of each stand in `buffer`."""

    __slots__ = ("batches", "begins", "buffer", "ends", "rows")

    def __init__(self, buffer: "memoryview | bytearray") -> None:
        self.buffer = buffer
        self.batches: list[Visible] = []
        self.begins: list[int] = []
        self.ends: list[int] = []
        self.rows = 0

    def add(self, batch: Visible, begin: int, end: int) -> None:
        if batch.rows < 1 or batch.rows * SMALLEST_RECORD_BYTES > end - begin:
            raise InvalidBatch(
                ErrorCode.INVALID_RECORD,
                f"the batch at offset {batch.base_offset} claims {batch.rows} records in {end - begin} bytes",
            )
        self.batches.append(batch)
        self.begins.append(begin)
        self.ends.append(end)
        self.rows += batch.rows

    def is_full(self) -> bool:
        return self.rows >= ENOUGH_ROWS or (self.rows > 0 and self.ends[-1] - self.begins[0] >= _ENOUGH_BYTES)


def gathered(response: memoryview, batches: Iterable[Visible]) -> Iterator[Gathered]:
    """In the order of the log. A group holds the response's own bytes or copies, so a change of codec may end it."""
    group = Gathered(response)
    for batch in batches:
        if group.is_full() or group.rows + batch.rows > 2 * ENOUGH_ROWS:
            yield from _if_any(group)
            group = Gathered(response)
        if not batch.codec and group.buffer is response:
            group.add(batch, batch.begin, batch.end)
            continue
        body = _body(response, batch)
        if group.buffer is response or len(body) >= _ENOUGH_BYTES:
            yield from _if_any(group)
            # A large one is not copied: it is a group of its own, because now it is full.
            group = Gathered(body if len(body) >= _ENOUGH_BYTES else bytearray())
        begin = len(group.buffer) if isinstance(group.buffer, bytearray) else 0
        if isinstance(group.buffer, bytearray):
            group.buffer += body
        group.add(batch, begin, begin + len(body))
    yield from _if_any(group)


def _if_any(group: Gathered) -> Iterator[Gathered]:
    if group.rows:
        yield group


def _body(response: memoryview, batch: Visible) -> memoryview:
    packed = response[batch.begin : batch.end]
    if batch.codec >= len(_CODECS):
        raise InvalidBatch(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"no codec {batch.codec} is known")
    return decompressed(_CODECS[batch.codec], packed, LARGEST_BATCH_BYTES)
