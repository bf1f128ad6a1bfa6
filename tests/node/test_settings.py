"""Settings do what they say, with another value than their default: those that no other story is about.

Which setting is exercised where stands in tests/config/test_every_setting_is_exercised.py.
"""

from typing import Any

import pytest

from klamm.broker.facts import PartitionFailed
from klamm.config import BrokerConfig, broker_settings
from klamm.coordinator.settings import GroupSettings
from klamm.errors import ErrorCode
from klamm.ids import TopicPartition
from klamm.log import checkpoint
from klamm.log.settings import LogSettings
from klamm.metadata.image import Image
from klamm.quorum.settings import QuorumSettings
from klamm.records.compression import Codec
from klamm.wire.apis import BROKER_HEARTBEAT
from klamm.wire.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
from klamm.wire.messages.find_coordinator import FindCoordinatorRequest
from klamm.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.node.cluster_world import ClusterWorld
from tests.node.requests import NAMED, batch_of, create, fetch, fetched, produce, producer_id, read_all, send
from tests.node.test_housekeeping import compacted_topic, write_keys
from tests.node.world import Client, World

HOUR_MS = 3_600_000


def broker_config(settings: dict[str, str]) -> BrokerConfig:
    return BrokerConfig.from_properties([], {"node.id": "0"} | settings)


def alter_brokers(client: Client, name: str, value: str) -> None:
    resource = AlterConfigsResource(
        resource_type=4, resource_name="", configs=[AlterableConfig(name=name, config_operation=0, value=value)]
    )
    answer = client.ask(IncrementalAlterConfigsRequest(resources=[resource]))
    assert answer.responses[0].error_code == ErrorCode.NONE, answer.responses[0].error_message


# What a topic takes from its broker.

