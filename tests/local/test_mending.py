"""What a fresh start deletes is the cluster's own, and all of it or nothing: whatever else lies there stays."""

from pathlib import Path

import pytest

from klamm.local.mending import check_may_be_deleted, check_nothing_lies_there, delete_data, nothing_here
from klamm.local.problems import LocalError
from klamm.local.record import FILE


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """What a cluster of two nodes leaves, one of which ended before it wrote anything."""
    directory = tmp_path / "cluster"
    (directory / "node-0" / "__cluster_metadata-0").mkdir(parents=True)
    (directory / "node-0" / "meta.properties").touch()
    (directory / "node-1").mkdir()
    for name in ("node-0/.lock", "node-1/.lock", "node-0.log", "node-1.log", FILE):
        (directory / name).touch()
    return directory


def test_a_cluster_is_deleted_and_nothing_else(home: Path) -> None:
    """People have files called node-something too."""
    for name in ("node-papers", "node-1-backup", "node-x.log.d"):
        (home / name).mkdir()
        (home / name / "meta.properties").touch()
    for name in ("node-exporter.log", "node-0.log.1", "node-list.txt", "notes.txt"):
        (home / name).touch()
    before = {path.name for path in home.iterdir()}
    check_may_be_deleted(home)
    delete_data(home)
    gone = {"node-0", "node-1", "node-0.log", "node-1.log", FILE}
    assert {path.name for path in home.iterdir()} == before - gone


def test_a_lock_alone_does_not_make_it_the_data_of_a_node(home: Path) -> None:
    (home / "node-1" / "thesis.tex").touch()
    assert_refused(home, "node-1")
    (home / "node-1" / "thesis.tex").unlink()
    (home / "node-1" / ".lock").write_text("packages of another tool")
    assert_refused(home, "node-1")


def test_a_node_that_lies_elsewhere_is_not_half_deleted(home: Path, tmp_path: Path) -> None:
    elsewhere = (home / "node-1").rename(tmp_path / "other-disk")
    (home / "node-1").symlink_to(elsewhere)
    assert_refused(home, "node-1")
    elsewhere.rename(tmp_path / "gone")
    assert_refused(home, "node-1")


@pytest.mark.parametrize("name", ["node-1.log", FILE])
def test_a_log_or_record_that_is_no_file(home: Path, tmp_path: Path, name: str) -> None:
    (home / name).rename(tmp_path / "moved")
    (home / name).symlink_to(tmp_path / "moved")
    assert_refused(home, name)
    (home / name).unlink()
    (home / name).mkdir()
    assert_refused(home, name)


def test_a_file_in_the_place_of_a_node(home: Path) -> None:
    (home / "node-2").touch()
    assert_refused(home, "node-2")


def test_of_a_node_that_cannot_be_looked_into_nobody_is_said_to_use_it(home: Path) -> None:
    """Another user's: every command said that processes use it, and to end them."""
    (home / "node-1" / ".lock").unlink()
    (home / "node-1" / ".lock").mkdir()
    (home / FILE).unlink()
    for act in (lambda: nothing_here(home, usual_port=1), lambda: check_nothing_lies_there(home)):
        with pytest.raises(LocalError, match=r"node-1 cannot be looked into: Is a directory$"):
            act()
    (home / "node-1" / "meta.properties").touch()
    with pytest.raises(LocalError, match="node-1 cannot be looked into"):
        check_may_be_deleted(home)


def assert_refused(home: Path, name: str) -> None:
    with pytest.raises(LocalError, match=f"{name} .*not deleted"):
        check_may_be_deleted(home)
