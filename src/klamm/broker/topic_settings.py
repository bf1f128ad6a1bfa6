"""A topic's settings, by Kafka's names, as the numbers its partitions work with."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from klamm.config import BrokerConfig, topic_values
from klamm.log.settings import LogSettings
from klamm.records.compression import Codec, by_name

LEVELS = {
    Codec.GZIP: "compression.gzip.level",
    Codec.LZ4: "compression.lz4.level",
    Codec.ZSTD: "compression.zstd.level",
}
CODECS_DEFAULT = -1


class TopicSettings(NamedTuple):
    log: LogSettings
    min_in_sync_replicas: int


def topic_settings(config: BrokerConfig, overrides: Mapping[str, str]) -> TopicSettings:
    values: dict[str, Any] = topic_values(config, overrides)
    kind = values["compression.type"]
    codec = None if kind == "producer" else Codec.NONE if kind == "uncompressed" else by_name(kind)
    level = values[LEVELS[codec]] if codec in LEVELS else None
    log = LogSettings(
        segment_bytes=values["internal.segment.bytes"] or values["segment.bytes"],
        segment_ms=values["segment.ms"],
        segment_jitter_ms=values["segment.jitter.ms"],
        retention_ms=values["retention.ms"],
        retention_bytes=values["retention.bytes"],
        compact="compact" in values["cleanup.policy"],
        delete="delete" in values["cleanup.policy"],
        max_message_bytes=values["max.message.bytes"],
        index_interval_bytes=values["index.interval.bytes"],
        segment_index_bytes=values["segment.index.bytes"],
        min_compaction_lag_ms=values["min.compaction.lag.ms"],
        max_compaction_lag_ms=values["max.compaction.lag.ms"],
        delete_retention_ms=values["delete.retention.ms"],
        min_cleanable_dirty_ratio=values["min.cleanable.dirty.ratio"],
        file_delete_delay_ms=values["file.delete.delay.ms"],
        append_time=values["message.timestamp.type"] == "LogAppendTime",
        timestamp_before_max_ms=values["message.timestamp.before.max.ms"],
        timestamp_after_max_ms=values["message.timestamp.after.max.ms"],
        validate=values["klamm.validate.records"],
        compression=codec,
        compression_level=None if level == CODECS_DEFAULT and codec is Codec.GZIP else level,
        max_producers=config.integer("klamm.partition.max.producers"),
        flush_messages=values["flush.messages"],
        flush_ms=values["flush.ms"],
    )
    return TopicSettings(log, values["min.insync.replicas"])
