"""Traps 25 to 34: reading, sessions, long polls, offsets by time and by epoch."""

import time

import pytest

from klamm.errors import ErrorCode
from klamm.records.batch import batches
from klamm.records.builder import BatchBuilder
from klamm.records.compression import Codec
from klamm.wire.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from klamm.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from klamm.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, ForgottenTopic
from klamm.wire.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from tests.harness.node import Node
from tests.harness.raw import Raw
from tests.harness.requests import (
    EARLIEST,
    LATEST,
    batch_of,
    create,
    fetch,
    fetch_request,
    metadata_of,
    offset_at,
    produce,
)
from tests.harness.waiting import wait_until
from tests.harness.workload import FIRST_TIMESTAMP_MS

MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = -3, -4, -5, -6
READ_COMMITTED = 1


@pytest.mark.parametrize("codec", list(Codec))
def test_trap_25_an_offset_inside_a_batch_gets_the_whole_batch(raw: Raw, topic: str, codec: Codec) -> None:
    """The client skips what it did not ask for."""
    create(raw, topic)
    produce(raw, topic, batch_of(b"before"))
    produce(raw, topic, batch_of(b"a", b"b", b"c", codec=codec))
    whole = bytes(fetch(raw, topic, 1).records or b"")
    assert bytes(fetch(raw, topic, 2).records or b"") == whole
    assert bytes(fetch(raw, topic, 3).records or b"") == whole
    assert [(batch.base_offset, batch.last_offset) for _, batch in batches(whole)] == [(1, 3)]


@pytest.mark.parametrize("version", range(4, 13))
def test_trap_26_the_first_batch_comes_however_large_it_is(raw: Raw, topic: str, version: int) -> None:
    create(raw, topic)
    produce(raw, topic, batch_of(bytes(50_000)))
    produce(raw, topic, batch_of(b"second"))
    for limits in ({"partition_max_bytes": 1}, {"max_bytes": 1}, {"partition_max_bytes": 0, "max_bytes": 0}):
        data = bytes(fetch(raw, topic, 0, version=version, **limits).records or b"")
        assert next(batches(data))[1].last_offset == 0, limits


def test_trap_26_but_only_the_first_and_in_the_order_of_the_request(raw: Raw, topic: str) -> None:
    """max_bytes is spent partition by partition; the ones after it are answered empty, without an error."""
    create(raw, topic, partitions=3)
    for partition in range(3):
        produce(raw, topic, batch_of(bytes(10_000)), partition=partition)
    for order in ([2, 0, 1], [1, 2, 0]):
        parts = [FetchPartition(partition, partition_max_bytes=1_000_000) for partition in order]
        answer = raw.call(
            "Fetch", 12, FetchRequest(max_bytes=11_000, min_bytes=1, topics=[FetchTopic(topic, partitions=parts)])
        )
        sizes = {part.partition_index: len(part.records or b"") for part in answer.responses[0].partitions}
        assert {part.error_code for part in answer.responses[0].partitions} == {ErrorCode.NONE}
        assert sizes[order[0]] > 10_000
        assert sum(sizes.values()) <= 11_000


def test_trap_27_out_of_range_is_below_the_start_or_above_the_end(raw: Raw, topic: str) -> None:
    """At the end there is nothing, and that is no error."""
    create(raw, topic)
    for _ in range(5):
        produce(raw, topic, batch_of(b"a", b"b"))
    wish = DeleteRecordsTopic(topic, [DeleteRecordsPartition(0, 3)])
    raw.call("DeleteRecords", 2, DeleteRecordsRequest([wish], timeout_ms=10_000))
    for offset, code in ((2, 1), (3, 0), (9, 0), (10, 0), (11, 1), (-1, 1), (2**62, 1)):
        part = fetch(raw, topic, offset)
        assert part.error_code == code, offset
        if code == ErrorCode.NONE:
            assert (part.log_start_offset, part.high_watermark) == (3, 10)
        assert bool(part.records) == (3 <= offset < 10)


def test_trap_28_without_transactions_everything_is_committed(raw: Raw, topic: str) -> None:
    """Read committed goes to the last stable offset, which is the end, and names no aborted transactions."""
    create(raw, topic)
    produce(raw, topic, batch_of(b"a", b"b"))
    for isolation, aborted in ((0, [None]), (READ_COMMITTED, [None, []])):
        part = fetch(raw, topic, 0, isolation_level=isolation)
        assert (part.last_stable_offset, part.high_watermark) == (2, 2) and part.records
        assert part.aborted_transactions in aborted


