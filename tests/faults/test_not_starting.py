"""A broker that cannot start says why in one line, ends with code 1, and leaves everything as it found it."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.client import Client
from tests.faults.broker import refused, write
from tests.harness.fixtures import StartNode
from tests.harness.node import Node

METADATA_LOG = "__cluster_metadata-0/00000000000000000000.log"


@pytest.fixture
def stopped(start_node: StartNode) -> Iterator[Node]:
    """A broker that has some data and was stopped cleanly."""
    node = start_node()
    with Client(node.port) as client:
        client.create_topic("orders")
        write(client, "orders", b"one", b"two", b"three")
    assert node.stop() == 0
    yield node


def test_a_directory_in_use_by_another_process(fresh_node: Node) -> None:
    ended = refused(fresh_node.dir)
    assert ended.code == 1 and "in use by another process" in ended.reason and str(fresh_node.dir) in ended.reason
    with Client(fresh_node.port) as client:
        assert client.create_topic("still-served") == 0


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        ended = refused(tmp_path / "data", listen=address)
    assert ended.code == 1 and address in ended.reason and "in use" in ended.reason


def test_an_address_that_is_not_ours(tmp_path: Path) -> None:
    ended = refused(tmp_path / "data", listen="203.0.113.7:9092")
    assert ended.code == 1 and "203.0.113.7:9092" in ended.reason


def test_a_directory_of_another_node(stopped: Node) -> None:
    ended = refused(stopped.dir, node_id=5)
    assert ended.code == 1 and "belongs to node 0" in ended.reason
    stopped.start()


def test_a_directory_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("not a directory")
    ended = refused(tmp_path / "data")
    assert ended.code == 1 and str(tmp_path / "data") in ended.reason


@pytest.mark.parametrize("content", ["", "version=1\ncluster.id=x\nnode.id=0\ndirectory.id=short\n"])
def test_a_damaged_meta_properties(stopped: Node, content: str) -> None:
    path = stopped.dir / "meta.properties"
    path.write_text(content)
    ended = refused(stopped.dir)
    assert ended.code == 1 and "meta.properties" in ended.reason
    assert path.read_text() == content


def test_a_damaged_quorum_state(stopped: Node) -> None:
    path = stopped.dir / "__cluster_metadata-0" / "quorum-state"
    path.write_text('{"leaderId":0')
    ended = refused(stopped.dir)
    assert ended.code == 1 and "quorum-state" in ended.reason
    assert path.read_text() == '{"leaderId":0', "a forgotten vote could be given twice"


@pytest.mark.parametrize("clean", [True, False], ids=["clean", "crashed"])
def test_a_damaged_metadata_log(stopped: Node, clean: bool) -> None:
    """Twice, because a first try must not make it worse; and with the byte restored everything is there again."""
    path = stopped.dir / METADATA_LOG
    content = bytearray(path.read_bytes())
    content[300] ^= 0x40
    path.write_bytes(content)
    if not clean:
        (stopped.dir / ".kafka_cleanshutdown").unlink()
    for _ in range(2):
        ended = refused(stopped.dir)
        assert ended.code == 1 and "__cluster_metadata-0" in ended.reason
    content = bytearray(path.read_bytes())
    content[300] ^= 0x40
    path.write_bytes(content)
    stopped.start()
    with Client(stopped.port) as client:
        assert client.end_offset("orders") == 3


def test_a_metadata_log_that_cannot_be_read(stopped: Node) -> None:
    path = stopped.dir / METADATA_LOG
    path.unlink()
    path.mkdir()
    ended = refused(stopped.dir)
    assert ended.code == 1 and "__cluster_metadata-0" in ended.reason
