"""A full disk: the producer hears KAFKA_STORAGE_ERROR, nothing acknowledged is lost, readers are served, and when there
is room again the broker goes on without a restart. On a small tmpfs that the test mounts, so it needs root."""

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from klamm.cli.group_asking import Cluster
from klamm.cli.produce_obstacles import obstacle_to
from klamm.errors import ErrorCode
from klamm.local.asking import Address, Conversation
from klamm.local.storage_seen import log_dirs, storage_in
from tests.crash.client import Client
from tests.faults.broker import CANNOT_START, batch_of, check_no_stack_trace, read, refused
from tests.harness.klamm_node import KlammNode
from tests.harness.node import Node
from tests.harness.waiting import wait_until

DISK_MIB = 48
OFTEN = {
    "log.flush.offset.checkpoint.interval.ms": "100",
    "log.flush.start.offset.checkpoint.interval.ms": "100",
    "log.retention.check.interval.ms": "100",
}
"""Housekeeping that writes should meet the full disk in this test, not a minute later."""


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own."""
    if os.geteuid() != 0:
        pytest.skip("mounting a small tmpfs needs root")
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={DISK_MIB}m", "tmpfs", str(place)], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip(f"a tmpfs cannot be mounted here: {mounted.stderr.decode().strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.fixture
def node(small_disk: Path) -> Iterator[Node]:
    node = KlammNode(small_disk / "broker", OFTEN)
    node.start()
    try:
        yield node
        check_no_stack_trace(node)
    finally:
        node.kill9()


def fill(place: Path) -> Path:
    """Leave a few kilobytes."""
    ballast = place / "ballast"
    with ballast.open("wb", buffering=0) as file:
        for size in (1 << 20, 1 << 12):
            try:
                while True:
                    file.write(bytes(size))
            except OSError:
                continue
    return ballast


class Writer:
    """Writes numbered values and remembers which were acknowledged."""

    def __init__(self, topics: list[str]) -> None:
        self.acknowledged: dict[str, list[bytes]] = {topic: [] for topic in topics}
        self.errors: list[int] = []
        self._count = 0

    def write(self, client: Client, size: int = 500) -> bool:
        """Once to every topic; whether all took it."""
        codes = []
        for topic, values in self.acknowledged.items():
            self._count += 1
            value = b"%d" % self._count + b"." * size
            code = client.produce(topic, batch_of(value)).error_code
            codes.append(code)
            if code == ErrorCode.NONE:
                values.append(value)
        self.errors += [code for code in codes if code]
        return not any(codes)

    def check(self, client: Client) -> None:
        """What was acknowledged is there, in order; what was refused may be there or not, but nothing else."""
        for topic, values in self.acknowledged.items():
            stored = read(client, topic)
            wanted = set(values)
            assert [value for value in stored if value in wanted] == values
            assert len(stored) == len(set(stored))


TOPICS = ["safe", "quick", "rolling"]


def created(node: Node) -> Writer:
    with Client(node.port) as client:
        assert client.create_topic("safe", flush_messages="1") == 0
        assert client.create_topic("quick") == 0
        assert client.create_topic("rolling", internal_segment_bytes="20000", index_interval_bytes="100") == 0
        writer = Writer(TOPICS)
        for _ in range(50):
            assert writer.write(client)
    return writer


def write_against_the_wall(node: Node, writer: Writer, seconds: float = 1.0) -> None:
    """Until every topic refuses, and a while longer: checkpoints and retention come by meanwhile."""
    with Client(node.port) as client:
        wait_until(lambda: not writer.write(client), "the disk is full")
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            writer.write(client)
        assert set(writer.errors) == {ErrorCode.KAFKA_STORAGE_ERROR}


def test_it_goes_on_when_there_is_room_again(node: Node, small_disk: Path) -> None:
    writer = created(node)
    ballast = fill(small_disk)
    write_against_the_wall(node, writer)
    with Client(node.port) as client:
        assert client.topic_error("safe") == ErrorCode.NONE
        client.create_topic("one-more")
        assert client.produce("one-more", batch_of(b"x" * 10_000)).error_code != ErrorCode.NONE
        ballast.unlink()
        wait_until(lambda: writer.write(client), "every topic takes records again", within_seconds=20)
        assert client.create_topic("and-now") == ErrorCode.NONE
        for _ in range(20):
            assert writer.write(client)
        writer.check(client)
    node.restart()
    with Client(node.port) as client:
        writer.check(client)
        assert writer.write(client)


def test_readers_are_served_meanwhile(node: Node, small_disk: Path) -> None:
    writer = created(node)
    before = {topic: list(values) for topic, values in writer.acknowledged.items()}
    fill(small_disk)
    write_against_the_wall(node, writer, seconds=0.2)
    with Client(node.port) as client:
        stored = read(client, "quick")
    assert stored[: len(before["quick"])] == before["quick"]


def test_a_shutdown_on_a_full_disk(node: Node, small_disk: Path) -> None:
    writer = created(node)
    ballast = fill(small_disk)
    write_against_the_wall(node, writer, seconds=0.2)
    assert node.stop() in (0, 1)
    check_no_stack_trace(node)
    ballast.unlink()
    node.start()
    with Client(node.port) as client:
        writer.check(client)
        assert writer.write(client)


def test_kill_nine_on_a_full_disk(node: Node, small_disk: Path) -> None:
    writer = created(node)
    ballast = fill(small_disk)
    write_against_the_wall(node, writer, seconds=0.2)
    node.kill9()
    ballast.unlink()
    node.start()
    with Client(node.port) as client:
        writer.check(client)
        assert writer.write(client)


@pytest.mark.parametrize("clean", [True, False], ids=["clean", "crashed"])
def test_starts_on_a_full_disk(node: Node, small_disk: Path, clean: bool) -> None:
    """It needs a little room for its vote. Without, it says so in a line; with, it serves readers. Trying does no harm
    either way."""
    writer = created(node)
    if clean:
        node.stop()
    else:
        node.kill9()
    ballast = fill(small_disk)
    for _ in range(3):
        if started(node):
            with Client(node.port) as client:
                writer.check(client)
            node.kill9()
    ballast.unlink()
    node.start()
    with Client(node.port) as client:
        writer.check(client)
        assert writer.write(client)


def started(node: Node) -> bool:
    """Whether it runs now; if not, it has said why."""
    try:
        node.start()
    except AssertionError:
        *_, last = node.log.splitlines()
        assert last.startswith(CANNOT_START) and "No space left" in last, node.log
        return False
    return True


def test_a_start_on_a_read_only_file_system(node: Node, small_disk: Path) -> None:
    writer = created(node)
    node.stop()
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    ended = refused(node.dir)
    assert ended.code == 1 and "Read-only file system" in ended.reason
    subprocess.run(["mount", "-o", "remount,rw", str(small_disk)], check=True)
    node.start()
    with Client(node.port) as client:
        writer.check(client)


def test_whoever_looks_is_told_of_it(node: Node, small_disk: Path) -> None:
    """The log, the command line and DescribeLogDirs. The topic is there; a producer's records are not taken."""
    writer = created(node)
    ballast = fill(small_disk)
    write_against_the_wall(node, writer, seconds=0.5)
    address = Address("127.0.0.1", node.port)
    with Conversation(address, 10.0) as broker:
        seen = storage_in(log_dirs(broker))
    assert seen.is_full and not seen.takes_writes and "has a full disk" in str(seen.trouble)
    for needs_all in (False, True):
        told = obstacle_to(Cluster([address]), "quick", None, needs_all=needs_all)
        assert told is not None and "which leads quick-0, has a full disk, " in told
    errors = [line for line in node.log.splitlines() if " ERROR " in line]
    assert sum("the disk is full: " in line for line in errors) == 1
    others = [line for line in errors if "the disk is full" not in line and "is offline: " not in line]
    assert not others, "what follows from a full disk is not told again and again"
    ballast.unlink()
    wait_until(lambda: "the disk has room again" in node.log, "it is told that there is room", within_seconds=20)
    with Conversation(address, 10.0) as broker:
        assert storage_in(log_dirs(broker)).trouble is None
