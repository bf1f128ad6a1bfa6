"""Descriptors of a process, twenty thousand maybe, are counted without holding the node up."""

import contextlib
from pathlib import Path

import pytest

from klamm.runtime.metrics import process


def test_descriptors_are_counted_and_not_listed_where_linux_knows_how_many() -> None:
    descriptors = Path("/proc/self/fd")
    process._listed_count.cache_clear()
    before = process.entry_count(descriptors)
    with contextlib.ExitStack() as stack:
        for _ in range(50):
            stack.enter_context(Path("/dev/null").open("rb"))
        if descriptors.stat().st_size:
            assert process.entry_count(descriptors) == pytest.approx(before + 50, abs=10)
            assert process._listed_count.cache_info().misses == 0
        else:
            assert process.entry_count(descriptors) in (before, pytest.approx(before + 50, abs=10))


def test_where_they_have_to_be_listed_that_is_done_once_in_a_while(tmp_path: Path) -> None:
    tmp_path.joinpath("one").touch()
    assert process._listed_count(tmp_path, 0) == 1
    tmp_path.joinpath("another").touch()
    assert process._listed_count(tmp_path, 0) == 1
    assert process._listed_count(tmp_path, 1) == 2
    assert process.entry_count(Path("/proc/self/task")) >= 1, "a directory that has no size"
