"""Every setting that takes effect is exercised by a test, or by the simulator, with a value other than its default.

`flush.ms` took topics offline, and no test had ever set it; some settings were not even read. So the table says of each
setting where it is exercised. A new one needs a line; what a line says is looked up: the test is there, it names the
setting, and it does not only give it its default.
"""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from klamm.config import Setting, Status, broker_settings, topic_settings

ROOT = Path(__file__).parent.parent.parent

EXERCISED = """
node/test_housekeeping.py::test_producers_of_all_partitions_together_have_a_bound_and_it_is_said_once
    klamm.broker.max.producers
broker/test_any_history.py
    replica.lag.time.max.ms
broker/test_throttles.py::test_a_throttled_follower_catches_up_at_its_rate
    follower.replication.throttled.rate follower.replication.throttled.replicas
broker/test_throttles.py::test_a_throttled_leader_gives_at_its_rate
    leader.replication.throttled.rate leader.replication.throttled.replicas
compat/cluster/test_quorum_tool.py::test_a_voter_leaves_the_quorum_and_joins_it_again
    controller.quorum.bootstrap.servers
config/test_coherence.py
    advertised.listeners inter.broker.listener.name listener.security.protocol.map
config/test_coherence.py::test_a_quorum_and_its_voters_agree_about_this_node
    controller.listener.names
config/test_coherence.py::test_numbers_that_contradict_each_other
    group.consumer.max.heartbeat.interval.ms group.consumer.max.session.timeout.ms
config/test_coherence.py::test_only_plaintext_is_there
    security.inter.broker.protocol
config/test_server_properties.py
    broker.id
config/test_server_properties.py::test_what_is_given_beside_the_file_counts_more_also_under_another_name
    log.dir
controller/test_elections.py
    broker.session.timeout.ms
controller/test_elections.py::test_a_topic_that_allows_it_gets_an_unclean_leader_at_once
    unclean.leader.election.enable
controller/test_elections.py::test_leaders_stay_where_they_are_if_that_is_wanted
    auto.leader.rebalance.enable
controller/test_topics.py::test_deletion_can_be_switched_off
    delete.topic.enable
controller/test_topics.py::test_s5_numbers_not_given_are_the_brokers_defaults
    default.replication.factor
coordinator/consumer/test_like_kafka.py
    offsets.topic.replication.factor
faults/test_damaged_files.py::test_retention_meets_a_damaged_segment
    log.retention.check.interval.ms
faults/test_full_disk.py
    log.flush.offset.checkpoint.interval.ms
groups/conftest.py
    group.consumer.min.heartbeat.interval.ms group.consumer.min.session.timeout.ms
local/test_settings.py::test_requests_may_take_so_much_room
    queued.max.request.bytes
local/test_settings.py::test_so_many_connections_are_held
    max.connections max.connections.per.ip max.connections.per.ip.overrides
local/test_settings.py::test_topics_that_are_flushed_in_time_serve_while_some_partitions_are_empty
    log.flush.interval.ms
log/test_append.py::test_a_batch_larger_than_a_segment_is_too_large_too
    segment.bytes
log/test_append.py::test_a_batch_larger_than_max_message_bytes_is_too_large
    max.message.bytes
log/test_compaction.py::test_a_tombstone_stays_for_delete_retention_after_it_was_first_met
    min.cleanable.dirty.ratio
metrics/test_broker.py
    klamm.metrics.listener
node/cluster_world.py
    listeners node.id process.roles
node/test_acknowledgement.py::test_who_was_answered_is_forgotten
    flush.messages
node/test_disk_errors.py::test_a_full_disk_while_a_segment_is_rolled
    index.interval.bytes internal.segment.bytes
node/test_housekeeping.py::test_a_log_that_is_deleted_to_its_end_keeps_its_offsets
    retention.ms
node/test_housekeeping.py::test_a_long_poll_below_the_new_beginning_is_woken
    retention.bytes
node/test_housekeeping.py::test_a_tombstone_takes_its_key_along_after_its_time
    delete.retention.ms
node/test_housekeeping.py::test_a_topic_made_anew_is_not_touched_by_the_compaction_of_the_old_one
    cleanup.policy
node/test_housekeeping.py::test_records_older_than_retention_go
    file.delete.delay.ms
node/test_looking.py::test_a_topic_may_do_without
    klamm.validate.records
node/test_sessions.py::test_no_room_no_session
    max.incremental.fetch.session.cache.slots
node/test_settings.py::test_a_broker_hands_over_before_it_stops_or_just_stops
    controlled.shutdown.enable
node/test_settings.py::test_a_broker_says_so_often_that_it_is_there
    broker.heartbeat.interval.ms
node/test_settings.py::test_a_codec_works_as_hard_as_it_is_told_to
    compression.gzip.level compression.lz4.level compression.zstd.level
node/test_settings.py::test_a_fetch_returns_at_most_so_many_bytes
    fetch.max.bytes
node/test_settings.py::test_a_page_about_topics_has_so_many_partitions
    max.request.partition.size.limit
node/test_settings.py::test_a_topic_takes_from_its_broker_what_it_does_not_set
    klamm.partition.max.producers
    compression.type log.cleaner.delete.retention.ms log.cleaner.max.compaction.lag.ms
    log.cleaner.min.cleanable.ratio log.cleaner.min.compaction.lag.ms log.cleanup.policy
    log.flush.interval.messages log.flush.scheduler.interval.ms log.index.interval.bytes
    log.index.size.max.bytes log.message.timestamp.after.max.ms log.message.timestamp.before.max.ms
    log.message.timestamp.type log.retention.bytes log.retention.hours log.retention.minutes log.retention.ms
    log.roll.hours log.roll.jitter.hours log.roll.jitter.ms log.roll.ms log.segment.bytes
    log.segment.delete.delay.ms message.max.bytes
node/test_settings.py::test_followers_fetch_as_they_are_told
    replica.fetch.backoff.ms replica.fetch.max.bytes replica.fetch.min.bytes replica.fetch.response.max.bytes
    replica.fetch.wait.max.ms
node/test_settings.py::test_followers_wait_so_long_for_an_answer
    replica.socket.timeout.ms
node/test_settings.py::test_groups_are_told
    klamm.group.max.bytes klamm.groups.max.bytes
    group.consumer.assignment.interval.ms group.consumer.assignors group.consumer.heartbeat.interval.ms
    group.consumer.max.size group.consumer.migration.policy group.consumer.regex.refresh.interval.ms
    group.consumer.session.timeout.ms group.coordinator.rebalance.protocols group.initial.rebalance.delay.ms
    group.max.session.timeout.ms group.max.size group.min.session.timeout.ms offset.metadata.max.bytes
    offsets.commit.timeout.ms offsets.retention.check.interval.ms offsets.retention.minutes
node/test_settings.py::test_nothing_is_compacted_where_compaction_is_off
    log.cleaner.enable
node/test_settings.py::test_offsets_are_compressed_as_asked
    offsets.topic.compression.codec
node/test_settings.py::test_producers_that_are_silent_are_forgotten
    producer.id.expiration.check.interval.ms producer.id.expiration.ms
node/test_settings.py::test_the_cleaner_rests_for_as_long_as_it_is_told_also_while_it_runs
    log.cleaner.backoff.ms
node/test_settings.py::test_the_metadata_log_has_segments_of_its_own_size_and_time
    metadata.log.segment.bytes metadata.log.segment.ms
node/test_settings.py::test_the_quorum_is_told
    controller.quorum.election.backoff.max.ms controller.quorum.election.timeout.ms
    controller.quorum.fetch.max.bytes controller.quorum.fetch.snapshot.max.bytes
    controller.quorum.fetch.timeout.ms controller.quorum.request.timeout.ms controller.quorum.retry.backoff.ms
    metadata.log.max.record.bytes.between.snapshots metadata.log.max.snapshot.interval.ms
    metadata.max.retention.bytes metadata.max.retention.ms
node/test_settings.py::test_the_topic_of_the_offsets_is_made_as_asked
    offsets.topic.num.partitions offsets.topic.segment.bytes
node/test_settings.py::test_watermarks_are_noted_as_often_as_it_is_told
    replica.high.watermark.checkpoint.interval.ms
node/test_settings.py::test_what_a_topic_sets_itself_wins
    max.compaction.lag.ms min.compaction.lag.ms segment.index.bytes segment.jitter.ms segment.ms
node/test_timed_flush.py::test_a_shorter_time_counts_at_once
    flush.ms
node/test_topics.py::test_not_if_the_broker_does_not_want_it
    auto.create.topics.enable
node/test_topics.py::test_with_the_broker_s_defaults
    num.partitions
pipeline/source/test_broker_fails.py::test_the_nearest_replica_is_read
    replica.selector.class
runtime/test_process.py
    log.dirs
sim/cluster.py
    broker.rack controller.quorum.voters
sim/topics.py
    log.flush.start.offset.checkpoint.interval.ms min.insync.replicas
system/running.py
    leader.imbalance.check.interval.seconds
traps/test_framing_traps.py::test_trap_09_an_idle_connection_is_closed_after_its_time
    connections.max.idle.ms
traps/test_framing_traps.py::test_trap_09_socket_request_max_bytes_is_a_setting
    socket.request.max.bytes
traps/test_produce_traps.py::test_trap_20_a_timestamp_out_of_range_is_named_by_its_record
    message.timestamp.after.max.ms message.timestamp.before.max.ms
traps/test_produce_traps.py::test_trap_20_log_append_time_is_the_brokers
    message.timestamp.type
"""
"""A test, or a file that many tests share, and below it the settings. `sim/` is the simulator."""

