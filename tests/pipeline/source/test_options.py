"""Options mean what they mean to Spark's Kafka connector, and every mistake says what to do."""

import pytest
from confluent_kafka import Consumer

from klamm.ids import TopicPartition
from klamm.pipeline.kafka.connection import Address
from klamm.pipeline.source.limits import Kind
from klamm.pipeline.source.options import SourceOptions, batch_options, stream_options
from klamm.pipeline.source.problems import WrongOption

LEAST = {"kafka.bootstrap.servers": "one:9092", "subscribe": "orders"}


def test_what_nobody_says_is_as_the_connector_has_it() -> None:
    stream, batch = stream_options(LEAST), batch_options(LEAST)
    assert (stream.starting.kind, batch.starting.kind, batch.ending.kind) == (Kind.LATEST, Kind.EARLIEST, Kind.LATEST)
    assert stream.fail_on_data_loss and not stream.include_headers and stream.group is None
    assert stream.max_offsets_per_trigger is None and stream.max_trigger_delay_seconds == 900
    assert (stream.attempts, stream.attempt_pause_seconds) == (3, 1.0)
    assert stream.cluster.patience_seconds == 120 and not stream.cluster.read_committed
    assert stream.reader == "raw"


def test_names_are_the_same_in_any_case() -> None:
    options = stream_options(
        {
            "KAFKA.bootstrap.SERVERS": "one:1, PLAINTEXT://two:2 ,three",
            "subscribepattern": "order.*",
            "MAXOFFSETSPERTRIGGER": "7",
            "Kafka.Isolation.Level": "READ_COMMITTED",
            "kafka.client.rack": "left",
            "FailOnDataLoss": "False",
            "maxtriggerdelay": "90s",
        }
    )
    assert options.cluster.bootstrap == (Address("one", 1), Address("two", 2), Address("three", 9092))
    assert options.wanted.pattern == "order.*" and options.max_offsets_per_trigger == 7
    assert options.cluster.read_committed and options.cluster.rack == "left"
    assert not options.fail_on_data_loss and options.max_trigger_delay_seconds == 90


def test_what_to_read() -> None:
    topics = stream_options({**LEAST, "subscribe": " a, b,,a "}).wanted.topics
    assert topics == ("a", "b")
    assigned = _assigning('{"b": [1, 0], "a": [3]}').wanted.partitions
    assert assigned == (TopicPartition("a", 3), TopicPartition("b", 0), TopicPartition("b", 1))


def test_where_to_begin_prefers_times() -> None:
    both = {
        "startingTimestamp": "5",
        "startingOffsetsByTimestamp": '{"orders": {"0": 6}}',
        "startingOffsets": "earliest",
    }
    assert (stream_options({**LEAST, **both}).starting.kind, stream_options({**LEAST, **both}).starting.time_ms) == (
        Kind.TIME,
        5,
    )
    del both["startingTimestamp"]
    assert stream_options({**LEAST, **both}).starting.values == {TopicPartition("orders", 0): 6}
    offsets = stream_options({**LEAST, "startingOffsets": '{"orders": {"0": 23, "1": -2, "2": -1}}'}).starting
    assert [offsets.values[TopicPartition("orders", i)] for i in range(3)] == [23, -2, -1]
    assert stream_options({**LEAST, "startingOffsets": " Latest "}).starting.kind is Kind.LATEST


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"kafka.auto.offset.reset": "earliest"}, "startingOffsets"),
        ({"kafka.key.deserializer": "x"}, "columns of bytes"),
        ({"kafka.value.deserializer": "x"}, "columns of bytes"),
        ({"kafka.enable.auto.commit": "true"}, "kafka.group.id"),
        ({"kafka.interceptor.classes": "x"}, "DataFrame functions"),
        ({"subscribePattern": "x"}, "subscribe and subscribePattern are given"),
        ({"subscribe": " , "}, "names no topic"),
        ({"minPartitions": "0"}, "minPartitions is 0"),
        ({"maxRecordsPerPartition": "-1"}, "1 or more"),
        ({"minOffsetsPerTrigger": "9", "maxOffsetsPerTrigger": "8"}, "above maxOffsetsPerTrigger"),
        ({"maxOffsetsPerTrigger": "many"}, "whole number"),
        ({"failOnDataLoss": "perhaps"}, "'true' or 'false'"),
        ({"maxTriggerDelay": "soon"}, "15m"),
        ({"startingOffsets": "beginning"}, "'earliest', 'latest' or offsets"),
        ({"startingOffsets": '{"orders": {"0": -3}}'}, "-2 for earliest"),
        ({"startingOffsets": '{"orders": {"0": "x"}}'}, "expected e.g."),
        ({"startingOffsetsByTimestampStrategy": "guess"}, "'error' or 'latest'"),
        ({"startingTimestamp": "today"}, "milliseconds since 1970"),
        ({"kafka.bootstrap.servers": "one:port"}, "is not host:port"),
        ({"kafka.isolation.level": "none"}, "read_committed"),
        ({"klamm.reader": "raw", "kafka.security.protocol": "SSL"}, "neither TLS nor SASL"),
        ({"klamm.reader": "librdkafka", "kafka.sasl.jaas.config": "x"}, "kafka.sasl.jaas.config names no login module"),
        ({"kafka.security.protocol": "SSL", "kafka.ssl.truststore.location": "/t.jks"}, "kafka.ssl.ca.location"),
        ({"kafka.fetch.min.bytes": "few"}, "whole number"),
        ({"maxOffsetPerTrigger": "5"}, "Did you mean 'maxOffsetsPerTrigger'"),
        ({"startingOffset": "earliest"}, "Did you mean 'startingOffsets'"),
        ({"group.id": "g"}, "Did you mean 'kafka.group.id'"),
        ({"kafka.subscribe": "g"}, "Did you mean 'subscribe'"),
    ],
)
def test_a_mistake_says_what_to_do(changed: dict[str, str], said: str) -> None:
    for understood in (stream_options, batch_options):
        with pytest.raises(WrongOption) as problem:
            understood({**LEAST, **changed})
        assert said in str(problem.value) and "\n" not in str(problem.value)


