"""Kafka's console and performance tools move records."""
# ruff: noqa: N802  (tests are named after the rows of the system)

from pathlib import Path

import pytest
from kafka.partitioner.default import murmur2

from tests.compat.java_client import JavaClient
from tests.compat.java_tools import JavaTools
from tests.harness.node import Node, under_test
from tests.harness.topics import create_topic
from tests.harness.waiting import wait_until
from tests.harness.workload import CODECS, assert_stored_with, stored_batches

PRODUCER = "org.apache.kafka.tools.ConsoleProducer"
CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
PERFORMANCE = "org.apache.kafka.tools.ProducerPerformance"
CONSUMER_PERFORMANCE = "org.apache.kafka.tools.ConsumerPerformance"
LATENCY = "org.apache.kafka.tools.EndToEndLatency"
EACH_CODEC = 20_000
PARTITIONS = 2


@pytest.mark.parametrize("codec", CODECS)
def test_S3_console_producer_to_console_consumer(
    node: Node, topic: str, tools: JavaTools, tmp_path: Path, codec: str
) -> None:
    """A fifth of a hundred thousand records a codec, with keys and headers, some null; in order per partition."""
    create_topic(node.bootstrap, topic, PARTITIONS)
    lines = [_typed(number) for number in range(EACH_CODEC)]
    typed = tmp_path / "typed"
    typed.write_text("".join(f"{line}\n" for line in lines))
    bootstrap = ["--bootstrap-server", node.bootstrap, "--topic", topic]
    reading = ["parse.key=true", "parse.headers=true", "null.marker=NULL"]
    tools.run(
        PRODUCER, *bootstrap, "--compression-codec", codec, *_properties("--reader-property", reading), stdin=typed
    )

    printing = ["print.key=true", "print.headers=true", "print.offset=true", "null.literal=NULL"]
    keyless = 0
    for partition in range(PARTITIONS):
        place = ["--partition", str(partition), "--offset", "earliest", "--timeout-ms", "2000"]
        seen = tools.run(CONSUMER, *bootstrap, *place, *_properties("--formatter-property", printing)).out.splitlines()
        assert [line.partition("\t")[0] for line in seen] == [f"Offset:{offset}" for offset in range(len(seen))]
        held = [line.partition("\t")[2] for line in seen]
        keyless += sum(line.split("\t")[1] == "NULL" for line in held)
        wanted = [_printed(line) for line in lines if _partition_of(line) == partition]
        assert [line for line in held if line.split("\t")[1] != "NULL"] == wanted
    assert keyless == sum(_partition_of(line) is None for line in lines)
    assert_stored_with(node.dir, topic, range(PARTITIONS), codec)


def test_S23_console_consumer_starts_at_an_offset(node: Node, topic: str, tools: JavaTools, java: JavaClient) -> None:
    create_topic(node.bootstrap, topic, 1)
    java.produce_unplaced(node.bootstrap, topic, [(None, b"%d" % number) for number in range(50)], "murmur2")
    place = ["--topic", topic, "--partition", "0", "--offset", "17", "--max-messages", "3"]
    assert tools.run(CONSUMER, "--bootstrap-server", node.bootstrap, *place).checked() == "17\n18\n19\n"


@pytest.mark.parametrize("acks", ["all", "1", "0"])
def test_producer_performance_sends_a_hundred_thousand(
    node: Node, topic: str, tools: JavaTools, java: JavaClient, acks: str
) -> None:
    create_topic(node.bootstrap, topic, 6)
    load = ["--topic", topic, "--num-records", "100000", "--record-size", "100", "--throughput", "-1"]
    settings = [f"bootstrap.servers={node.bootstrap}", f"acks={acks}"]
    if acks != "all":
        settings.append("enable.idempotence=false")
    printed = tools.run(PERFORMANCE, *load, "--command-property", *settings).checked()
    assert "100000 records sent" in printed
    wait_until(lambda: _records_in(node, topic, 6) == 100_000, "all are there; with acks=0 that is a moment later")
    found = java.consume(node.bootstrap, topic, range(6))
    assert sum(map(len, found.values())) == 100_000
    assert all(len(record.value or b"") == 100 for records in found.values() for record in records)


def test_end_to_end_latency_measures(node: Node, topic: str, tools: JavaTools, tmp_path: Path) -> None:
    """Every record is sent, read back and compared.

    The tool's last act is to commit its offsets to a group. The Apache Kafka of these tests has no coordinator, and
    there that fails, and only that.
    """
    patience = tmp_path / "client.properties"
    patience.write_text("default.api.timeout.ms=3000\nrequest.timeout.ms=2000\n")
    load = ["--num-records", "1000", "--producer-acks", "all", "--record-size", "100"]
    asked = ["--bootstrap-server", node.bootstrap, "--topic", topic, *load, "--command-config", str(patience)]
    ran = tools.run(LATENCY, *asked)
    assert "Avg latency:" in ran.out and "Percentiles: 50th" in ran.out, ran
    assert ran.code == 0 or (under_test() == "kafka" and "committing offsets" in ran.err), ran


def test_consumer_perf_test_reads_as_a_group(node: Node, topic: str, tools: JavaTools) -> None:
    """It subscribes, so it needs a coordinator, which the Apache Kafka of these tests does not have."""
    if under_test() == "kafka":
        pytest.skip("started without coordinators")
    create_topic(node.bootstrap, topic, PARTITIONS)
    load = ["--num-records", "5000", "--throughput", "-1", "--record-size", "100"]
    tools.run(
        PERFORMANCE, "--topic", topic, *load, "--command-property", f"bootstrap.servers={node.bootstrap}"
    ).checked()
    ran = tools.run(CONSUMER_PERFORMANCE, "--bootstrap-server", node.bootstrap, "--topic", topic, "--messages", "5000")
    figures = ran.checked().splitlines()[-1].split(", ")
    assert int(figures[4]) >= 5_000, ran


def _records_in(node: Node, topic: str, partitions: int) -> int:
    return sum(batch.record_count for number in range(partitions) for batch in stored_batches(node.dir, topic, number))


def _typed(number: int) -> str:
    """Headers, key and value as the console producer reads them."""
    headers = "NULL" if number % 3 == 0 else f"n:{number},kind:invoice"
    key = "NULL" if number % 7 == 0 else f"store-{number % 500}"
    value = "NULL" if number % 11 == 5 else f"invoice {number} of many that look much like each other"
    return f"{headers}\t{key}\t{value}"


def _printed(typed: str) -> str:
    """The same as the console consumer prints them."""
    headers, _, rest = typed.partition("\t")
    return f"{'NO_HEADERS' if headers == 'NULL' else headers}\t{rest}"


def _partition_of(typed: str) -> int | None:
    """Where the key sends it; the client chooses for one without a key."""
    key = typed.split("\t")[1]
    return None if key == "NULL" else (murmur2(key.encode()) & 0x7FFFFFFF) % PARTITIONS


def _properties(option: str, properties: list[str]) -> list[str]:
    return [part for one in properties for part in (option, one)]
