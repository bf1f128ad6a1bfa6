"""The settings of one log: a topic's configuration as numbers, with Kafka's defaults.

They may change while the log is open (`Log.settings = ...`); what is already on disk stays as it is.
"""

from dataclasses import dataclass

from klamm.records.compression import Codec

DAY_MS = 24 * 60 * 60 * 1000
FOREVER_MS = 2**63 - 1


@dataclass(frozen=True, slots=True)
class LogSettings:
    segment_bytes: int = 1024 * 1024 * 1024
    segment_ms: int = 7 * DAY_MS
    segment_jitter_ms: int = 0
    retention_ms: int = 7 * DAY_MS
    """-1 keeps records for ever, however old."""
    retention_bytes: int = -1
    """-1 keeps records for ever, however many."""
    compact: bool = False
    delete: bool = True
    max_message_bytes: int = 1024 * 1024 + 12
    index_interval_bytes: int = 4096
    segment_index_bytes: int = 10 * 1024 * 1024
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = FOREVER_MS
    delete_retention_ms: int = DAY_MS
    min_cleanable_dirty_ratio: float = 0.5
    file_delete_delay_ms: int = 60_000
    append_time: bool = False
    """`message.timestamp.type` is LogAppendTime."""
    timestamp_before_max_ms: int = FOREVER_MS
    timestamp_after_max_ms: int = 60 * 60 * 1000
    validate: bool = True
    """`klamm.validate.records`"""
    compression: Codec | None = None
    """None keeps the producer's codec."""
    compression_level: int | None = None
    max_producers: int = 20_000
    flush_messages: int = FOREVER_MS
    flush_ms: int = FOREVER_MS
