"""Kafka's dump tool over the broker's own files: every batch valid, every index entry right."""

import re
from pathlib import Path

import pytest

from tests.clients import DRIVERS
from tests.compat.java_tools import JavaTools, Ran
from tests.harness.fixtures import StartNode
from tests.harness.node import Node
from tests.harness.raw import Raw
from tests.harness.requests import batch_of, create, produce
from tests.harness.topics import create_topic
from tests.harness.waiting import wait_until
from tests.harness.workload import CODECS, FIRST_TIMESTAMP_MS, drawn_records, odd_records

DUMP = "org.apache.kafka.tools.DumpLogSegments"
ROLLING = {"segment.bytes": str(1024 * 1024), "index.interval.bytes": "2048"}
COMPLAINTS = (
    "isvalid: false",
    "ismatch",
    "corrupt",
    "Non-consecutive",
    "Found ",
    "Exception",
    "unknown file",
    "nvalid",
)


@pytest.mark.parametrize("stopped", ["cleanly", "by-kill-9"])
def test_dump_log_finds_nothing_wrong(start_node: StartNode, tools: JavaTools, stopped: str) -> None:
    """All codecs, idempotent and not, records of every kind, and one partition that rolled several segments."""
    node = start_node()
    librdkafka, kafka_python, aiokafka = DRIVERS
    counts = {}
    for turn, codec in enumerate(CODECS):
        create_topic(node.bootstrap, codec, 1, ROLLING)
        many = drawn_records(40_000 if codec == "none" else 4_000, 1, seed=turn)
        aiokafka.produce(node.bootstrap, codec, many, codec)
        kafka_python.produce(node.bootstrap, codec, many[:1000], codec, idempotent=True)
        librdkafka.produce(node.bootstrap, codec, many[:1000] + odd_records(), codec, idempotent=True)
        counts[codec] = len(many) + 2000 + len(odd_records())
    if stopped == "cleanly":
        node.stop()
    else:
        node.kill9()
        node.restart()  # What recovery made of the files has to be as good.
        node.stop()

    for codec in CODECS:
        dumped = _dumped_without_complaint(tools, node, f"{codec}-0")
        assert _record_offsets(dumped) == list(range(counts[codec]))
        assert f"compresscodec: {codec} " in dumped
    segments = sorted((node.dir / "none-0").glob("*.log"))
    assert len(segments) >= 3, "it was meant to roll"
    assert all(path.with_suffix(".index").stat().st_size > 0 for path in segments[:-1]), "and to be indexed"


def test_dump_log_reads_segments_of_one_batch_each(start_node: StartNode, tools: JavaTools) -> None:
    """They have a time to index and no position: the offset index is empty, and the tool wants it to be there."""
    node = start_node()
    with Raw(node.port) as raw:
        create(raw, "large", config=ROLLING)
        for number in range(4):
            assert (
                produce(raw, "large", batch_of(bytes(700_000), timestamp=FIRST_TIMESTAMP_MS + number)).error_code == 0
            )
    node.stop()
    assert len(list((node.dir / "large-0").glob("*.log"))) == 4
    assert _record_offsets(_dumped_without_complaint(tools, node, "large-0")) == [0, 1, 2, 3]


def test_dump_log_reads_a_compacted_topic(start_node: StartNode, tools: JavaTools) -> None:
    """Once records have gone, offsets have gaps; batches and indexes are right all the same."""
    node = start_node({"log.cleaner.backoff.ms": "100"})
    create_topic(
        node.bootstrap, "latest", 1, {**ROLLING, "cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"}
    )
    librdkafka, _, aiokafka = DRIVERS
    keyed = [record._replace(key=record.key or b"k") for record in drawn_records(40_000, 1)]
    aiokafka.produce(node.bootstrap, "latest", keyed)
    wait_until(
        lambda: len(librdkafka.consume(node.bootstrap, "latest", [0])[0]) < len(keyed) / 2,
        "most of what later records replace is gone",
        within_seconds=45,
    )
    node.stop()
    dumped = _dump(tools, node, "latest-0")
    offsets = _record_offsets(dumped.checked())
    assert "isvalid: false" not in dumped.out
    assert not any(complaint in dumped.err + dumped.out for complaint in ("ismatch", "Found "))
    assert offsets == sorted(set(offsets)) and offsets[-1] == len(keyed) - 1
    assert len(offsets) < len(keyed) / 2


def _dumped_without_complaint(tools: JavaTools, node: Node, partition: str) -> str:
    """What the tool prints of a partition's files, after it has found nothing wrong with them."""
    ran = _dump(tools, node, partition)
    dumped = ran.checked()
    assert _real_complaints(ran.err) == []
    for complaint in COMPLAINTS:
        assert complaint not in dumped, _around(dumped, complaint)
    assert dumped.count("isvalid: true") == len(re.findall(r"^baseOffset", dumped, re.MULTILINE))
    return dumped


def _dump(tools: JavaTools, node: Node, partition: str) -> Ran:
    files = ",".join(map(str, _files(node, partition)))
    return tools.run(DUMP, "--deep-iteration", "--files", files)


def _record_offsets(dumped: str) -> list[int]:
    return [int(offset) for offset in re.findall(r"^\| offset: (\d+) ", dumped, re.MULTILINE)]


def _real_complaints(err: str) -> list[str]:
    """All but one: the tool takes every later segment's first record for a jump from -1, on Kafka's files as well."""
    lines = err.splitlines()
    jumps = [place for place, line in enumerate(lines) if re.fullmatch(r"  -1 is followed by [1-9]\d*", line)]
    known = {*jumps, *(place - 1 for place in jumps if lines[place - 1].startswith("Non-consecutive offsets in "))}
    return [line for place, line in enumerate(lines) if place not in known]


def _files(node: Node, partition: str) -> list[Path]:
    endings = (".log", ".index", ".timeindex", ".snapshot")
    return sorted(path for path in (node.dir / partition).iterdir() if path.suffix in endings)


def _around(text: str, part: str) -> str:
    place = text.index(part)
    return text[max(0, place - 300) : place + 300]
