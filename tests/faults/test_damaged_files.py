"""Files that somebody damaged while the broker was down: one line in the log, and everybody else is served."""

from collections.abc import Iterator

import pytest

from klamm.errors import ErrorCode
from tests.crash.client import Client
from tests.faults.broker import batch_of, check_no_stack_trace, read, write
from tests.harness.fixtures import StartNode
from tests.harness.node import Node

VALUES = [b"%d" % number + b"." * 100 for number in range(50)]
FIRST_SEGMENT = "00000000000000000000.log"


@pytest.fixture
def stopped(start_node: StartNode) -> Iterator[Node]:
    """Two topics in small segments; stopped cleanly. What it says afterwards is checked for stack traces."""
    node = start_node()
    with Client(node.port) as client:
        for topic in ("orders", "others"):
            client.create_topic(topic, internal_segment_bytes="2000", index_interval_bytes="500")
            write(client, topic, *VALUES)
    assert node.stop() == 0
    yield node
    check_no_stack_trace(node)


def errors(node: Node) -> list[str]:
    return [line for line in node.log.splitlines() if " ERROR " in line]


def check_others(node: Node) -> None:
    with Client(node.port) as client:
        assert read(client, "others") == VALUES
        assert client.produce("others", batch_of(b"next")).error_code == ErrorCode.NONE


def check_offline(node: Node) -> None:
    """The client hears Kafka's error, people read one line, and a restart changes nothing."""
    for _ in range(2):
        with Client(node.port) as client:
            assert client.produce("orders", batch_of(b"x")).error_code == ErrorCode.KAFKA_STORAGE_ERROR
            assert client.fetch("orders", 0).error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert any("orders-0" in line for line in errors(node)), node.log
        node.restart()


def test_a_directory_in_the_place_of_the_active_segment(stopped: Node) -> None:
    """chmod means nothing to root; this cannot be read by anybody."""
    path = max((stopped.dir / "orders-0").glob("*.log"))
    path.unlink()
    path.mkdir()
    stopped.start()
    check_others(stopped)
    check_offline(stopped)


def test_a_directory_in_the_place_of_an_older_segment(stopped: Node) -> None:
    """Nobody looks at it before it is asked for."""
    path = stopped.dir / "orders-0" / FIRST_SEGMENT
    path.unlink()
    path.mkdir()
    stopped.start()
    check_others(stopped)
    with Client(stopped.port) as client:
        assert client.fetch("orders", 0).error_code == ErrorCode.KAFKA_STORAGE_ERROR


def test_a_hole_in_the_active_segment_after_a_crash(stopped: Node) -> None:
    path = max((stopped.dir / "orders-0").glob("*.log"))
    content = bytearray(path.read_bytes())
    content[100] ^= 0x40
    path.write_bytes(content)
    (stopped.dir / ".kafka_cleanshutdown").unlink()
    stopped.start()
    check_others(stopped)
    check_offline(stopped)
    assert path.read_bytes() == content, "nothing was thrown away"


def test_a_truncated_segment(stopped: Node) -> None:
    """The disk lost flushed records. What is left is served, the loss is said loudly, and writing goes on."""
    path = max((stopped.dir / "orders-0").glob("*.log"))
    path.write_bytes(path.read_bytes()[:-40])
    stopped.start()
    check_others(stopped)
    with Client(stopped.port) as client:
        assert read(client, "orders") == VALUES[:-1]
        write(client, "orders", b"again")
    assert any("orders-0" in line and "had been flushed" in line for line in errors(stopped)), stopped.log


@pytest.mark.parametrize("clean", [True, False], ids=["clean", "crashed"])
def test_damaged_checkpoints(stopped: Node, clean: bool) -> None:
    for path in stopped.dir.glob("*-checkpoint"):
        path.write_bytes(b"\xff\x00garbage")
    if not clean:
        (stopped.dir / ".kafka_cleanshutdown").unlink()
    stopped.start()
    check_others(stopped)
    with Client(stopped.port) as client:
        assert read(client, "orders") == VALUES
    assert "recovery-point-offset-checkpoint is damaged" in stopped.log and not errors(stopped)


@pytest.mark.parametrize(
    ("damage", "clean"),
    [(b"\xa5" * 77, True), (bytes(24), True), (b"\xa5" * 77, False)],
    ids=["garbage", "zeros", "garbage-crashed"],
)
def test_damaged_indexes(stopped: Node, damage: bytes, clean: bool) -> None:
    for path in [*(stopped.dir / "orders-0").glob("*index"), *(stopped.dir / "orders-0").glob("*.snapshot")]:
        path.write_bytes(damage)
    if not clean:
        (stopped.dir / ".kafka_cleanshutdown").unlink()
    stopped.start()
    check_others(stopped)
    with Client(stopped.port) as client:
        assert read(client, "orders") == VALUES
        for offset in range(0, 50, 7):
            assert client.fetch("orders", offset).records
    assert not errors(stopped)


def test_retention_meets_a_damaged_segment(start_node: StartNode) -> None:
    """The chore that looks at old segments finds one it cannot read: not the end of the broker, now or after the next
    start."""
    node = start_node({"log.retention.check.interval.ms": "100"})
    with Client(node.port) as client:
        for topic in ("orders", "others"):
            client.create_topic(topic, internal_segment_bytes="2000")
            write(client, topic, *VALUES)
    node.stop()
    for index in (node.dir / "orders-0").glob("*index"):
        index.unlink()
    path = node.dir / "orders-0" / FIRST_SEGMENT
    content = bytearray(path.read_bytes())
    content[16] ^= 0x40
    path.write_bytes(content)
    node.start()
    with Client(node.port) as client:
        write(client, "others", *VALUES * 20)
        client.create_topic("later", retention_ms="1")
    check_no_stack_trace(node)
    assert node.stop() == 0