def test_trap_29_without_a_session(raw: Raw, topic: str) -> None:
    create(raw, topic)
    answer = raw.call("Fetch", 12, fetch_request(topic, 0, session_id=0, session_epoch=-1))
    assert (answer.error_code, answer.session_id) == (ErrorCode.NONE, 0)


def test_trap_29_a_session_answers_with_what_changed(raw: Raw, topic: str) -> None:
    create(raw, topic, partitions=3)
    everything = _session_fetch(raw, topic, 0, 0, {0: 0, 1: 0, 2: 0})
    session = everything.session_id
    assert session != 0 and _partitions(everything) == [0, 1, 2]
    assert _partitions(_session_fetch(raw, topic, session, 1, {})) == [], "nothing changed"
    produce(raw, topic, batch_of(b"news"), partition=1)
    changed = _session_fetch(raw, topic, session, 2, {})
    assert _partitions(changed) == [1] and changed.responses[0].partitions[0].records
    assert _partitions(_session_fetch(raw, topic, session, 3, {1: 1})) == [], "read on: nothing more there"
    produce(raw, topic, batch_of(b"more"), partition=1)
    produce(raw, topic, batch_of(b"more"), partition=2)
    forgotten = _session_fetch(raw, topic, session, 4, {}, forget=[1])
    assert _partitions(forgotten) == [2], "a forgotten partition is not told of"


def test_trap_29_wrong_sessions_and_epochs(raw: Raw, topic: str) -> None:
    create(raw, topic)
    session = _session_fetch(raw, topic, 0, 0, {0: 0}).session_id
    assert _session_fetch(raw, topic, session, 5, {}).error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    unknown = _session_fetch(raw, topic, session ^ 0x55AA, 1, {})
    assert unknown.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert _session_fetch(raw, topic, session, 1, {}).error_code == ErrorCode.NONE, "it is still alive"
    closed = _session_fetch(raw, topic, session, -1, {0: 0})
    assert (closed.error_code, closed.session_id) == (ErrorCode.NONE, 0)
    assert _session_fetch(raw, topic, session, 2, {}).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_trap_29_a_new_session_takes_the_place_of_the_old(raw: Raw, topic: str) -> None:
    create(raw, topic)
    old = _session_fetch(raw, topic, 0, 0, {0: 0}).session_id
    new = _session_fetch(raw, topic, old, 0, {0: 0})
    assert new.error_code == ErrorCode.NONE and new.session_id not in (0, old)
    assert _session_fetch(raw, topic, old, 1, {}).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_trap_29_an_error_is_news_in_a_session(raw: Raw, topic: str) -> None:
    """It is told, and told again."""
    create(raw, topic)
    answer = _session_fetch(raw, topic, 0, 0, {0: 99})
    assert answer.responses[0].partitions[0].error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    again = _session_fetch(raw, topic, answer.session_id, 1, {})
    assert [part.error_code for part in again.responses[0].partitions] == [ErrorCode.OFFSET_OUT_OF_RANGE]


def test_trap_30_a_long_poll_ends_with_max_wait(raw: Raw, topic: str) -> None:
    create(raw, topic)
    began = time.monotonic()
    part = fetch(raw, topic, 0, max_wait_ms=700)
    assert time.monotonic() - began > 0.6
    assert part.error_code == ErrorCode.NONE and not part.records


def test_trap_30_it_ends_when_min_bytes_are_there(node: Node, raw: Raw, topic: str) -> None:
    """Not with the first byte, but with enough."""
    create(raw, topic)
    waiting = raw.send("Fetch", 12, fetch_request(topic, 0, max_wait_ms=20_000, min_bytes=1500))
    with Raw(node.port) as other:
        produce(other, topic, batch_of(bytes(1000)))
        assert raw.hears_nothing_for(0.4), "1000 bytes are too few"
        produce(other, topic, batch_of(bytes(1000)))
    (found,) = raw.receive(waiting).responses
    assert len(found.partitions[0].records) > 2000


