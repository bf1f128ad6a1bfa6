"""DescribeConfigs shows every setting with its value, its source and its synonyms (trap 17)."""

from klamm.config import (
    BrokerConfig,
    ConfigEntry,
    Kind,
    Source,
    Synonym,
    describe_all_brokers,
    describe_broker,
    describe_topic,
    topic_settings,
    topic_values,
)


def broker(**settings: str) -> BrokerConfig:
    return BrokerConfig.from_properties(
        (), {"node.id": "0"} | {name.replace("_", "."): text for name, text in settings.items()}
    )


def by_name(entries: list[ConfigEntry]) -> dict[str, ConfigEntry]:
    return {entry.name: entry for entry in entries}


def test_a_topic_shows_all_its_settings_or_those_asked_for() -> None:
    entries = describe_topic(broker(), {})
    shown = topic_settings().keys() - {"internal.segment.bytes", "klamm.validate.records"}
    assert [entry.name for entry in entries] == sorted(shown)
    assert all(entry.is_default and not entry.read_only and entry.documentation for entry in entries)
    assert [entry.name for entry in describe_topic(broker(), {}, ["retention.ms", "nothing"])] == ["retention.ms"]
    assert describe_topic(broker(), {}, []) == entries


def test_reading_all_and_writing_all_back_changes_nothing() -> None:
    config = broker(log_retention_hours="1")
    entries = describe_topic(config, {"cleanup.policy": "compact"})
    written_back = {entry.name: entry.value for entry in entries if entry.value is not None}
    assert topic_values(config, written_back) == topic_values(config, {"cleanup.policy": "compact"})


def test_synonyms_tell_every_layer_and_the_first_counts() -> None:
    config = broker(log_retention_hours="100").with_dynamic(
        {"log.retention.ms": "60000"}, {"log.retention.ms": "70000"}
    )
    entry = by_name(describe_topic(config, {"retention.ms": "5000"}))["retention.ms"]
    below = (
        Synonym("log.retention.ms", "60000", Source.DYNAMIC_BROKER),
        Synonym("log.retention.ms", "70000", Source.DYNAMIC_DEFAULT_BROKER),
        Synonym("log.retention.hours", "100", Source.STATIC_BROKER),
        Synonym("log.retention.hours", "168", Source.DEFAULT),
    )
    assert entry.synonyms == (Synonym("retention.ms", "5000", Source.DYNAMIC_TOPIC), *below)
    assert (entry.value, entry.source, entry.kind) == ("5000", Source.DYNAMIC_TOPIC, Kind.LONG)
    entry = by_name(describe_topic(config, {}))["retention.ms"]
    assert entry.synonyms == below
    assert (entry.value, entry.source, entry.is_default) == ("60000", Source.DYNAMIC_BROKER, False)


def test_a_time_in_hours_is_shown_as_the_source_of_one_in_milliseconds() -> None:
    entry = by_name(describe_topic(broker(log_roll_hours="50"), {}))["segment.ms"]
    assert (entry.value, entry.source) == ("180000000", Source.STATIC_BROKER)
    assert entry.synonyms[0] == Synonym("log.roll.hours", "50", Source.STATIC_BROKER)


def test_values_are_written_as_kafka_writes_them() -> None:
    texts = {
        "unclean.leader.election.enable": "TRUE",
        "segment.bytes": "+2000000",
        "min.cleanable.dirty.ratio": "0.250",
    }
    shown = by_name(describe_topic(broker(), texts | {"cleanup.policy": "compact , delete"}))
    assert shown["unclean.leader.election.enable"].value == "true"
    assert shown["segment.bytes"].value == "2000000"
    assert shown["min.cleanable.dirty.ratio"].value == "0.25"
    assert shown["cleanup.policy"].value == "compact,delete"


def test_a_broker_shows_what_is_fixed_and_hides_what_is_secret() -> None:
    shown = by_name(describe_broker(broker(num_partitions="3")))
    assert shown["num.partitions"] == ConfigEntry(
        "num.partitions",
        "3",
        True,
        Source.STATIC_BROKER,
        False,
        False,
        (Synonym("num.partitions", "3", Source.STATIC_BROKER), Synonym("num.partitions", "1", Source.DEFAULT)),
        Kind.INT,
        "How many partitions a topic gets when its creator does not say.",
    )
    assert not shown["log.retention.ms"].read_only
    assert shown["ssl.key.password"].is_sensitive and shown["ssl.key.password"].value is None
    assert shown["log.cleaner.io.max.bytes.per.second"].value == "1.7976931348623157E308"
    assert "log.initial.task.delay.ms" not in shown
    assert shown["broker.id"].value == shown["node.id"].value == "0"
    assert "log.initial.task.delay.ms" in by_name(describe_broker(broker(log_initial_task_delay_ms="5")))


def test_what_a_finer_unit_sets_is_not_said_of_the_coarser_one() -> None:
    shown = by_name(describe_broker(broker(log_retention_ms="5").with_dynamic({}, {"log.retention.ms": "9"})))
    assert shown["log.retention.ms"].synonyms == (
        Synonym("log.retention.ms", "9", Source.DYNAMIC_DEFAULT_BROKER),
        Synonym("log.retention.ms", "5", Source.STATIC_BROKER),
        Synonym("log.retention.hours", "168", Source.DEFAULT),
    )
    assert shown["log.retention.minutes"].value is None and shown["log.retention.minutes"].synonyms == ()
    assert shown["log.retention.hours"].synonyms == (Synonym("log.retention.hours", "168", Source.DEFAULT),)


def test_all_brokers_show_only_what_was_set_for_all_of_them() -> None:
    config = broker(num_partitions="3").with_dynamic({"log.retention.ms": "1"}, {"log.segment.bytes": "2000000"})
    (entry,) = describe_all_brokers(config)
    assert (entry.name, entry.value, entry.source) == ("log.segment.bytes", "2000000", Source.DYNAMIC_DEFAULT_BROKER)
    assert entry.synonyms == (Synonym("log.segment.bytes", "2000000", Source.DYNAMIC_DEFAULT_BROKER),)