WAITING = """
    add.partitions.to.txn.retry.backoff.max.ms add.partitions.to.txn.retry.backoff.ms transaction.max.timeout.ms
    transaction.abort.timed.out.transaction.cleanup.interval.ms transaction.partition.verification.enable
    transaction.remove.expired.transaction.cleanup.interval.ms transaction.state.log.min.isr
    transaction.state.log.num.partitions transaction.state.log.replication.factor transaction.state.log.segment.bytes
    transactional.id.expiration.ms
"""
"""Of transactions, which are not there yet. docs/settings.md says so."""


def table() -> dict[str, str]:
    """The place of each setting."""
    found: dict[str, str] = {}
    place = ""
    for line in EXERCISED.split("\n"):
        if not line.startswith(" "):
            place = line
        for name in line.split() if line.startswith(" ") else ():
            assert name not in found, f"{name} stands there twice"
            found[name] = place
    return found


def in_effect() -> dict[str, Setting]:
    settings = [*broker_settings().values(), *topic_settings().values()]
    return {setting.name: setting for setting in settings if setting.status is Status.WORKS}


def test_the_table_has_every_setting_that_takes_effect() -> None:
    expected = in_effect().keys() - set(WAITING.split())
    assert set(WAITING.split()) <= in_effect().keys()
    missing, too_many = sorted(expected - table().keys()), sorted(table().keys() - expected)
    assert not missing, f"no test exercises {missing}: write one, and name it in EXERCISED"
    assert not too_many, f"{too_many} are no settings that take effect"


