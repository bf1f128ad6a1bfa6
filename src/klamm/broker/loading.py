"""A shard's records, read from its log in slices.

Only the last record of each key counts, as after compaction, so the log is folded first, by the bytes of the keys, and
what remains is decoded and replayed: groups first, then the offsets, which would else make groups of their own.
"""

from collections.abc import Callable, Iterator
from itertools import islice

from klamm.codec.primitives import Malformed
from klamm.coordinator.records import GroupRecord, OffsetCommitKey, decoded
from klamm.errors import ErrorCode, KafkaError
from klamm.log.log import Log
from klamm.records.batch import batches
from klamm.records.record import records_of

SLICE_BYTES = 64 << 10
REPLAYED_AT_ONCE = 400


class Loading:
    def __init__(self, log: Log, replay: Callable[[GroupRecord], None], skipped: Callable[[str], None]) -> None:
        """`skipped` hears why a record could not be read; the others count all the same."""
        self._log = log
        self._skipped = skipped
        self._replay = replay
        self._last: dict[bytes, bytes | None] = {}
        self._slices = self._loaded()
        self.count = 0
        """Records that were replayed."""

    def step(self) -> bool:
        """One slice; whether all is loaded. Raises what the log raises."""
        return next(self._slices, None) is None

    def _loaded(self) -> Iterator[bool]:
        offset = self._log.start_offset
        while offset < self._log.end_offset:
            found = self._log.read(offset, SLICE_BYTES, self._log.end_offset)
            self._fold(memoryview(bytes(found)))
            if found.next_offset <= offset:
                raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"the log cannot be read from {offset} on")
            offset = found.next_offset
            if offset < self._log.end_offset:
                yield True
        offsets: list[GroupRecord] = []
        entries = iter(self._last.items())
        while some := list(islice(entries, REPLAYED_AT_ONCE)):
            for key, value in some:
                record = self._decoded(key, value)
                if record is None or record.value is None:
                    continue
                self.count += 1
                if isinstance(record.key, OffsetCommitKey):
                    offsets.append(record)
                else:
                    self._replay(record)
            if len(some) == REPLAYED_AT_ONCE:
                yield True
        for position in range(0, len(offsets), REPLAYED_AT_ONCE):
            for record in offsets[position : position + REPLAYED_AT_ONCE]:
                self._replay(record)
            if position + REPLAYED_AT_ONCE < len(offsets):
                yield True
        self._last.clear()

    def _decoded(self, key: bytes, value: bytes | None) -> GroupRecord | None:
        try:
            return decoded(key, value)
        except Malformed as error:
            self._skipped(str(error))
            return None

    def _fold(self, view: memoryview) -> None:
        last = self._last
        for position, batch in batches(view):
            if batch.is_control:
                continue
            for record in records_of(view[position : position + batch.size_bytes]):
                if record.key is not None:
                    # Taken out first, so that the order is that of the last records.
                    last.pop(record.key, None)
                    last[record.key] = record.value
