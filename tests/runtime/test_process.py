"""A node as a process runs it: told to stop, told twice, and ending by itself."""

import fcntl
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from klamm.config import BrokerConfig
from klamm.facts import unheard
from klamm.runtime.loop import Loop
from klamm.runtime.problems import CannotStart
from klamm.runtime.process import Running
from klamm.runtime.taking import LOCK, TakenDirectory


class Process:
    """A broker alone on a loop of its own; `ended` says how it came to an end."""

    def __init__(self, directory: Path, port: int = 0) -> None:
        settings = {"node.id": "0", "log.dirs": str(directory), "listeners": f"PLAINTEXT://127.0.0.1:{port}"}
        self.directory = directory
        self.loop = Loop()
        self.running = Running(BrokerConfig.from_properties((), settings), self.loop, unheard)
        self.ended: list[tuple[str, bool]] = []

    def run(self) -> None:
        """Until it has ended, or for ten seconds."""
        watchdog = threading.Timer(10.0, self.loop.stop)
        watchdog.start()
        self.loop.run()
        watchdog.cancel()
        watchdog.join()

    def has_ended(self, why: str, clean: bool) -> None:
        self.ended.append((why, clean))
        self.loop.stop()


@pytest.fixture
def process(tmp_path: Path) -> Iterator[Process]:
    process = Process(tmp_path)
    process.running.start(on_serve=lambda: None, on_end=lambda clean: process.has_ended("by itself", clean))
    yield process
    process.loop.close()


def test_a_node_that_is_told_to_stop_says_when_it_has(process: Process) -> None:
    process.running.stop(lambda clean: process.has_ended("told", clean))
    process.run()
    assert process.ended == [("told", True)]
    assert process.running.was_told


def test_a_node_that_cannot_go_on_ends_though_nobody_told_it_to(process: Process) -> None:
    """Its metadata log failed, or another process took its place. Staying would be serving what is no longer true."""
    process.running.driver.on_stop()
    process.run()
    assert process.ended == [("by itself", True)]
    assert not process.running.was_told
    TakenDirectory(process.directory).let_go()


def test_who_stops_a_node_that_is_down_already_is_told_so(process: Process) -> None:
    process.running.driver.on_stop()
    process.run()
    process.running.stop(lambda clean: process.ended.append(("told", clean)))
    assert process.ended == [("by itself", True), ("told", True)]


def test_who_is_hurried_in_the_moment_it_is_done_stops_once(process: Process) -> None:
    """Both wait in the loop's queue: the one because everything was handed over, the other because somebody would not
    wait for that. Stopping hears what is queued, and found itself."""
    process.running.driver.on_stop()
    process.running.driver.on_stop()
    process.run()
    assert process.ended == [("by itself", True)]


def test_a_node_that_cannot_start_leaves_no_directory(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        for directory in (tmp_path / "new" / "data", tmp_path):
            with pytest.raises(CannotStart, match="cannot listen"):
                Process(directory, taken.getsockname()[1])
    assert not list(tmp_path.iterdir())


def test_a_directory_that_is_somebody_elses_is_left_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "backup-2024").mkdir()
    process = Process(tmp_path)
    with pytest.raises(CannotStart, match="no node's"):
        process.running.start(on_serve=lambda: None, on_end=lambda clean: None)
    process.loop.close()
    assert [path.name for path in tmp_path.iterdir()] == ["backup-2024"]


def test_a_directory_is_one_nodes(process: Process) -> None:
    with pytest.raises(CannotStart, match="in use by another process"):
        TakenDirectory(process.directory)


def test_a_lock_that_was_there_is_left_there(tmp_path: Path) -> None:
    (tmp_path / LOCK).touch()
    TakenDirectory(tmp_path).give_back()
    assert (tmp_path / LOCK).exists()
    TakenDirectory(tmp_path).let_go()


def test_a_lock_that_was_given_back_in_the_moment_it_was_taken_locks_nobody_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between our opening of the file and our lock on it the last holder removed it: two could hold what both call the
    lock."""
    taken, turns = fcntl.flock, []

    def flock(lock: int, operation: int) -> None:
        if not turns:
            (tmp_path / LOCK).unlink()
        turns.append(lock)
        taken(lock, operation)

    monkeypatch.setattr(fcntl, "flock", flock)
    ours = TakenDirectory(tmp_path)
    assert len(turns) == 2
    with pytest.raises(CannotStart, match="in use"):
        TakenDirectory(tmp_path)
    ours.let_go()


def test_a_directory_that_cannot_be(tmp_path: Path) -> None:
    with pytest.raises(CannotStart, match="cannot be used: "):
        TakenDirectory(Path("/proc/no-such-thing/data"))


def test_a_node_that_could_not_start_leaves_nothing_behind(process: Process) -> None:
    """In a process that goes on: an embedded cluster's said KeyError, and kept a thread and an address."""
    process.running.stop(lambda clean: process.has_ended("told", clean))
    process.run()
    metadata = process.directory / "__cluster_metadata-0"
    log = min(metadata.glob("*.log"))
    log.write_bytes(b"?" * 200 + log.read_bytes()[200:])
    (process.directory / ".kafka_cleanshutdown").unlink()
    # Found at the start, and handed to the thread that removes.
    (metadata / "00000000000000000000.log.deleted").write_bytes(b"x")
    before = threading.active_count()
    again = Process(process.directory)
    port = again.running.listener.port
    with pytest.raises(CannotStart, match="klamm storage check"):
        again.running.start(on_serve=lambda: None, on_end=lambda clean: None)
    again.running.abandon()
    assert threading.active_count() == before
    with socket.socket() as free:
        free.bind(("127.0.0.1", port))
    again.loop.close()
