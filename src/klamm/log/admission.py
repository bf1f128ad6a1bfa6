"""What a topic's own rules do to a producer's batch before it is appended.

Most topics have none but a window for timestamps, which the header answers. The records are looked at only if the
topic is compacted (every record needs a key), or if the header shows a time outside the window; then the producer is
told which records are wrong. Another codec than the producer's (`compression.type`) packs them anew, LogAppendTime
changes the header.
"""

from klamm.errors import ErrorCode, KafkaError
from klamm.log.settings import LogSettings
from klamm.records.batch import Batch, read_header, set_append_time, set_max_timestamp
from klamm.records.builder import recompressed
from klamm.records.compression import DECOMPRESSED_LIMIT_BYTES
from klamm.records.record import validate_records

LARGEST_RATIO = 16
LEAST_LIMIT_BYTES = 1 << 20
"""A batch may be so many times larger than `max.message.bytes` once it is decompressed, or so large in any case."""


def is_timely(batch: Batch, settings: LogSettings, now_ms: int) -> bool:
    """By the header alone. -1 is no time at all."""
    return (
        batch.max_timestamp - now_ms <= settings.timestamp_after_max_ms
        and (now_ms - batch.base_timestamp <= settings.timestamp_before_max_ms or batch.base_timestamp < 0)
    )  # fmt: skip


def admitted(view: memoryview, batch: Batch, settings: LogSettings, now_ms: int) -> tuple[memoryview, Batch]:
    """The batch as this topic stores it, or an `InvalidRecords` that names what is wrong with it."""
    suspicious = not settings.append_time and not is_timely(batch, settings, now_ms)
    limit = min(DECOMPRESSED_LIMIT_BYTES, max(LEAST_LIMIT_BYTES, LARGEST_RATIO * settings.max_message_bytes))
    if settings.compact or suspicious:
        youngest = validate_records(
            view,
            batch,
            need_keys=settings.compact,
            earliest_ms=None if settings.append_time else now_ms - settings.timestamp_before_max_ms,
            latest_ms=None if settings.append_time else now_ms + settings.timestamp_after_max_ms,
            limit=limit,
        )
        if suspicious:
            # The records are fine: some clients write the time of another record into the header.
            set_max_timestamp(view, youngest)
    if settings.compression is not None and settings.compression != batch.codec:
        view = memoryview(recompressed(view, settings.compression, level=settings.compression_level, limit=limit))
        check_size(len(view), settings)
    if settings.append_time:
        set_append_time(view, now_ms)
    return view, read_header(view)


def check_size(size: int, settings: LogSettings) -> None:
    if size > settings.max_message_bytes:
        raise KafkaError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"a batch of {size} bytes is larger than max.message.bytes={settings.max_message_bytes}",
        )