@pytest.mark.parametrize("missing", ["kafka.bootstrap.servers", "subscribe"])
def test_what_is_needed(missing: str) -> None:
    with pytest.raises(WrongOption, match=missing):
        stream_options({name: text for name, text in LEAST.items() if name != missing})


@pytest.mark.parametrize("text", ["", "orders", "[1]", '{"a": 1}', '{"a": ["x"]}', "{}", '{"a": []}'])
def test_assign_wants_partitions(text: str) -> None:
    with pytest.raises(WrongOption, match="assign"):
        _assigning(text)


def test_names_of_others_are_left_alone() -> None:
    stream_options({**LEAST, "path": "/x", "kafka.max.poll.records": "5", "withEventTimeOrder": "true"})


@pytest.mark.parametrize("name", ["endingOffsets", "endingOffsetsByTimestamp"])
def test_a_stream_has_no_end(name: str) -> None:
    with pytest.raises(WrongOption, match="a stream has no end"):
        stream_options({**LEAST, name: "latest"})


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"startingOffsets": "latest"}, "starts at the end"),
        ({"startingOffsets": '{"orders": {"0": -1}}'}, "For orders-0"),
        ({"endingOffsets": "earliest"}, "ends at the beginning"),
        ({"endingOffsets": '{"orders": {"0": -2}}'}, "For orders-0"),
        ({"startingOffsets": '{"orders": {"0": 5}}', "endingOffsets": '{"orders": {"0": 4}}'}, "start at 5"),
        ({"startingOffsets": '{"orders": {"0": 5}}', "endingOffsets": '{"orders": {"1": 9}}'}, "orders-0, orders-1"),
    ],
)
def test_a_batch_is_a_piece_of_the_past(changed: dict[str, str], said: str) -> None:
    with pytest.raises(WrongOption, match=said):
        batch_options({**LEAST, **changed})


def test_security_goes_through_librdkafka(caplog: pytest.LogCaptureFixture) -> None:
    options = stream_options({**LEAST, "kafka.security.protocol": "SASL_SSL", "kafka.sasl.username": "me"})
    assert options.reader == "librdkafka" and "slower" in caplog.text
    assert dict(options.cluster.for_librdkafka) == {"security.protocol": "SASL_SSL", "sasl.username": "me"}


def test_a_jaas_line_is_understood_when_reading_too() -> None:
    line = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="me" password="secret";'
    secured = {"kafka.security.protocol": "SASL_SSL", "kafka.sasl.jaas.config": line}
    found = dict(stream_options({**LEAST, **secured}).cluster.for_librdkafka)
    assert found == {"security.protocol": "SASL_SSL", "sasl.username": "me", "sasl.password": "secret"}
    # Who reads without security may have anything lying about.
    assert stream_options({**LEAST, "kafka.sasl.jaas.config": "x"}).reader == "raw"


def test_how_much_is_fetched_at_once() -> None:
    given = {"kafka.fetch.min.bytes": "1000", "kafka.fetch.max.wait.ms": "70", "kafka.fetch.max.bytes": "9000000"}
    cluster = stream_options({**LEAST, **given}).cluster
    assert (cluster.fetch_least_bytes, cluster.fetch_wait_ms, cluster.fetch_bytes) == (1000, 70, 9_000_000)
    given["kafka.max.partition.fetch.bytes"] = "500000"
    assert stream_options({**LEAST, **given}).cluster.fetch_bytes == 500_000
    through = stream_options({**LEAST, **given, "klamm.reader": "librdkafka"}).cluster.for_librdkafka
    Consumer({**dict(through), "group.id": "g"})  # it knows all of them
    assert dict(through)["fetch.wait.max.ms"] == "70"


def _assigning(text: str) -> SourceOptions:
    return stream_options({"kafka.bootstrap.servers": "one:1", "assign": text})
