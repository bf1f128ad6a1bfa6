"""The stream's reader as Spark uses it, without Spark: positions go through JSON, partitions through pickle."""

import json
import pickle
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from klamm.pipeline.kafka.problems import ClusterProblem, NoAnswer
from klamm.pipeline.source.batch import KlammBatchReader
from klamm.pipeline.source.position import said_in
from klamm.pipeline.source.problems import DataLost, WrongCheckpoint, WrongOption
from klamm.pipeline.source.stream import KlammStreamReader
from tests.pipeline.source.topics import Topics

QUICK = {"fetchOffset.retryIntervalMs": "1"}


class Query:
    """A streaming query, as Spark would run it."""

    def __init__(self, options: dict[str, str], checkpoint: dict[str, Any] | None = None) -> None:
        self.reader = KlammStreamReader({"startingOffsets": "earliest", **QUICK, **options})
        self.at = _through_json(self.reader.initialOffset()) if checkpoint is None else checkpoint

    def trigger(self) -> list[tuple[str, int, int, bytes]]:
        end = _through_json(self.reader.latestOffset(self.at, self.reader.getDefaultReadLimit()))
        if json.dumps(end) == json.dumps(self.at):
            return []
        found = self.rows(self.at, end)
        self.at = end
        return found

    def rows(self, start: dict[str, Any], end: dict[str, Any]) -> list[tuple[str, int, int, bytes]]:
        tasks = pickle.loads(pickle.dumps(self.reader.partitions(start, end)))
        batches = [batch for task in tasks for batch in self.reader.read(task)]
        return [
            (row["topic"], row["partition"], row["offset"], row["value"])
            for batch in batches
            for row in batch.to_pylist()
        ]


@pytest.fixture
def query(topics: Topics) -> Iterator[Callable[..., Query]]:
    made: list[Query] = []

    def make(checkpoint: dict[str, Any] | None = None, **options: str) -> Query:
        made.append(Query({"kafka.bootstrap.servers": topics.bootstrap_servers, **options}, checkpoint))
        return made[-1]

    yield make
    for one in made:
        one.reader.stop()


def _through_json(position: dict[str, Any]) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(json.dumps(position))
    return read


def test_each_record_once_whoever_reads(topics: Topics, query: Callable[..., Query]) -> None:
    topics.create("both", 2)
    topics.write("both", 0, [b"%d" % i for i in range(500)], compression_type="zstd")
    topics.write("both", 1, [b"x" * 2000 for _ in range(100)])
    raw = query(subscribe="both", maxOffsetsPerTrigger="240")
    slow = query(subscribe="both", maxOffsetsPerTrigger="240", **{"klamm.reader": "librdkafka"})
    triggers = [raw.trigger() for _ in range(4)]
    assert [len(rows) for rows in triggers] == [240, 240, 120, 0]
    assert [slow.trigger() for _ in range(4)] == triggers
    assert raw.at == slow.at
    assert "said" not in raw.reader.reportLatestOffset()["_klamm"]  # type: ignore[index]
    (said,) = slow.reader.reportLatestOffset()["_klamm"]["said"]  # type: ignore[index]
    assert "librdkafka" in said


def test_the_first_batch_is_read_again_from_where_it_began(topics: Topics, query: Callable[..., Query]) -> None:
    """The driver dies in the first batch: `latest` is elsewhere afterwards, and the batch is the same all the same."""
    topics.create("first")
    topics.write("first", 0, [b"before"])
    dies = query(subscribe="first", startingOffsets="latest")
    topics.write("first", 0, [b"in the batch"])
    end = _through_json(dies.reader.latestOffset(dies.at, ReadAllAvailable()))
    topics.write("first", 0, [b"after"])
    again = query(subscribe="first", startingOffsets="latest")
    assert again.rows(again.at, end) == [("first", 0, 1, b"in the batch")]
    goes_on = query(checkpoint=end, subscribe="first", startingOffsets="latest")
    assert goes_on.trigger() == [("first", 0, 2, b"after")]
    assert goes_on.trigger() == []


def test_the_first_batch_of_a_topic_that_was_created_again_is_lost(
    topics: Topics, query: Callable[..., Query], caplog: pytest.LogCaptureFixture
) -> None:
    """The driver dies in the first batch, and before it is there again the topic is another."""
    topics.create("renewed")
    topics.write("renewed", 0, [b"old"] * 3)
    dies = query(subscribe="renewed")
    end = _through_json(dies.reader.latestOffset(dies.at, ReadAllAvailable()))
    topics.delete("renewed")
    topics.create("renewed")
    topics.write("renewed", 0, [b"new"] * 5)
    again = query(subscribe="renewed")
    with pytest.raises(DataLost, match="created again"):
        again.rows(again.at, end)
    loose = query(subscribe="renewed", failOnDataLoss="false")
    assert loose.rows(loose.at, end) == [] and "created again" in caplog.text


