"""What becomes of a producer's batch before it is appended.

Every record is looked at (`records/validation.py`), unless `klamm.validate.records` says no: then only where the topic
is compacted (every record needs a key) or the header shows a time outside the window. The producer is told which
records are wrong. A header whose largest timestamp is not that of its records is corrected. Another codec than the
producer's (`compression.type`) packs them anew, LogAppendTime changes the header.

A look may take long; who appends may say what to do then.
"""

from klamm.errors import ErrorCode, KafkaError
from klamm.log.settings import LogSettings
from klamm.records.batch import Batch, read_header, set_append_time, set_max_timestamp
from klamm.records.builder import recompressed
from klamm.records.compression import DECOMPRESSED_LIMIT_BYTES
from klamm.records.decompression import MOST_BYTES
from klamm.records.validation import Built, Validation, validated
from klamm.records.walking import LATEST_MS

LARGEST_RATIO = 16
LEAST_LIMIT_BYTES = 1 << 20
"""Where records have to be unpacked as a whole, by compaction or for another codec, a batch may be so many times larger
than `max.message.bytes` then, or so large in any case."""


class TakesLong(Exception):  # noqa: N818
    """Nothing was appended yet: there is more to look at than one step should. Do it, and append again with this."""

    def __init__(self, validation: Validation) -> None:
        self.validation = validation


def is_timely(batch: Batch, settings: LogSettings, now_ms: int) -> bool:
    """By the header alone. -1 is no time at all."""
    return (
        batch.max_timestamp - now_ms <= settings.timestamp_after_max_ms
        and (now_ms - batch.base_timestamp <= settings.timestamp_before_max_ms or batch.base_timestamp < 0)
    )  # fmt: skip


def youngest_of(
    view: memoryview, batch: Batch, settings: LogSettings, now_ms: int, done: Validation | Built | None, may_wait: bool
) -> int:
    """The largest timestamp of records of which each may be stored, or an `InvalidBatch` that says what is wrong."""
    if done is not None:
        return done.youngest
    found = validated(
        view,
        batch,
        settings.compact,
        0 if settings.append_time else now_ms - settings.timestamp_before_max_ms,
        LATEST_MS if settings.append_time else now_ms + settings.timestamp_after_max_ms,
        unpacked_limit(settings) if settings.compact or settings.compression is not None else MOST_BYTES,
    )
    if found.__class__ is int:
        return found
    assert isinstance(found, Validation)
    if may_wait:
        raise TakesLong(found)
    return found.finish()


def admitted(view: memoryview, batch: Batch, settings: LogSettings, now_ms: int) -> tuple[memoryview, Batch]:
    """The batch as this topic stores it."""
    if settings.compression is not None and settings.compression != batch.codec:
        limit = unpacked_limit(settings)
        view = memoryview(recompressed(view, settings.compression, level=settings.compression_level, limit=limit))
        check_size(len(view), settings)
    if settings.append_time:
        set_append_time(view, now_ms)
    return view, read_header(view)


def with_max_timestamp(view: memoryview, youngest_ms: int) -> Batch:
    """Some clients write the time of another record into the header."""
    set_max_timestamp(view, youngest_ms)
    return read_header(view)


def unpacked_limit(settings: LogSettings) -> int:
    return min(DECOMPRESSED_LIMIT_BYTES, max(LEAST_LIMIT_BYTES, LARGEST_RATIO * settings.max_message_bytes))


def check_size(size: int, settings: LogSettings) -> None:
    if size > settings.max_message_bytes:
        raise KafkaError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"a batch of {size} bytes is larger than max.message.bytes={settings.max_message_bytes}",
        )