@pytest.mark.parametrize("name", sorted(table()))
def test_the_named_test_exercises_the_setting(name: str) -> None:
    text = source_of(table()[name])
    names = rf"(?<![\w.])(?:{re.escape(name)}|{name.replace('.', '_')})(?![\w.])|\{{side\}}\.{name.partition('.')[2]}"
    assert re.search(names, text), f"{table()[name]} says nothing of {name}"
    given = [value for value in values_given(name, text) if value]
    default = in_effect()[name].default
    assert not given or any(value != default for value in given), f"{name} is only ever {default}"


def values_given(name: str, text: str) -> list[str]:
    """Those that stand next to the name as they are: `"flush.ms": "100"`, `("flush.ms", "100")`, `flush_ms="100"`."""
    next_to = rf"(?:{re.escape(name)}\"|{name.replace('.', '_')})\s*(?:[:=,]|\]\s*=)\s*\"([^\"{{]*)\""
    return re.findall(next_to, text)


@cache
def source_of(place: str) -> str:
    """Of a test, and of what stands around it in its file besides other tests."""
    path, _, test = place.partition("::")
    file = ROOT / "src" / "klamm" / path if path.startswith("sim/") else ROOT / "tests" / path
    text = file.read_text(encoding="utf-8")
    if not test:
        return text
    functions = [node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    nodes = {node.name: node for node in functions}
    assert test in nodes, f"{path} has no {test}"
    lines = text.split("\n")
    for other, node in nodes.items():
        if other != test and other.startswith("test_"):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            lines[first - 1 : node.end_lineno] = [""] * ((node.end_lineno or first) - first + 1)
    return "\n".join(lines)


def test_what_a_line_says_is_looked_up() -> None:
    """The tests above can fail."""
    text = 'create("x", flush_ms="9223372036854775807", **{"retention.ms": "5"})'
    assert values_given("flush.ms", text) == ["9223372036854775807"] == [in_effect()["flush.ms"].default]
    assert values_given("retention.ms", text) == ["5"]
    with pytest.raises(AssertionError, match="has no test_nothing"):
        source_of("node/test_settings.py::test_nothing")
    assert "def test_groups_are_told" not in source_of("node/test_settings.py::test_the_quorum_is_told")