def test_a_topic_is_created_again_before_the_first_batch(
    topics: Topics, query: Callable[..., Query], caplog: pytest.LogCaptureFixture
) -> None:
    topics.create("soon")
    topics.write("soon", 0, [b"old"] * 3)
    loose = query(subscribe="soon", startingOffsets="latest", failOnDataLoss="false")
    topics.delete("soon")
    topics.create("soon")
    topics.write("soon", 0, [b"new"] * 5)
    assert [row[2] for row in loose.trigger()] == [0, 1, 2, 3, 4]
    assert "created again" in caplog.text


def test_available_now_stops_at_what_was_there(topics: Topics, query: Callable[..., Query]) -> None:
    topics.create("now")
    topics.write("now", 0, [b"a", b"b"])
    one = query(subscribe="now", maxOffsetsPerTrigger="1", minOffsetsPerTrigger="1")
    one.reader.prepareForTriggerAvailableNow()
    topics.write("now", 0, [b"late"])
    assert [row[3] for _ in range(4) for row in one.trigger()] == [b"a", b"b"]
    assert one.reader.reportLatestOffset()["now"] == {"0": 2}  # type: ignore[index]


def test_a_trigger_waits_for_enough(topics: Topics, query: Callable[..., Query]) -> None:
    topics.create("enough")
    one = query(subscribe="enough", minOffsetsPerTrigger="3")
    one.trigger()
    topics.write("enough", 0, [b"a", b"b"])
    assert one.trigger() == []
    topics.write("enough", 0, [b"c"])
    assert len(one.trigger()) == 3


def test_topics_by_pattern_and_new_ones(topics: Topics, query: Callable[..., Query]) -> None:
    topics.create("pattern-a")
    topics.write("pattern-a", 0, [b"1"])
    one = query(subscribePattern="pattern-.")
    assert one.trigger() == [("pattern-a", 0, 0, b"1")]
    topics.create("pattern-b")
    topics.write("pattern-b", 0, [b"2"])
    assert one.trigger() == [("pattern-b", 0, 0, b"2")]


def test_progress_is_shown_to_others(topics: Topics, query: Callable[..., Query]) -> None:
    topics.create("progress")
    topics.write("progress", 0, [b"1", b"2"])
    for reader in ("raw", "librdkafka"):
        one = query(subscribe="progress", **{"kafka.group.id": f"group-{reader}", "klamm.reader": reader})
        one.trigger()
        one.reader.commit(one.at)
        assert topics.committed(f"group-{reader}", "progress", 1) == [2]


def test_progress_that_cannot_be_shown_is_no_loss(
    topics: Topics, query: Callable[..., Query], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    attempts = []

    def refuse(*_: object) -> None:
        attempts.append(1)
        raise NoAnswer("nobody there")

    monkeypatch.setattr("klamm.pipeline.kafka.committing.GroupProgress.write_down", refuse)
    topics.create("unseen")
    topics.write("unseen", 0, [b"1"])
    one = query(subscribe="unseen", **{"kafka.group.id": "unseen"})
    assert len(one.trigger()) == 1
    one.reader.commit(one.at)
    assert "could not be written down" in caplog.text
    one.trigger()
    assert len(attempts) == 1, "it is not tried with every trigger: it takes seconds"


def test_a_checkpoint_of_somebody_else(topics: Topics, query: Callable[..., Query]) -> None:
    topics.create("mine")
    one = query(subscribe="mine")
    with pytest.raises(WrongCheckpoint, match="Kafka connector"):
        one.reader.latestOffset({"mine": {"0": 0}}, ReadMaxRows(5))
    elsewhere = {**one.at, "_klamm": {**one.at["_klamm"], "cluster": "elsewhere"}}
    with pytest.raises(WrongCheckpoint, match="written for elsewhere"):
        one.reader.latestOffset(elsewhere, ReadMaxRows(5))
    with pytest.raises(WrongCheckpoint, match="written for elsewhere"):
        one.reader.partitions(elsewhere, elsewhere)


def test_retention_takes_records(topics: Topics, query: Callable[..., Query], caplog: pytest.LogCaptureFixture) -> None:
    topics.create("retention")
    topics.write("retention", 0, [b"%d" % i for i in range(10)])
    strict = query(subscribe="retention")
    loose = query(checkpoint=strict.at, subscribe="retention", failOnDataLoss="false")
    admin = AdminClient({"bootstrap.servers": topics.bootstrap_servers, "log_level": 0})
    for future in admin.delete_records([TopicPartition("retention", 0, 4)]).values():
        future.result(30)
    with pytest.raises(DataLost, match="retention-0 offsets 0 to 3"):
        strict.trigger()
    assert [row[2] for row in loose.trigger()] == [4, 5, 6, 7, 8, 9]
    assert "retention-0 offsets 0 to 3" in caplog.text
    # A pipeline's log is a file: what is lost stands in Spark's progress reports as well.
    (said,) = said_in({"sources": [{"latestOffset": json.dumps(loose.reader.reportLatestOffset())}]})
    assert "UTC: Records were lost: retention-0 offsets 0 to 3" in said


def test_a_topic_goes_and_comes_back(
    topics: Topics, query: Callable[..., Query], caplog: pytest.LogCaptureFixture
) -> None:
    topics.create("gone")
    topics.write("gone", 0, [b"old"] * 3)
    strict, loose = query(subscribe="gone"), query(subscribe="gone", failOnDataLoss="false")
    assert len(strict.trigger()) == len(loose.trigger()) == 3
    topics.delete("gone")
    with pytest.raises(DataLost, match=r"gone-0 from offset 3 on .the topic or partition was deleted"):
        strict.trigger()
    assert loose.trigger() == [] and "deleted" in caplog.text
    topics.create("gone")
    topics.write("gone", 0, [b"new"] * 5)
    with pytest.raises(DataLost, match="created again"):
        strict.trigger()
    assert loose.trigger() == [("gone", 0, offset, b"new") for offset in range(5)]
    goes_on = query(checkpoint=strict.at, subscribe="gone", failOnDataLoss="false")
    assert len(goes_on.trigger()) == 5 and "created again" in caplog.text


def test_a_topic_that_is_not_there(topics: Topics, query: Callable[..., Query]) -> None:
    for reader in ("raw", "librdkafka"):
        with pytest.raises(ClusterProblem, match=r"no topic nowhere in the cluster .*klamm topic create nowhere"):
            query(subscribe="nowhere", **{"klamm.reader": reader})


def test_a_cluster_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("klamm.pipeline.kafka.settings.FIRST_PATIENCE_SECONDS", 0.2)
    for reader in ("raw", "librdkafka"):
        with pytest.raises(NoAnswer, match=r"No cluster answers at 127.0.0.1:1 .*Check that it runs"):
            Query({"kafka.bootstrap.servers": "127.0.0.1:1", "subscribe": "x", "klamm.reader": reader})


def test_settings_that_only_java_knows(topics: Topics, query: Callable[..., Query]) -> None:
    with pytest.raises(ClusterProblem, match=r"ssl\.protocol.*leave out those that only Java knows"):
        query(subscribe="x", **{"klamm.reader": "librdkafka", "kafka.ssl.protocol": "TLSv1.3"})


def test_a_start_behind_the_end(topics: Topics, query: Callable[..., Query]) -> None:
    topics.create("behind")
    with pytest.raises(WrongOption, match="start at offset 5, and ends at 0"):
        query(subscribe="behind", startingOffsets='{"behind": {"0": 5}}')


def test_times_and_offsets_of_a_batch(topics: Topics) -> None:
    topics.create("past", 2)
    topics.write("past", 0, [b"early"])
    between = int(time.time() * 1000) + 1
    while time.time() * 1000 <= between:
        time.sleep(0.001)
    topics.write("past", 0, [b"late", b"later"])
    assert _batch(topics, startingTimestamp=str(between), startingOffsetsByTimestampStrategy="latest") == [
        b"late",
        b"later",
    ]
    assert _batch(topics, endingTimestamp=str(between)) == [b"early"]
    assert _batch(topics, startingOffsets='{"past": {"0": 2, "1": -2}}') == [b"later"]
    assert _batch(topics, endingOffsets='{"past": {"0": 1, "1": -1}}') == [b"early"]
    with pytest.raises(WrongOption, match="past-1 has no record at or after"):
        _batch(topics, startingTimestamp=str(between))
    with pytest.raises(WrongOption, match="past-1 missing"):
        _batch(topics, startingOffsets='{"past": {"0": 2}}')
    with pytest.raises(WrongOption, match="up to offset 4, and ends at 3"):
        _batch(topics, endingOffsets='{"past": {"0": 4, "1": 0}}')
    with pytest.raises(WrongOption, match="start at offset 9 and end before that, at 3"):
        _batch(topics, startingOffsets='{"past": {"0": 9, "1": 0}}')


def _batch(topics: Topics, **options: str) -> list[bytes]:
    reader = KlammBatchReader({"kafka.bootstrap.servers": topics.bootstrap_servers, "subscribe": "past", **options})
    return [value.as_py() for task in reader.partitions() for batch in reader.read(task) for value in batch.column(1)]
