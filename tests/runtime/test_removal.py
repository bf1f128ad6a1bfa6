"""Removing large files: off the loop, in pieces, and not while their names are in doubt or somebody is sent them."""

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from klamm.facts import Fact
from klamm.runtime import files as real
from klamm.runtime import removal
from klamm.runtime.driver import Driver
from klamm.runtime.facts import FileStays
from klamm.runtime.files import RealFiles
from klamm.runtime.loop import Loop
from klamm.runtime.removal import Removal, Remover
from klamm.runtime.server import Limits

PIECE = 1000
PATIENCE_SECONDS = 20.0


class Witness:
    """Of the calls that free blocks: which, of what, and in which thread."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: list[tuple[str, object]] = []
        self.threads: set[str] = set()
        self.gone = threading.Event()
        for name in ("fsync", "ftruncate", "unlink", "rmdir"):
            monkeypatch.setattr(os, name, self._heard(name, getattr(os, name)))

    def _heard(self, name: str, right: Any) -> Any:
        def call(what: object, *more: object) -> object:
            self.calls.append((name, more[0] if more else Path(str(what)).name))
            self.threads.add(threading.current_thread().name)
            done = right(what, *more)
            if name in ("unlink", "rmdir"):
                self.gone.set()
            return done

        return call

    def wait_gone(self) -> None:
        assert self.gone.wait(PATIENCE_SECONDS)
        self.gone.clear()


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RealFiles]:
    monkeypatch.setattr(real, "PIECE_BYTES", PIECE)
    found = RealFiles(tmp_path)
    found.remover = Remover(found._not_removed, PIECE)
    yield found
    found.remover.stop()
    found.close()


@pytest.fixture
def witness(monkeypatch: pytest.MonkeyPatch) -> Witness:
    return Witness(monkeypatch)


def test_a_large_file_is_cut_down_by_another_thread_once_its_name_is_on_disk(
    files: RealFiles, witness: Witness
) -> None:
    files.file("x.deleted").append(bytes(3500))
    files.discard("x.deleted")
    witness.wait_gone()
    assert [name for name, _ in witness.calls] == ["fsync", "ftruncate", "ftruncate", "ftruncate", "unlink"]
    assert [size for name, size in witness.calls if name == "ftruncate"] == [2500, 1500, 500]
    assert witness.threads == {"remove"}


def test_a_small_one_is_simply_removed(files: RealFiles, witness: Witness) -> None:
    files.file("x.deleted").append(bytes(PIECE))
    files.discard("x.deleted")
    witness.wait_gone()
    assert witness.calls == [("unlink", "x.deleted")]


def test_one_may_wait_for_ages_without_holding_up_another(files: RealFiles, witness: Witness) -> None:
    """`file.delete.delay.ms` has no upper limit, and waits of the system's have one."""
    for name, after_ms in (("later.deleted", 2**63 - 1), ("soon.deleted", 1)):
        files.file(name).append(b"x")
        files.discard(name, after_ms=after_ms)
    witness.wait_gone()
    assert files.listing("") == ["later.deleted"]


def test_nothing_is_discarded_that_was_not_deleted(files: RealFiles) -> None:
    with pytest.raises(AssertionError):
        files.discard("x.log")


def test_a_directory_goes_with_its_files_unless_something_else_is_in_it(files: RealFiles, witness: Witness) -> None:
    for directory in ("a-delete", "b-delete"):
        files.make_directory(directory)
        for name in ("0.log", "0.index"):
            files.write_whole(f"{directory}/{name}", bytes(2500), durable=False)
    files.write_whole("b-delete/thesis", b"mine", durable=False)
    for directory in ("b-delete", "a-delete"):
        files.discard_directory(directory, ["0.index", "0.log"])
    while files.exists("a-delete"):
        witness.wait_gone()
    assert files.listing("") == ["b-delete"] and files.listing("b-delete") == ["thesis"]


def test_what_is_being_sent_is_not_cut_before_it_has_left(
    files: RealFiles, witness: Witness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its length was told to somebody already. A region that is queued when the directory of its topic is renamed is of
    a file that has another name by now."""
    monkeypatch.setattr(removal, "LOOK_AGAIN_SECONDS", 0.001)
    files.make_directory("a-0")
    file = files.file("a-0/0.log")
    file.append(b"x" * 5000)
    region = file.region(0, 5000)
    file.close()
    files.rename("a-0", "a-0-delete")
    files.write_whole("a-0-delete/other", bytes(5000), durable=False)
    files.discard_directory("a-0-delete", ["0.log"])
    files.write_whole("z.deleted", b"", durable=False)
    files.discard("z.deleted", after_ms=50)
    witness.wait_gone()
    assert [call for call in witness.calls if call[0] == "ftruncate"] == [], "many looks later"
    assert bytes(region) == b"x" * 5000
    region.release()
    witness.wait_gone()
    assert files.listing("a-0-delete") == ["other"]
    assert len([call for call in witness.calls if call[0] == "ftruncate"]) == 4


def test_what_stopping_leaves_over_is_there_for_the_next_start(
    files: RealFiles, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    cut, goes_on = threading.Event(), threading.Event()
    right = os.ftruncate

    def slow(descriptor: int, size: int) -> None:
        right(descriptor, size)
        cut.set()
        goes_on.wait(PATIENCE_SECONDS)

    monkeypatch.setattr(os, "ftruncate", slow)
    files.file("x.deleted").append(bytes(3500))
    files.discard("x.deleted")
    assert cut.wait(PATIENCE_SECONDS)
    stopping = threading.Thread(target=files.remover.stop)
    stopping.start()
    files.remover._stop.wait(PATIENCE_SECONDS)
    goes_on.set()
    stopping.join()
    assert (tmp_path / "x.deleted").stat().st_size == 2500
    files.discard("x.deleted")
    assert files.exists("x.deleted"), "after it was stopped nothing is touched"
    again = RealFiles(tmp_path)
    found = Witness(monkeypatch)
    again.discard("x.deleted")
    found.wait_gone()
    again.remover.stop()
    assert not again.exists("x.deleted")


def test_a_disk_that_refuses_is_told_of_once_and_asked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(removal, "TRY_AGAIN_SECONDS", 0.001)
    refusals = [OSError(5, "Input/output error")] * 3
    right, done = os.unlink, threading.Event()

    def unlink(path: str) -> None:
        if refusals:
            raise refusals.pop()
        right(path)
        done.set()

    monkeypatch.setattr(os, "unlink", unlink)
    told: list[Fact] = []
    files, loop = RealFiles(tmp_path), Loop()
    driver = Driver(None, files, loop, Limits(), told.append)  # type: ignore[arg-type]
    files.file("x.deleted").append(b"x")
    files.discard("x.deleted")
    assert done.wait(PATIENCE_SECONDS)
    files.remover.stop()
    loop.run_calls()
    assert [str(fact) for fact in told if isinstance(fact, FileStays)] == [
        "cannot remove x.deleted, which was deleted: Input/output error; it is tried again every minute"
    ]
    assert not files.exists("x.deleted")
    driver.server.close()
    files.close()


def test_what_somebody_else_removed_is_no_trouble(tmp_path: Path) -> None:
    failures: list[str] = []
    remover = Remover(lambda path, reason: failures.append(reason))
    remover._try(Removal([f"{tmp_path}/gone/x"], f"{tmp_path}/gone", str(tmp_path), ()))
    assert not failures
