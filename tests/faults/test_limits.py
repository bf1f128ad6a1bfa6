"""Limits of the process: a file that may not grow is a write that fails; few descriptors are enough for many logs."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from klamm.errors import ErrorCode
from tests.crash.client import Client
from tests.faults.broker import batch_of, check_no_stack_trace, read, write
from tests.harness.klamm_node import KlammNode
from tests.harness.node import Node


class LimitedNode(KlammNode):
    """A broker under one of the system's limits."""

    def __init__(self, home: Path, limit: str) -> None:
        super().__init__(home)
        self.limit = limit

    def command(self) -> list[str]:
        return ["prlimit", self.limit, *super().command()] if self.limit else super().command()


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    if subprocess.run(["prlimit", "--version"], capture_output=True, check=False).returncode != 0:
        pytest.skip("needs prlimit (util-linux)")
    yield tmp_path


def stopped_at_the_end(node: Node) -> None:
    check_no_stack_trace(node)
    node.discard()


def test_a_write_that_fails_for_good(home: Path) -> None:
    """No file may grow beyond 200 kB, so the write itself fails and there is nothing to wait for. The partition goes
    offline, the others serve, and with the limit lifted and a restart everything acknowledged is there."""
    node = LimitedNode(home, "--fsize=200000")
    node.start()
    try:
        acknowledged: dict[str, list[bytes]] = {"safe": [], "quick": []}
        with Client(node.port) as client:
            client.create_topic("safe", flush_messages="1")
            client.create_topic("quick")
            client.create_topic("others")
            for topic, values in acknowledged.items():
                for number in range(300):
                    value = b"%d" % number + b"." * 1_000
                    code = client.produce(topic, batch_of(value)).error_code
                    assert code in (ErrorCode.NONE, ErrorCode.KAFKA_STORAGE_ERROR)
                    if code == ErrorCode.NONE:
                        values.append(value)
                assert 100 < len(values) < 300
                assert client.produce(topic, batch_of(b"small")).error_code == ErrorCode.KAFKA_STORAGE_ERROR
            write(client, "others", b"x")
        for topic in acknowledged:
            assert f"{topic}-0 is offline" in node.log
        node.kill9()
        node.limit = ""
        node.start()
        with Client(node.port) as client:
            for topic, values in acknowledged.items():
                assert read(client, topic)[: len(values)] == values
                write(client, topic, b"goes on")
    finally:
        stopped_at_the_end(node)


def test_many_logs_with_few_descriptors(home: Path) -> None:
    """150 partitions are written and read while the process may have 100 files open."""
    node = LimitedNode(home, "--nofile=100")
    node.start()
    try:
        with Client(node.port) as client:
            assert client.create_topic("wide", 150) == 0
            for _ in range(2):
                for index in range(150):
                    assert client.produce("wide", batch_of(b"%d" % index), index).error_code == ErrorCode.NONE
            for index in range(0, 150, 7):
                assert client.end_offset("wide", index) == 2
                assert client.fetch("wide", 0, index).records
        node.restart()
        with Client(node.port) as client:
            assert client.end_offset("wide", 149) == 2
    finally:
        stopped_at_the_end(node)
