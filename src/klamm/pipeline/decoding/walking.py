"""From batch to batch through a Fetch response: which of them a reader may see.

Every batch is checked as the log's own are: format, length, CRC, and offsets that ascend, because the base offset is
outside the CRC. A last batch that was cut off is left for the next fetch. Control batches carry no rows. Of an aborted
transaction nothing is seen: the response names the producer and where the transaction began, and the abort marker in
the log says where it ended.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from struct import Struct
from typing import NamedTuple

from klamm.errors import ErrorCode
from klamm.records.batch import (
    ATTRIBUTES_AT,
    CODEC_BITS,
    CONTROL_BIT,
    HEADER_BYTES,
    LENGTH_AT,
    MAGIC,
    MAGIC_AT,
    OVERHEAD_BYTES,
    TRANSACTIONAL_BIT,
)
from klamm.records.control import ControlType, control_type_of
from klamm.records.crc import crc32c
from klamm.records.invalid import InvalidBatch
from klamm.records.record import records_of

_SMALLEST_LENGTH = HEADER_BYTES - OVERHEAD_BYTES
_SMALLEST_LEGACY_LENGTH = 14
_LARGEST_OFFSET = 2**63 - 1

# A batch's header without what is read later for many at once, or never: unpacking costs by the field.
_unpack = Struct(">qi4xbIhi16xq6xi").unpack_from


class Visible(NamedTuple):
    """A batch with rows: it is at `at..end` of the response, its records packed by `codec`."""

    at: int
    end: int
    codec: int
    rows: int


class Walk:
    """The visible batches with rows in `start..end`. Afterwards `next_offset` is where to fetch next."""

    def __init__(self, records: memoryview, start: int, end: int, aborted: Sequence[tuple[int, int]] = ()) -> None:
        self.next_offset = start
        self._records = records
        self._start, self._end = start, end
        self._aborted = _Aborted(aborted)

    def __iter__(self) -> Iterator[Visible]:
        records, size, start, end = self._records, len(self._records), self._start, self._end
        hides = self._aborted.hides if self._aborted else None
        position, before = 0, -1
        while position + HEADER_BYTES <= size:
            base_offset, length, magic, crc, attributes, last_delta, producer_id, rows = _unpack(records, position)
            batch_end = position + OVERHEAD_BYTES + length
            if magic != MAGIC or length < _SMALLEST_LENGTH:
                raise _strange(base_offset, length, magic)
            if batch_end > size:
                return
            if crc32c(records[position + ATTRIBUTES_AT : batch_end]) != crc:
                raise _corrupt(base_offset, "its CRC does not match its bytes")
            last_offset = base_offset + last_delta
            if not before < base_offset <= last_offset < _LARGEST_OFFSET:
                raise _corrupt(base_offset, f"it claims {base_offset}..{last_offset}, and {before} came before it")
            if base_offset >= end:
                # What lies between was compacted away. To fetch there again would bring this batch again.
                self.next_offset = max(self.next_offset, base_offset)
                return
            before = last_offset
            batch, position = position, batch_end
            if last_offset >= self.next_offset:
                self.next_offset = last_offset + 1
            if hides is not None and hides(records[batch:batch_end], attributes, producer_id, last_offset):
                continue
            if attributes & CONTROL_BIT or last_offset < start:
                continue
            if rows == 0 and length == _SMALLEST_LENGTH:
                continue
            yield Visible(batch, batch_end, attributes & CODEC_BITS, rows)
        if size - position > MAGIC_AT and records[position + MAGIC_AT] != MAGIC:
            base_offset, length = int.from_bytes(records[position:][:8], "big"), records[position + LENGTH_AT :][:4]
            raise _strange(base_offset, int.from_bytes(length, "big"), records[position + MAGIC_AT])


class _Aborted:
    """Which producers are, at this point of the log, in a transaction that will be aborted."""

    def __init__(self, transactions: Sequence[tuple[int, int]]) -> None:
        self._coming = deque(sorted((first_offset, producer_id) for producer_id, first_offset in transactions))
        self._producers: set[int] = set()

    def __bool__(self) -> bool:
        return bool(self._coming or self._producers)

    def hides(self, batch: memoryview, attributes: int, producer_id: int, last_offset: int) -> bool:
        """To be asked of every batch in order, for the markers among them end what they hide."""
        coming, producers = self._coming, self._producers
        while coming and coming[0][0] <= last_offset:
            producers.add(coming.popleft()[1])
        if producer_id not in producers or not attributes & TRANSACTIONAL_BIT:
            return False
        if not attributes & CONTROL_BIT:
            return True
        if any(control_type_of(record) is ControlType.ABORT for record in records_of(batch)):
            producers.discard(producer_id)
        return False


def _strange(offset: int, length: int, magic: int) -> InvalidBatch:
    if length < _SMALLEST_LEGACY_LENGTH or not 0 <= magic <= MAGIC or magic == MAGIC:
        return _corrupt(offset, f"its length is {length} and its format {magic}")
    return InvalidBatch(
        ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
        f"the messages at offset {offset} are in format {magic}, from before Kafka 0.11, and only format 2 can be read"
        " here. Copy them into a new topic first.",
    )


def _corrupt(offset: int, reason: str) -> InvalidBatch:
    return InvalidBatch(ErrorCode.CORRUPT_MESSAGE, f"the batch at offset {offset} is damaged: {reason}")
