"""A topic has what it sets itself, else what its broker has for all, else Kafka's default."""

import pytest

from klamm.config import BrokerConfig, topic_values, validate_topic_config, validate_topic_configs
from klamm.errors import ErrorCode, KafkaError

DAY_MS = 86_400_000


def broker(**settings: str) -> BrokerConfig:
    return BrokerConfig.from_properties(
        (), {"node.id": "0"} | {name.replace("_", "."): text for name, text in settings.items()}
    )


def refusal(name: str, value: str | None) -> str:
    with pytest.raises(KafkaError) as caught:
        validate_topic_config(name, value)
    assert caught.value.code is ErrorCode.INVALID_CONFIG
    return str(caught.value)


def test_a_topic_without_wishes_has_kafkas_defaults() -> None:
    values = topic_values(broker(), {})
    assert values["retention.ms"] == 7 * DAY_MS
    assert values["segment.bytes"] == 1 << 30
    assert values["segment.ms"] == 7 * DAY_MS
    assert values["cleanup.policy"] == ("delete",)
    assert values["flush.messages"] == values["flush.ms"] == (1 << 63) - 1
    assert values["compression.type"] == "producer"
    assert values["internal.segment.bytes"] is None


def test_the_finest_unit_of_the_broker_wins_whatever_the_order() -> None:
    assert topic_values(broker(log_retention_hours="2"), {})["retention.ms"] == 7_200_000
    assert topic_values(broker(log_retention_hours="2", log_retention_minutes="3"), {})["retention.ms"] == 180_000
    both = broker(log_retention_hours="2", log_retention_ms="5", log_roll_hours="1", log_roll_jitter_hours="2")
    assert topic_values(both, {})["retention.ms"] == 5
    assert topic_values(both, {})["segment.ms"] == 3_600_000
    assert topic_values(both, {})["segment.jitter.ms"] == 7_200_000


def test_a_negative_time_keeps_records_for_ever() -> None:
    assert topic_values(broker(log_retention_hours="-1"), {})["retention.ms"] == -1


def test_the_flush_scheduler_stands_in_for_the_flush_interval() -> None:
    assert topic_values(broker(log_flush_scheduler_interval_ms="70"), {})["flush.ms"] == 70
    scheduled = broker(log_flush_scheduler_interval_ms="70", log_flush_interval_ms="30")
    assert topic_values(scheduled, {})["flush.ms"] == 30


def test_a_topics_own_setting_wins_and_one_of_a_newer_version_is_left_out() -> None:
    values = topic_values(broker(message_max_bytes="2000"), {"max.message.bytes": " 3000 ", "from.the.future": "1"})
    assert values["max.message.bytes"] == 3000
    assert "from.the.future" not in values


def test_altering_the_broker_reaches_its_topics() -> None:
    config = broker(log_retention_hours="2")
    altered = config.with_dynamic(
        {"log.retention.ms": "60000"}, {"log.retention.ms": "70000", "log.segment.bytes": "2000000"}
    )
    assert topic_values(altered, {})["retention.ms"] == 60_000
    assert topic_values(altered, {})["segment.bytes"] == 2_000_000
    assert topic_values(altered.with_dynamic({}, {}), {}) == topic_values(config, {})


def test_a_running_broker_leaves_out_what_it_does_not_understand() -> None:
    config = broker().with_dynamic({"from.the.future": "1", "node.id": "9"}, {"log.segment.bytes": "many"})
    assert config.node_id == 0
    assert config.dynamic_broker == config.dynamic_default == {}
    assert len(config.warnings) == 3 and all(warning.startswith("left out: ") for warning in config.warnings)


def test_refusals_are_in_kafkas_words() -> None:
    assert refusal("retention.ms", "-2") == "Invalid value -2 for configuration retention.ms: Value must be at least -1"
    assert refusal("retention.ms", "abc").endswith("retention.ms: Not a number of type LONG")
    assert refusal("cleanup.policy", "compact,foo") == (
        "Invalid value foo for configuration cleanup.policy: String must be one of: compact, delete"
    )
    assert refusal("preallocate", "yes").endswith("Expected value to be either true or false")
    assert refusal("compression.gzip.level", "0").endswith("Value must be between 1 and 9 or equal to -1")
    assert refusal("max.message.bytes", "99999999999").endswith("Not a number of type INT")
    assert refusal("min.cleanable.dirty.ratio", "NaN").endswith("Not a number of type DOUBLE")
    assert refusal("retention.ms", None) == "Null value not supported for topic configs: retention.ms"


def test_an_unknown_setting_is_refused_with_the_nearest_right_name() -> None:
    assert refusal("retentoin.ms", "1") == "Unknown topic config name: retentoin.ms (did you mean retention.ms?)"
    assert refusal("qwertz", "1") == "Unknown topic config name: qwertz"


def test_tiered_storage_is_refused_unless_it_is_off() -> None:
    assert validate_topic_config("remote.storage.enable", "false") is False
    assert "Tiered storage is not implemented" in refusal("remote.storage.enable", "true")


def test_settings_that_contradict_each_other() -> None:
    validate_topic_configs(broker(), {"min.compaction.lag.ms": "5", "max.compaction.lag.ms": "10"})
    with pytest.raises(KafkaError, match=r"min.compaction.lag.ms \(10\) > max.compaction.lag.ms \(5\)"):
        validate_topic_configs(broker(), {"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "5"})
    with pytest.raises(KafkaError, match=r"min.compaction.lag.ms \(10\) > max.compaction.lag.ms \(7\)"):
        validate_topic_configs(broker(log_cleaner_max_compaction_lag_ms="7"), {"min.compaction.lag.ms": "10"})
