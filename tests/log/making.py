"""Small things the log's tests are made of: batches, logs, and what a reader finds in them."""

from collections.abc import Iterable
from typing import NamedTuple

from klamm.facts import Fact
from klamm.ids import Now
from klamm.log.files import Files
from klamm.log.log import Log
from klamm.log.settings import LogSettings
from klamm.records.batch import Batch, batches, intact
from klamm.records.builder import BatchBuilder
from klamm.records.compression import Codec
from klamm.records.record import Record, records_of

NOW = Now(monotonic_ms=0.0, wall_ms=1_700_000_000_000)
DIRECTORY = "orders-0"

SMALL = LogSettings(segment_bytes=2_000, index_interval_bytes=200, file_delete_delay_ms=0)


def later(ms: int) -> Now:
    return Now(NOW.monotonic_ms + ms, NOW.wall_ms + ms)


def batch_of(
    *values: bytes | None,
    keys: Iterable[bytes | None] | None = None,
    timestamp: int = NOW.wall_ms,
    step_ms: int = 1,
    producer: tuple[int, int, int] | None = None,
    codec: Codec = Codec.NONE,
    attributes: int = 0,
) -> memoryview:
    """A producer's batch; `producer` is its id, epoch and first sequence."""
    producer_id, epoch, sequence = producer or (-1, -1, -1)
    builder = BatchBuilder(
        codec, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence, attributes=attributes
    )
    names = list(keys) if keys is not None else [b"key"] * len(values)
    for number, (key, value) in enumerate(zip(names, values, strict=True)):
        builder.append(key, value, timestamp + number * step_ms if timestamp >= 0 else -1)
    return memoryview(builder.build())


def batch_of_size(size: int, *, timestamp: int = NOW.wall_ms) -> memoryview:
    """A batch of one record and exactly so many bytes."""
    padding = size - len(batch_of(b"", timestamp=timestamp))
    for length in (padding, padding - 1, padding - 2):
        batch = batch_of(bytes(length), timestamp=timestamp)
        if len(batch) == size:
            return batch
    raise ValueError(f"no batch has {size} bytes")


class Stored(NamedTuple):
    header: Batch
    data: bytes

    @property
    def records(self) -> list[Record]:
        return list(records_of(self.data))


def opened(
    files: Files,
    settings: LogSettings = SMALL,
    *,
    clean: bool = False,
    recovery_point: int = 0,
    start_offset: int = 0,
    told: list[Fact] | None = None,
    now: Now = NOW,
) -> Log:
    return Log.open(
        DIRECTORY,
        files,
        settings,
        now,
        clean=clean,
        recovery_point=recovery_point,
        start_offset=start_offset,
        tell=(told if told is not None else []).append,
    )


def everything(log: Log, *, max_bytes: int = 300) -> list[Stored]:
    """All batches, as a reader meets them, each of them checked."""
    found: list[Stored] = []
    offset = log.start_offset
    while offset < log.end_offset:
        part = log.read(offset, max_bytes, log.end_offset)
        if part.size == 0:
            break
        data = bytes(part)
        assert len(data) == part.size
        for position, header in batches(data):
            view = memoryview(data)[position : position + header.size_bytes]
            intact(view)
            found.append(Stored(header, bytes(view)))
        assert part.next_offset > offset, "a reader that does not move on would ask for ever"
        offset = part.next_offset
    return found


def values_of(log: Log) -> list[tuple[int, bytes | None]]:
    return [(record.offset, record.value) for stored in everything(log) for record in stored.records]
