"""Descriptors: how many are open, which numbers they have, and that none is forgotten, nor any directory kept."""

import errno
import os
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from klamm.runtime.descriptors import FIRST_DESCRIPTOR
from klamm.runtime.files import SYNC_ALL_FROM, RealFile, RealFiles


def test_a_file_that_is_closed_while_somebody_sends_it_is_closed_when_that_is_done(real_files: RealFiles) -> None:
    """Else a deleted topic keeps its place on the disk for as long as the process lives."""
    file = real_files.file("x")
    file.append(b"content")
    region = file.region(0, 7)
    file.close()
    assert bytes(region) == b"content"
    region.release()
    assert real_files.descriptors.open_count == 0
    file.append(b"more")
    assert real_files.descriptors.open_count == 1, "and it opens again when it is used again"


def test_what_is_opened_for_a_flush_alone_is_closed_after_it(real_files: RealFiles) -> None:
    """A checkpoint is another file each time it is written. If the old ones stayed open, they would stay on disk."""
    log = real_files.file("log")
    log.append(b"records")
    for number in range(5):
        real_files.write_whole("checkpoint", b"%d" % number, durable=False)
        real_files.flush([log, real_files.file("checkpoint")])
    assert real_files.descriptors.open_count == 1, "the log, which is in use"


def test_who_uses_a_file_while_it_is_flushed_finds_it_open_or_opens_it(real_files: RealFiles) -> None:
    real_files.write_whole("log", b"records", durable=False)
    file = real_files.file("log")
    pinned = real_files.pinned([[file]])
    file.append(b" and more")
    pinned.sync()
    pinned.let_go()
    file.append(b" and more")
    assert file.read(0, 100) == b"records and more and more"
    assert real_files.descriptors.open_count == 1


def test_of_directories_that_are_removed_nothing_is_kept(real_files: RealFiles) -> None:
    """A node whose topics come and go remembered every one: names had changed in it, and nobody ever synced it."""
    for number in range(3):
        real_files.make_directory(f"orders-{number}")
        real_files.write_whole(f"orders-{number}/name", b"x", durable=False)
        real_files.rename(f"orders-{number}", f"orders-{number}-delete")
        real_files.discard_directory(f"orders-{number}-delete", ["name"])
    assert real_files.descriptors.unsynced == {str(real_files.root)}, "where their own names were"


@pytest.mark.skipif(
    resource.getrlimit(resource.RLIMIT_NOFILE)[1] <= FIRST_DESCRIPTOR, reason="a process may not have so many here"
)
def test_numbers_that_select_can_take_are_left_to_others(real_files: RealFiles) -> None:
    """Spark's Python waits for Java's calls with select(), which takes no number from 1024 on: a cluster of many
    partitions in the same process took them all, and the first batch of a stream waited for ever."""
    file = real_files.file("x")
    file.append(b"x")
    assert file.pinned_descriptor() >= FIRST_DESCRIPTOR
    file.unpin()


@pytest.fixture
def few_descriptors() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, FIRST_DESCRIPTOR), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_who_may_not_have_others_has_those(real_files: RealFiles, few_descriptors: None) -> None:
    file = real_files.file("x")
    file.append(b"x")
    assert file.pinned_descriptor() < FIRST_DESCRIPTOR
    file.unpin()


# Flushes of several owners.


@pytest.fixture
def failing_files(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Names of files whose fdatasync the system refuses."""
    failing: set[str] = set()
    fdatasync = os.fdatasync

    def maybe_failing(descriptor: int) -> None:
        if Path(f"/proc/self/fd/{descriptor}").readlink().name in failing:
            raise OSError(errno.EIO, "Input/output error")
        fdatasync(descriptor)

    monkeypatch.setattr(os, "fdatasync", maybe_failing)
    return failing


def written(real_files: RealFiles, *paths: str) -> list[RealFile]:
    files = []
    for path in paths:
        if "/" in path:
            real_files.make_directory(path.partition("/")[0])
        file = real_files.file(path)
        file.append(b"records")
        files.append(file)
    return files


def test_a_flush_names_who_failed(real_files: RealFiles, failing_files: set[str]) -> None:
    """One verdict for all took every partition of a flush offline, and the metadata log with them."""
    failing_files.add("broken")
    groups = [written(real_files, "a/log"), written(real_files, "b/fine", "b/broken"), written(real_files, "c/log")]
    pinned = real_files.pinned(groups)
    pinned.sync()
    failures = pinned.let_go()
    assert {number: str(error) for number, error in failures.items()} == {1: "b/broken: Input/output error"}
    assert real_files.flush_groups([groups[2], groups[1]]).keys() == {1}


def test_of_so_many_files_that_the_file_system_is_asked_who_failed_is_named_as_well(
    real_files: RealFiles, failing_files: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its error may be for anybody's file, also of another process."""
    groups = [written(real_files, f"x-{number}/log-{number}") for number in range(SYNC_ALL_FROM)]
    assert real_files.flush_groups(groups) == {}
    monkeypatch.setattr(RealFiles, "_sync_file_system", lambda self: False)
    assert real_files.flush_groups(groups) == {}, "it was for somebody else's"
    failing_files.add("log-7")
    assert real_files.flush_groups(groups).keys() == {7}


def test_a_name_that_is_not_on_disk_fails_whose_it_is(real_files: RealFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    fsync = os.fsync

    def maybe_failing(descriptor: int) -> None:
        if Path(f"/proc/self/fd/{descriptor}").readlink().name == "b":
            raise OSError(errno.EIO, "Input/output error")
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", maybe_failing)
    groups = [written(real_files, "a/log"), written(real_files, "b/log"), written(real_files, "c/log")]
    assert real_files.flush_groups(groups).keys() == {1}
    monkeypatch.undo()
    assert real_files.descriptors.unsynced == {f"{real_files.root}/b"}, "and is not taken for synced by the next one"


def test_a_flush_makes_no_file(real_files: RealFiles) -> None:
    """One that was removed came back, empty: a segment that had been truncated away, a snapshot."""
    (file,) = written(real_files, "a/log")
    file.remove()
    real_files.flush([file, real_files.file("a/snapshot")])
    assert real_files.listing("a") == []
    assert real_files.descriptors.open_count == 0


def test_a_flush_of_what_has_no_directory_fails_alone(real_files: RealFiles) -> None:
    groups = [[real_files.file("nowhere/name")], written(real_files, "a/log")]
    assert [str(error) for error in real_files.flush_groups(groups).values()] == [
        "nowhere/name: No such file or directory"
    ]
