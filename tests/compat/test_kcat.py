"""kcat from Debian: an old librdkafka (2.0). It does not compress unless the oldest Produce is advertised."""
# ruff: noqa: N802  (tests are named after the rows of the system)

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.clients import DRIVERS
from tests.harness.node import Node
from tests.harness.topics import create_topic
from tests.harness.workload import CODECS, assert_stored_with

PARTITIONS = 4
EACH_PARTITION = 25_000


@pytest.fixture(autouse=True)
def _kcat_is_there() -> None:
    if shutil.which("kcat") is None:
        pytest.skip("needs kcat: apt-get install kcat")


@pytest.mark.parametrize("codec", CODECS)
def test_S2_kcat_consumes_the_hundred_thousand_it_produced(node: Node, topic: str, tmp_path: Path, codec: str) -> None:
    """With keys and headers, null keys and null values, into given partitions, in order, stored with the codec."""
    create_topic(node.bootstrap, topic, PARTITIONS)
    for partition in range(PARTITIONS):
        typed = tmp_path / "typed"
        typed.write_text("".join(f"{key}|{value}\n" for key, value in map(_record, range(EACH_PARTITION))))
        where = ["-t", topic, "-p", str(partition), "-z", codec]
        headers = ["-H", f"partition={partition}", "-H", "source=kcat", "-H", "empty="]
        _kcat(node, "-P", *where, "-K", "|", "-Z", *headers, "-l", str(typed))

    printed = _kcat(node, "-C", "-t", topic, "-o", "beginning", "-e", "-q", "-f", "%p %o|%K|%k|%S|%s|%h\n").splitlines()
    for partition in range(PARTITIONS):
        mark = f"{partition} "
        held = [line[len(mark) :] for line in printed if line.startswith(mark)]
        headers_shown = f"partition={partition},source=kcat,empty="
        assert held == [f"{offset}|{_shown(offset)}|{headers_shown}" for offset in range(EACH_PARTITION)]
    assert_stored_with(node.dir, topic, range(PARTITIONS), codec)


def test_S23_kcat_reads_from_an_offset_and_finds_times(node: Node, topic: str, tmp_path: Path) -> None:
    create_topic(node.bootstrap, topic, 1)
    typed = tmp_path / "typed"
    typed.write_text("".join(f"{number}\n" for number in range(100)))
    _kcat(node, "-P", "-t", topic, "-p", "0", "-z", "lz4", "-l", str(typed))
    read = ["-C", "-t", topic, "-p", "0", "-e", "-q"]
    assert _kcat(node, *read, "-o", "97") == "97\n98\n99\n"
    assert _kcat(node, *read, "-o", "-2") == "98\n99\n"
    assert _kcat(node, *read, "-o", "end") == ""
    assert _kcat(node, *read, "-o", "10", "-c", "2") == "10\n11\n"
    assert _kcat(node, "-Q", "-t", f"{topic}:0:-1").strip() == f"{topic} [0] offset 100"
    assert _kcat(node, "-Q", "-t", f"{topic}:0:1").strip() == f"{topic} [0] offset 0"


def test_S11_kcat_lists_the_cluster(node: Node, topic: str) -> None:
    create_topic(node.bootstrap, topic, 3)
    listed = json.loads(_kcat(node, "-L", "-J", "-t", topic))
    assert [(broker["id"], broker["name"]) for broker in listed["brokers"]] == [(0, node.bootstrap)]
    (shown,) = listed["topics"]
    wanted = [{"partition": n, "leader": 0, "replicas": [{"id": 0}], "isrs": [{"id": 0}]} for n in range(3)]
    assert sorted(shown["partitions"], key=lambda partition: partition["partition"]) == wanted


def test_S3_kcat_keeps_a_key_in_one_partition(node: Node, topic: str, tmp_path: Path) -> None:
    create_topic(node.bootstrap, topic, 5)
    typed = tmp_path / "typed"
    typed.write_text("".join(f"key-{number % 20}|{number}\n" for number in range(1000)))
    _kcat(node, "-P", "-t", topic, "-K", "|", "-l", str(typed))
    found = DRIVERS[0].consume(node.bootstrap, topic, range(5))
    for key in range(20):
        homes = [held for held in found.values() if any(one.key == b"key-%d" % key for one in held)]
        assert len(homes) == 1
        values = [one.value for one in homes[0] if one.key == b"key-%d" % key]
        assert values == [b"%d" % number for number in range(1000) if number % 20 == key]


def test_kcat_idempotent_producer(node: Node, topic: str, tmp_path: Path) -> None:
    create_topic(node.bootstrap, topic, 1)
    typed = tmp_path / "typed"
    typed.write_text("".join(f"{number}\n" for number in range(5000)))
    _kcat(node, "-P", "-t", topic, "-p", "0", "-X", "enable.idempotence=true", "-z", "zstd", "-l", str(typed))
    held = DRIVERS[0].consume(node.bootstrap, topic, [0])[0]
    assert [one.value for one in held] == [b"%d" % number for number in range(5000)]


def _record(number: int) -> tuple[str, str]:
    """Key and value as kcat reads them; with -Z an empty one is null."""
    key = "" if number % 7 == 0 else f"store-{number % 300}"
    return key, "" if number % 11 == 3 else f"invoice {number} that looks much like all the others"


def _shown(number: int) -> str:
    """The same as `-f %K|%k|%S|%s` shows it: lengths first, -1 for null."""
    return "|".join(f"{len(part) or -1}|{part}" for part in _record(number))


def _kcat(node: Node, *arguments: str) -> str:
    ran = subprocess.run(["kcat", "-b", node.bootstrap, *arguments], capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout
