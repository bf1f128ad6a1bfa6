"""Batches that are decoded together, because numpy costs as much for one row as for a thousand.

Many producers send a record or two at a time, so batches are gathered until they make a good number of rows. Records
that are not compressed stay where they are in the response. Others are decompressed and put one behind the other, so
that the decoder's output buffer, which is as large as the worst case, lives no longer than its batch.
"""

from collections.abc import Iterable, Iterator

from klamm.errors import ErrorCode
from klamm.pipeline.decoding.walking import Visible
from klamm.records.batch import HEADER_BYTES, SMALLEST_RECORD_BYTES
from klamm.records.compression import Codec, decompressed
from klamm.records.invalid import InvalidBatch

LARGEST_BATCH_BYTES = 512 * 2**20
"""Of one batch when decompressed. A broker takes what it is configured to; this is only against a batch that lies."""

_ENOUGH_ROWS = 65_536
_ENOUGH_BYTES = 16 * 2**20
_CODECS = tuple(Codec)


class Gathered:
    """Some batches: where their headers are in the response, and where in `buffer` the records of each."""

    __slots__ = ("begins", "buffer", "counts", "ends", "heads", "rows")

    def __init__(self, buffer: "memoryview | bytearray") -> None:
        self.buffer = buffer
        self.heads: list[int] = []
        self.counts: list[int] = []
        self.begins: list[int] = []
        self.ends: list[int] = []
        self.rows = 0

    def add(self, head: int, rows: int, begin: int, end: int) -> None:
        if rows < 1 or rows * SMALLEST_RECORD_BYTES > end - begin:
            raise InvalidBatch(ErrorCode.INVALID_RECORD, f"a batch claims {rows} records in {end - begin} bytes")
        self.heads.append(head)
        self.counts.append(rows)
        self.begins.append(begin)
        self.ends.append(end)
        self.rows += rows

    def has_room(self, rows: int) -> bool:
        full = self.rows + rows > _ENOUGH_ROWS or self.ends[-1] - self.begins[0] >= _ENOUGH_BYTES
        return not full


def gathered(response: memoryview, batches: Iterable[Visible]) -> Iterator[Gathered]:
    """In the order of the log. A group holds the response's own bytes or copies, so a change of codec may end it."""
    group = Gathered(response)
    for head, end, codec, rows in batches:
        if group.rows and not group.has_room(rows):
            yield group
            group = Gathered(response)
        if not codec and group.buffer is response:
            group.add(head, rows, head + HEADER_BYTES, end)
            continue
        body = _body(response[head + HEADER_BYTES : end], codec)
        is_large = len(body) >= _ENOUGH_BYTES
        if group.buffer is response or is_large:
            yield from _if_any(group)
            # A large one is not copied: it is a group of its own, because nothing has room behind it.
            group = Gathered(body if is_large else bytearray())
        begin = 0 if is_large else len(group.buffer)
        if isinstance(group.buffer, bytearray):
            group.buffer += body
        group.add(head, rows, begin, begin + len(body))
    yield from _if_any(group)


def _if_any(group: Gathered) -> Iterator[Gathered]:
    if group.rows:
        yield group


def _body(packed: memoryview, codec: int) -> memoryview:
    if codec >= len(_CODECS):
        raise InvalidBatch(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"no codec {codec} is known")
    return decompressed(_CODECS[codec], packed, LARGEST_BATCH_BYTES)
