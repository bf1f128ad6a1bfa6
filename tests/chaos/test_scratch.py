"""What a run that was itself killed leaves behind is found and removed; what is kept, or somebody else's, stays."""

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from klamm.chaos.disks import BALLAST, Disks, mounted_under
from klamm.chaos.problems import NoDisks
from klamm.chaos.processes import FILE
from klamm.chaos.scratch import PREFIX, Scratch, tidy_up_after_others
from klamm.local.owned import OWNER
from klamm.local.processes import process_of


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@pytest.fixture
def child() -> Iterator["subprocess.Popen[bytes]"]:
    with subprocess.Popen(["sleep", "600"]) as process:
        yield process
        process.kill()


def test_a_run_removes_its_directory(temporary: Path) -> None:
    with Scratch("seed0") as scratch:
        assert scratch.directory.parent == temporary
        assert tidy_up_after_others() == [], "its owner lives"
        assert scratch.directory.exists()
    assert not scratch.directory.exists()


def test_what_is_kept_stays(temporary: Path) -> None:
    with Scratch("seed0") as scratch:
        scratch.is_kept = True
    assert tidy_up_after_others() == [] and scratch.directory.exists()


def test_leftovers_of_the_dead_are_removed_and_their_nodes_ended(
    temporary: Path, child: "subprocess.Popen[bytes]"
) -> None:
    left = temporary / f"{PREFIX}1-seed0-x"
    left.mkdir()
    nobody = {"pid": os.getpid(), "birth": "another boot:1"}
    (left / OWNER).write_text(json.dumps(nobody))
    (left / FILE).write_text(json.dumps({"0": process_of(child.pid)._asdict(), "1": nobody}))
    assert tidy_up_after_others() == [str(left)]
    assert child.wait(10) < 0 and not left.exists()


def test_what_another_user_left_or_a_link_leads_to_is_not_ours(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chaos runs as root: whoever may write here could have it kill and remove anything."""
    elsewhere, left = temporary / "elsewhere", temporary / f"{PREFIX}1-seed0-x"
    for directory in (elsewhere, left):
        directory.mkdir()
        (directory / OWNER).write_text(json.dumps({"pid": os.getpid(), "birth": "another boot:1"}))
    (temporary / f"{PREFIX}2-seed0-y").symlink_to(elsewhere)
    user = os.getuid()
    with monkeypatch.context() as patched:
        patched.setattr(os, "getuid", lambda: user + 1)
        assert tidy_up_after_others() == []
    assert tidy_up_after_others() == [str(left)]
    assert (elsewhere / OWNER).exists()


def test_a_disk_is_filled_emptied_kept_and_gone(tmp_path: Path) -> None:
    node = tmp_path / "node-0"
    with ExitStack() as stack:
        try:
            disks = stack.enter_context(Disks([node]))
        except NoDisks as problem:
            pytest.skip(str(problem))
        (node / "data").write_bytes(b"before")
        disks.fill(0)
        with pytest.raises(OSError, match="No space left"):
            (node / "more").write_bytes(b"x")
        disks.empty(0)
        (node / "more").write_bytes(b"x")
        disks.fill(0)
        disks.keep()
    assert mounted_under(tmp_path) == []
    assert (node / "data").read_bytes() == b"before" and not (node / BALLAST).exists()