GZIP = {"compression.type": "gzip"}
LZ4 = {"compression.type": "lz4"}
ZSTD = {"compression.type": "zstd"}
OF_TOPICS: list[tuple[str, str, dict[str, str], str, object]] = [
    ("compression.gzip.level", "1", GZIP, "compression_level", 1),
    ("compression.lz4.level", "3", LZ4, "compression_level", 3),
    ("compression.type", "zstd", {}, "compression", Codec.ZSTD),
    ("compression.zstd.level", "19", ZSTD, "compression_level", 19),
    ("log.cleaner.delete.retention.ms", "700", {}, "delete_retention_ms", 700),
    ("log.cleaner.max.compaction.lag.ms", "701", {}, "max_compaction_lag_ms", 701),
    ("log.cleaner.min.cleanable.ratio", "0.25", {}, "min_cleanable_dirty_ratio", 0.25),
    ("log.cleaner.min.compaction.lag.ms", "702", {}, "min_compaction_lag_ms", 702),
    ("log.cleanup.policy", "compact", {}, "compact", True),
    ("log.flush.interval.messages", "703", {}, "flush_messages", 703),
    ("log.flush.interval.ms", "704", {}, "flush_ms", 704),
    ("log.flush.scheduler.interval.ms", "705", {}, "flush_ms", 705),
    ("log.index.interval.bytes", "706", {}, "index_interval_bytes", 706),
    ("log.index.size.max.bytes", "707", {}, "segment_index_bytes", 707),
    ("log.message.timestamp.after.max.ms", "708", {}, "timestamp_after_max_ms", 708),
    ("log.message.timestamp.before.max.ms", "709", {}, "timestamp_before_max_ms", 709),
    ("log.message.timestamp.type", "LogAppendTime", {}, "append_time", True),
    ("log.retention.bytes", "710", {}, "retention_bytes", 710),
    ("log.retention.hours", "3", {}, "retention_ms", 3 * HOUR_MS),
    ("log.retention.minutes", "30", {}, "retention_ms", HOUR_MS // 2),
    ("log.retention.ms", "711", {}, "retention_ms", 711),
    ("log.roll.hours", "2", {}, "segment_ms", 2 * HOUR_MS),
    ("log.roll.jitter.hours", "1", {}, "segment_jitter_ms", HOUR_MS),
    ("log.roll.jitter.ms", "712", {}, "segment_jitter_ms", 712),
    ("log.roll.ms", "713", {}, "segment_ms", 713),
    ("log.segment.bytes", "1048577", {}, "segment_bytes", 1048577),
    ("log.segment.delete.delay.ms", "714", {}, "file_delete_delay_ms", 714),
    ("message.max.bytes", "715", {}, "max_message_bytes", 715),
    ("klamm.partition.max.producers", "716", {}, "max_producers", 716),
]


@pytest.mark.parametrize(
    ("setting", "value", "others", "field", "expected"), OF_TOPICS, ids=[each[0] for each in OF_TOPICS]
)
def test_a_topic_takes_from_its_broker_what_it_does_not_set(
    setting: str, value: str, others: dict[str, str], field: str, expected: object
) -> None:
    world = World(**{name.replace(".", "_"): text for name, text in (others | {setting: value}).items()})
    create(world.connect(), "orders")
    settings = world.partition("orders").log.settings
    assert getattr(settings, field) == expected != getattr(LogSettings(), field)


@pytest.mark.parametrize(
    ("setting", "value", "others", "field", "expected"),
    [each for each in OF_TOPICS if broker_settings()[each[0]].alterable == "cluster"],
    ids=str,
)
def test_and_while_the_broker_runs(
    setting: str, value: str, others: dict[str, str], field: str, expected: object
) -> None:
    world = World()
    client = world.connect()
    create(client, "orders")
    for name, text in (others | {setting: value}).items():
        alter_brokers(client, name, text)
    settings = world.partition("orders").log.settings
    assert getattr(settings, field) == expected != getattr(LogSettings(), field)


@pytest.mark.parametrize(
    ("setting", "value", "field", "expected"),
    [
        ("compression.gzip.level", "2", "compression_level", 2),
        ("compression.lz4.level", "12", "compression_level", 12),
        ("compression.zstd.level", "7", "compression_level", 7),
        ("max.compaction.lag.ms", "801", "max_compaction_lag_ms", 801),
        ("min.compaction.lag.ms", "802", "min_compaction_lag_ms", 802),
        ("segment.index.bytes", "803", "segment_index_bytes", 803),
        ("segment.jitter.ms", "804", "segment_jitter_ms", 804),
        ("segment.ms", "805", "segment_ms", 805),
    ],
)
def test_what_a_topic_sets_itself_wins(setting: str, value: str, field: str, expected: object) -> None:
    world = World()
    codec = {"compression_type": setting.split(".")[1]} if setting.startswith("compression") else {}
    create(world.connect(), "orders", **codec, **{setting.replace(".", "_"): value})
    assert getattr(world.partition("orders").log.settings, field) == expected


@pytest.mark.parametrize(
    ("kind", "setting", "least", "most"),
    [
        ("gzip", "compression.gzip.level", "1", "9"),
        ("lz4", "compression.lz4.level", "1", "12"),
        ("zstd", "compression.zstd.level", "-100", "15"),
    ],
)
def test_a_codec_works_as_hard_as_it_is_told_to(kind: str, setting: str, least: str, most: str) -> None:
    """Words that come again and again, never in the same order."""
    text = b" ".join(b"%d" % (number * number % 977) for number in range(4_000))
    sizes = []
    for level in (least, most):
        world = World()
        client = world.connect()
        create(client, "orders", compression_type=kind, **{setting.replace(".", "_"): level})
        send(client, "orders", text)
        sizes.append(world.partition("orders").log.size_bytes)
        assert read_all(client, "orders") == [text]
    assert sizes[0] > sizes[1]


# Groups and the quorum: by their names, as the numbers that their own stories are about.


@pytest.mark.parametrize(
    ("setting", "value", "field", "expected"),
    [
        ("group.initial.rebalance.delay.ms", "1", "initial_rebalance_delay_ms", 1),
        ("group.min.session.timeout.ms", "2", "min_session_ms", 2),
        ("group.max.session.timeout.ms", "1800001", "max_session_ms", 1800001),
        ("group.max.size", "3", "max_size", 3),
        ("group.coordinator.rebalance.protocols", "classic", "protocols", ("classic",)),
        ("group.consumer.heartbeat.interval.ms", "5001", "consumer_heartbeat_ms", 5001),
        ("group.consumer.session.timeout.ms", "45001", "consumer_session_ms", 45001),
        ("group.consumer.max.size", "4", "consumer_max_size", 4),
        ("group.consumer.assignors", "range", "assignors", ("range",)),
        ("group.consumer.migration.policy", "disabled", "migrations", ()),
        ("group.consumer.assignment.interval.ms", "5", "assignment_interval_ms", 5),
        ("group.consumer.regex.refresh.interval.ms", "10000", "regex_refresh_ms", 10_000),
        ("offsets.retention.minutes", "6", "offsets_retention_ms", 360_000),
        ("offsets.retention.check.interval.ms", "7", "offsets_check_ms", 7),
        ("offset.metadata.max.bytes", "8", "metadata_max_bytes", 8),
        ("offsets.commit.timeout.ms", "9", "commit_timeout_ms", 9),
        ("klamm.group.max.bytes", "10000", "max_group_bytes", 10_000),
        ("klamm.groups.max.bytes", "10001", "max_groups_bytes", 10_001),
    ],
)
def test_groups_are_told(setting: str, value: str, field: str, expected: object) -> None:
    settings = GroupSettings.of(broker_config({setting: value}))
    assert getattr(settings, field) == expected != getattr(GroupSettings.of(broker_config({})), field)


@pytest.mark.parametrize(
    ("setting", "field"),
    [
        ("controller.quorum.election.timeout.ms", "election_timeout_ms"),
        ("controller.quorum.election.backoff.max.ms", "backoff_max_ms"),
        ("controller.quorum.fetch.timeout.ms", "fetch_timeout_ms"),
        ("controller.quorum.request.timeout.ms", "request_timeout_ms"),
        ("controller.quorum.retry.backoff.ms", "retry_ms"),
        ("controller.quorum.fetch.max.bytes", "fetch_bytes"),
        ("controller.quorum.fetch.snapshot.max.bytes", "snapshot_fetch_bytes"),
        ("metadata.log.max.record.bytes.between.snapshots", "snapshot_after_bytes"),
        ("metadata.log.max.snapshot.interval.ms", "snapshot_after_ms"),
        ("metadata.max.retention.bytes", "retention_bytes"),
        ("metadata.max.retention.ms", "retention_ms"),
    ],
)
def test_the_quorum_is_told(setting: str, field: str) -> None:
    settings = QuorumSettings.of(broker_config({setting: "1234567"}))
    assert getattr(settings, field) == 1234567 != getattr(QuorumSettings.of(broker_config({})), field)


def test_the_metadata_log_has_segments_of_its_own_size_and_time() -> None:
    world = World(metadata_log_segment_ms="3600000", metadata_log_segment_bytes="9000000")
    settings = world.broker.quorum.log.settings
    assert (settings.segment_ms, settings.segment_bytes) == (3_600_000, 9_000_000)


@pytest.mark.parametrize(
    ("setting", "value", "of"),
    [
        ("replica.fetch.wait.max.ms", 101, "max_wait_ms"),
        ("replica.fetch.min.bytes", 102, "min_bytes"),
        ("replica.fetch.response.max.bytes", 103, "max_bytes"),
        ("replica.fetch.max.bytes", 104, "partition_max_bytes"),
        ("replica.fetch.backoff.ms", 105, "backoff_ms"),
    ],
)
def test_followers_fetch_as_they_are_told(setting: str, value: int, of: str) -> None:
    assert getattr(World(**{setting.replace(".", "_"): str(value)}).broker.replication._settings, of) == value


def test_followers_wait_so_long_for_an_answer() -> None:
    assert World(replica_socket_timeout_ms="1234").broker.replication.fetch_patience_ms == 1234.0


# Requests.


def test_a_page_about_topics_has_so_many_partitions() -> None:
    world = World(max_request_partition_size_limit="2")
    client = world.connect()
    create(client, "orders", 5)
    request = DescribeTopicPartitionsRequest(topics=[], response_partition_limit=2000)
    answer = client.ask(request)
    assert len(answer.topics[0].partitions) == 2 and answer.next_cursor.partition_index == 2


def test_a_fetch_returns_at_most_so_many_bytes() -> None:
    world = World(fetch_max_bytes="1024")
    client = world.connect()
    create(client, "orders")
    for _ in range(10):
        send(client, "orders", b"x" * 400)
    assert len(bytes(fetched(client.ask(fetch("orders"), NAMED)).records)) <= 1024
    alone = World(fetch_max_bytes="4096").connect()
    create(alone, "orders")
    for _ in range(10):
        send(alone, "orders", b"x" * 400)
    assert 1024 < len(bytes(fetched(alone.ask(fetch("orders"), NAMED)).records)) <= 4096


# Housekeeping.


@pytest.mark.parametrize("enabled", ["true", "false"])
def test_nothing_is_compacted_where_compaction_is_off(enabled: str) -> None:
    world = World(log_cleaner_enable=enabled)
    client = compacted_topic(world)
    for number in range(60):
        write_keys(client, "table", {b"k": b"k=%d" % number + b"." * 50})
    world.advance(120_000)
    stored = len(read_all(client, "table"))
    assert stored == 60 if enabled == "false" else stored < 30


def test_the_cleaner_rests_for_as_long_as_it_is_told_also_while_it_runs() -> None:
    world = World(log_cleaner_backoff_ms="3600000")
    client = compacted_topic(world)
    for number in range(60):
        write_keys(client, "table", {b"k": b"k=%d" % number + b"." * 50})
    world.advance(60_000)
    assert len(read_all(client, "table")) == 60
    alter_brokers(client, "log.cleaner.backoff.ms", "1000")
    world.advance(3_600_000)
    before = len(read_all(client, "table"))
    assert before < 30, "it had begun to rest"
    for number in range(60):
        write_keys(client, "table", {b"k": b"k=%d" % number + b"." * 50})
    world.advance(3_000)
    assert len(read_all(client, "table")) < before + 60


def test_watermarks_are_noted_as_often_as_it_is_told() -> None:
    world = World(replica_high_watermark_checkpoint_interval_ms="200")
    client = world.connect()
    create(client, "orders")
    send(client, "orders", b"x")
    world.advance(300)
    assert checkpoint.read_offsets(world.disk.read_whole(checkpoint.HIGH_WATERMARKS)) == {
        TopicPartition("orders", 0): 1
    }


def test_producers_that_are_silent_are_forgotten() -> None:
    world = World(producer_id_expiration_ms="500", producer_id_expiration_check_interval_ms="100")
    client = world.connect()
    create(client, "orders")
    batch = batch_of(b"x", producer=(producer_id(client), 0, 0), timestamp=world.now.wall_ms)
    client.ask(produce("orders", batch=batch), NAMED)
    world.advance(400)
    assert len(world.partition("orders").log.producers) == 1
    world.advance(300)
    assert len(world.partition("orders").log.producers) == 0


# The topic of the offsets.


def offsets_topic(**settings: str) -> tuple[World, Image]:
    world = World(offsets_topic_num_partitions="1", **settings)
    client = world.connect()
    client.ask(FindCoordinatorRequest(coordinator_keys=["group"]))
    world.advance(20_000)
    return world, world.broker.image


@pytest.mark.parametrize(("asked", "made"), [("2097152", "2097152"), ("1000", "1048576")])
def test_the_topic_of_the_offsets_is_made_as_asked(asked: str, made: str) -> None:
    """Kafka takes a size here that it takes for no topic: groups would wait for ever."""
    world, image = offsets_topic(offsets_topic_segment_bytes=asked)
    assert image.topic_config("__consumer_offsets")["segment.bytes"] == made
    assert world.told_of(PartitionFailed) == []


def test_offsets_are_compressed_as_asked() -> None:
    world, _ = offsets_topic(offsets_topic_compression_codec="1")
    assert world.broker.coordination._codec is Codec.GZIP


# Membership.


def test_a_broker_says_so_often_that_it_is_there() -> None:
    """To its controller, which is the same node here: a heartbeat that is due wakes it."""
    assert [heartbeats_in_a_second(interval) for interval in ("100", "250")] == [10, 4]


def heartbeats_in_a_second(interval: str) -> int:
    world = World(broker_heartbeat_interval_ms=interval)
    heard: list[object] = []
    peers = world.node.cluster.membership._peers
    ask = peers.ask

    def counted(*arguments: Any, **named: Any) -> None:
        heard.extend(each for each in arguments if each == BROKER_HEARTBEAT)
        ask(*arguments, **named)

    peers.ask = counted  # type: ignore[method-assign]
    world.advance(1_000)
    return len(heard)


# Stopping.


@pytest.mark.parametrize("hands_over", [True, False])
def test_a_broker_hands_over_before_it_stops_or_just_stops(hands_over: bool) -> None:
    world = ClusterWorld(4, controlled_shutdown_enable=str(hands_over).lower())
    member = world[3]
    member.perform(member.node.begin_to_stop(world.now))
    assert member.has_stopped is not hands_over
    world.run_until(lambda: member.has_stopped, 5_000.0)