def test_trap_30_it_ends_at_once_with_an_error(raw: Raw, topic: str) -> None:
    create(raw, topic)
    began = time.monotonic()
    assert fetch(raw, topic, 7, max_wait_ms=60_000).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    unknown = fetch(raw, "there-is-no-such-topic", 0, max_wait_ms=60_000)
    assert unknown.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert time.monotonic() - began < 50


def test_trap_30_it_ends_when_the_topic_is_deleted(node: Node, raw: Raw, topic: str) -> None:
    create(raw, topic)
    waiting = raw.send("Fetch", 12, fetch_request(topic, 0, max_wait_ms=60_000))
    with Raw(node.port) as other:
        other.call("DeleteTopics", 6, DeleteTopicsRequest([DeleteTopicState(topic)], timeout_ms=10_000))
    (found,) = raw.receive(waiting).responses
    assert found.partitions[0].error_code in (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_ID,
    )


def test_trap_31_one_replica_is_nobodys_preferred_one(raw: Raw, topic: str) -> None:
    create(raw, topic)
    produce(raw, topic, batch_of(b"here"))
    part = fetch(raw, topic, 0, rack_id="elsewhere")
    assert part.preferred_read_replica == -1 and part.records


@pytest.mark.parametrize("version", range(1, 12))
def test_trap_32_offsets_by_time(raw: Raw, topic: str, version: int) -> None:
    """The first offset whose timestamp is at least that, in the order of the log; none is offset -1 and no error."""
    create(raw, topic)
    for second in (0, 10, 5, 20):
        produce(raw, topic, batch_of(b"x", b"y", timestamp=FIRST_TIMESTAMP_MS + 1000 * second))
    found = {
        asked: (answer.offset, answer.timestamp, answer.error_code)
        for asked in (
            LATEST,
            EARLIEST,
            0,
            FIRST_TIMESTAMP_MS,
            FIRST_TIMESTAMP_MS + 1,
            FIRST_TIMESTAMP_MS + 10_001,
            FIRST_TIMESTAMP_MS + 20_001,
        )
        for answer in [offset_at(raw, topic, asked, version=version)]
    }
    assert found == {
        LATEST: (8, -1, 0),
        EARLIEST: (0, -1, 0),
        0: (0, FIRST_TIMESTAMP_MS, 0),
        FIRST_TIMESTAMP_MS: (0, FIRST_TIMESTAMP_MS, 0),
        FIRST_TIMESTAMP_MS + 1: (2, FIRST_TIMESTAMP_MS + 10_000, 0),
        FIRST_TIMESTAMP_MS + 10_001: (6, FIRST_TIMESTAMP_MS + 20_000, 0),
        FIRST_TIMESTAMP_MS + 20_001: (-1, -1, 0),
    }


def test_trap_32_special_timestamps(raw: Raw, topic: str) -> None:
    create(raw, topic)
    assert offset_at(raw, topic, MAX_TIMESTAMP).offset == -1, "an empty partition has no newest record"
    for second in (0, 10, 5):
        produce(raw, topic, batch_of(b"x", b"y", timestamp=FIRST_TIMESTAMP_MS + 1000 * second))
    wish = DeleteRecordsTopic(topic, [DeleteRecordsPartition(0, 1)])
    raw.call("DeleteRecords", 2, DeleteRecordsRequest([wish], timeout_ms=10_000))
    newest = offset_at(raw, topic, MAX_TIMESTAMP, version=7)
    assert (newest.offset, newest.timestamp) == (2, FIRST_TIMESTAMP_MS + 10_000), "the first of the largest timestamp"
    assert offset_at(raw, topic, EARLIEST).offset == 1
    assert offset_at(raw, topic, EARLIEST_LOCAL, version=8).offset == 1
    tiered = offset_at(raw, topic, LATEST_TIERED, version=9)
    assert (tiered.error_code, tiered.offset) == (ErrorCode.NONE, -1), "nothing is tiered"
    pending = offset_at(raw, topic, EARLIEST_PENDING_UPLOAD, version=11)
    assert (pending.error_code, pending.offset) == (ErrorCode.NONE, -1)


