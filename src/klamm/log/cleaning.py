"""What compaction leaves of one batch.

A record stays if it is the last one of its key, as far as the log was looked through. One without a value, a tombstone,
tells readers that the key is gone: it stays until `delete.retention.ms` after it was first met here, and the batch
itself carries that deadline (the delete horizon, in place of its base timestamp). Records without a key go.

A batch that loses records keeps its offsets and its producer's sequence numbers. One that loses all of them goes,
unless it is the last of a producer, whose next batch has to follow on it, or the last of its segment; then its header
stays.
A batch whose records cannot be read stays as it is, and neither supersedes nor is superseded: it was stored before
records were looked at, or where they are not.

Control batches stay as they are. Records of transactions can be superseded but supersede nothing, because here nobody
knows whether they were aborted.
"""

from hashlib import blake2b
from typing import TYPE_CHECKING

from klamm.ids import Offset, ProducerId
from klamm.records.batch import Batch
from klamm.records.builder import rebuilt
from klamm.records.compression import Codec
from klamm.records.invalid import InvalidBatch
from klamm.records.record import Record, records_of

if TYPE_CHECKING:
    from klamm.ids import Bytes


class LastOffsets:
    """The last offset of every key in a part of the log. It holds hashes, not keys: these may be large."""

    __slots__ = ("_offsets", "seen_to", "unreadable")

    def __init__(self) -> None:
        self._offsets: dict[bytes, Offset] = {}
        self.unreadable: InvalidBatch | None = None
        """Why the first batch that could not be read could not be."""
        self.seen_to: Offset = 0
        """Where that part of the log ends."""

    def note(self, batch: Batch, view: memoryview, first_offset: Offset) -> None:
        if not batch.is_control and not batch.is_transactional:
            # All of them or none: a record in front of what cannot be read is no reason to remove an older one.
            for record in self.records_of(batch, view) or ():
                if record.key is not None and record.offset >= first_offset:
                    self._offsets[_hash(record.key)] = record.offset
        self.seen_to = batch.next_offset

    def records_of(self, batch: Batch, view: memoryview) -> list[Record] | None:
        """None if they cannot be read."""
        try:
            return list(records_of(view))
        except InvalidBatch as error:
            if self.unreadable is None:
                self.unreadable = InvalidBatch(error.code, f"{batch}: {error}")
            return None

    def is_last(self, key: bytes, offset: Offset) -> bool:
        return offset >= self._offsets.get(_hash(key), -1)

    def __len__(self) -> int:
        return len(self._offsets)


class Cleaner:
    __slots__ = ("_delete_retention_ms", "_last_of_producers", "_last_offsets", "_now_ms")

    def __init__(
        self,
        last_offsets: LastOffsets,
        last_of_producers: dict[ProducerId, Offset],
        delete_retention_ms: int,
        now_ms: int,
    ) -> None:
        self._last_offsets = last_offsets
        self._last_of_producers = last_of_producers
        self._delete_retention_ms = delete_retention_ms
        self._now_ms = now_ms

    def cleaned(self, batch: Batch, view: memoryview, *, is_last: bool) -> "Bytes | None":
        """The batch as it stays; None if it goes."""
        if batch.is_control:
            return view
        records = self._last_offsets.records_of(batch, view)
        if records is None:
            return view
        horizon_ms = batch.delete_horizon_ms
        kept = [record for record in records if self._stays(record, horizon_ms)]
        if not kept:
            if is_last or self._last_of_producers.get(batch.producer_id) == batch.last_offset:
                return rebuilt(view, [], Codec.NONE) if records else view
            return None
        if horizon_ms is None and any(record.value is None for record in kept):
            horizon_ms = self._now_ms + self._delete_retention_ms
            return rebuilt(view, kept, batch.codec, delete_horizon_ms=horizon_ms)
        return view if len(kept) == len(records) else rebuilt(view, kept, batch.codec)

    def _stays(self, record: Record, horizon_ms: int | None) -> bool:
        if record.offset >= self._last_offsets.seen_to:
            return True
        if record.key is None or not self._last_offsets.is_last(record.key, record.offset):
            return False
        return record.value is not None or horizon_ms is None or self._now_ms < horizon_ms


def _hash(key: bytes) -> bytes:
    return blake2b(key, digest_size=16).digest()