@pytest.mark.parametrize("codec", list(Codec))
def test_trap_32_a_time_inside_a_batch_finds_the_record(raw: Raw, topic: str, codec: Codec) -> None:
    create(raw, topic)
    builder = BatchBuilder(codec=codec)
    for second in range(10):
        builder.append(b"k", b"v", FIRST_TIMESTAMP_MS + 1000 * second)
    produce(raw, topic, builder.build())
    for second in range(10):
        answer = offset_at(raw, topic, FIRST_TIMESTAMP_MS + 1000 * second - 500)
        assert (answer.offset, answer.timestamp) == (second, FIRST_TIMESTAMP_MS + 1000 * second)


@pytest.mark.parametrize("stop", ["stop", "kill9"])
def test_trap_33_the_latest_offset_never_goes_back(fresh_node: Node, stop: str) -> None:
    """Spark takes a decrease for lost data."""
    with Raw(fresh_node.port) as raw:
        create(raw, "growing")
        for _ in range(20):
            produce(raw, "growing", batch_of(b"a", b"b"))
        before = offset_at(raw, "growing", LATEST).offset
    getattr(fresh_node, stop)()
    fresh_node.restart()
    with Raw(fresh_node.port) as raw:
        wait_until(lambda: offset_at(raw, "growing", LATEST).error_code == 0, "the partition answers again")
        assert offset_at(raw, "growing", LATEST).offset == before == 40
        assert produce(raw, "growing", batch_of(b"on")).base_offset == 40


@pytest.mark.parametrize("version", [2, 3, 4])
def test_trap_34_the_end_of_an_epoch(raw: Raw, topic: str, version: int) -> None:
    create(raw, topic)
    produce(raw, topic, batch_of(b"a", b"b", b"c"))
    epoch = metadata_of(raw, topic).partitions[0].leader_epoch
    current = _end_of(raw, topic, epoch, version)
    assert (current.error_code, current.leader_epoch, current.end_offset) == (ErrorCode.NONE, epoch, 3)
    unknown = _end_of(raw, topic, epoch + 1, version)
    assert (unknown.error_code, unknown.leader_epoch, unknown.end_offset) == (ErrorCode.NONE, -1, -1)
    missing = _end_of(raw, "there-is-no-such-topic", 0, version)
    assert missing.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_trap_34_an_epoch_before_the_first_one_known(fresh_node: Node) -> None:
    """It ends where the log begins."""
    with Raw(fresh_node.port) as raw:
        create(raw, "later")
        first = metadata_of(raw, "later").partitions[0].leader_epoch
    fresh_node.kill9()
    fresh_node.restart()
    with Raw(fresh_node.port) as raw:
        wait_until(lambda: offset_at(raw, "later", LATEST).error_code == 0, "the partition answers again")
        now = metadata_of(raw, "later").partitions[0].leader_epoch
        produce(raw, "later", batch_of(b"a", b"b"))
        end = _end_of(raw, "later", now, 4)
        assert (end.leader_epoch, end.end_offset) == (now, 2)
        assert now > first
        before = _end_of(raw, "later", first, 4)
        assert (before.error_code, before.leader_epoch, before.end_offset) == (ErrorCode.NONE, first, 0)


def _session_fetch(
    raw: Raw, topic: str, session: int, epoch: int, offsets: dict[int, int], forget: list[int] | None = None
) -> FetchResponse:
    """Asks within a session for these partitions from these offsets, and forgets others."""
    parts = [FetchPartition(number, fetch_offset=at, partition_max_bytes=1_000_000) for number, at in offsets.items()]
    topics = [FetchTopic(topic, partitions=parts)] if parts else []
    forgotten = [ForgottenTopic(topic, partitions=forget)] if forget else []
    request = FetchRequest(session_id=session, session_epoch=epoch, topics=topics, forgotten_topics_data=forgotten)
    answer = raw.call("Fetch", 12, request)
    assert isinstance(answer, FetchResponse)
    return answer


def _partitions(answer: FetchResponse) -> list[int]:
    assert answer.error_code == ErrorCode.NONE
    return sorted(part.partition_index for topic in answer.responses for part in topic.partitions)


def _end_of(raw: Raw, topic: str, epoch: int, version: int) -> EpochEndOffset:
    asked = OffsetForLeaderPartition(0, current_leader_epoch=-1, leader_epoch=epoch)
    request = OffsetForLeaderEpochRequest(-1, [OffsetForLeaderTopic(topic, [asked])])
    (answer,) = raw.call("OffsetForLeaderEpoch", version, request).topics[0].partitions
    assert isinstance(answer, EpochEndOffset)
    return answer
