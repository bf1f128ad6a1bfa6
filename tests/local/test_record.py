"""DIR/cluster.json: what is written is read again, and a damaged file is said to be one."""

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from shutil import copytree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klamm.local.problems import LocalError
from klamm.local.processes import Process
from klamm.local.record import (
    FILE,
    LOCK,
    WRITTEN_IN,
    ClusterRecord,
    NodeRecord,
    _document,
    _record_of,
    locked,
    read_record,
    write_record,
)
from klamm.runtime.taking import TakenDirectory
from tests.harness.waiting import wait_until

processes = st.none() | st.builds(Process, st.integers(1, 4_000_000), st.text(max_size=40))
nodes = st.builds(
    NodeRecord,
    node_id=st.integers(0, 99),
    rack=st.none() | st.text(max_size=5),
    roles=st.sampled_from([("broker",), ("controller",), ("broker", "controller")]),
    port=st.integers(1, 65_535),
    process=processes,
    metrics_port=st.none() | st.integers(1, 65_535),
    usual_metrics_port=st.none() | st.integers(1, 65_535),
)
records = st.builds(
    ClusterRecord,
    cluster_id=st.text(max_size=22),
    host=st.just("127.0.0.1"),
    settings=st.dictionaries(st.text(max_size=8), st.text(max_size=8)),
    nodes=st.lists(nodes, max_size=7).map(tuple),
    was_stopped=st.booleans(),
)

SIX = ClusterRecord(
    "an-id",
    "127.0.0.1",
    {},
    (
        NodeRecord(0, "R1", ("broker", "controller"), 19092),
        NodeRecord(1, "R1", ("broker",), 19093),
        NodeRecord(2, "R2", ("broker", "controller"), 19094, Process(7, "then")),
        NodeRecord(3, None, ("controller",), 19095),
    ),
)


@given(records)
def test_what_is_written_is_read_again(record: ClusterRecord) -> None:
    assert _record_of(_document(record)) == record


def test_a_record_on_disk(tmp_path: Path) -> None:
    assert read_record(tmp_path) is None
    assert read_record(tmp_path / "not-there") is None
    write_record(tmp_path, SIX)
    assert read_record(tmp_path) == SIX
    assert [path.name for path in tmp_path.iterdir()] == [FILE], "nothing else is left lying about"


def test_processes_that_a_copied_record_names_are_not_the_copys(tmp_path: Path) -> None:
    directory, copy = tmp_path / "original", tmp_path / "copy"
    directory.mkdir()
    write_record(directory, SIX)
    copytree(directory, copy)
    assert read_record(copy) == SIX.without_processes() != SIX
    assert read_record(directory.rename(tmp_path / "moved")) == SIX, "and it has moved with all that runs in it"
    write_record(copy, SIX)
    assert read_record(copy) == SIX, "now they are its own"


def test_a_node_that_has_its_data_is_the_directorys_own_whatever_its_number_is(tmp_path: Path) -> None:
    """Some file systems number a directory anew while somebody works in it."""
    write_record(tmp_path, SIX)
    document = json.loads((tmp_path / FILE).read_text())
    (tmp_path / FILE).write_text(json.dumps({**document, WRITTEN_IN: {"device": 1, "inode": 1}}))
    assert read_record(tmp_path) == SIX.without_processes()
    node = TakenDirectory(tmp_path / "node-2")
    assert read_record(tmp_path) == SIX
    node.let_go()


def test_a_record_of_before_is_taken_as_it_is(tmp_path: Path) -> None:
    document = _document(SIX)
    del document["was_stopped"]
    (tmp_path / FILE).write_text(json.dumps(document))
    assert read_record(tmp_path) == SIX


def test_clients_are_told_of_brokers_and_nodes_of_voters() -> None:
    assert SIX.bootstrap_servers == "127.0.0.1:19092,127.0.0.1:19093,127.0.0.1:19094"
    assert SIX.quorum == "0@127.0.0.1:19092,2@127.0.0.1:19094,3@127.0.0.1:19095"
    assert SIX.racks == 2


def test_new_processes_take_the_place_of_old_ones_and_leave_the_others() -> None:
    changed = SIX.with_processes({0: Process(8, "now")})
    assert [node.process for node in changed.nodes] == [Process(8, "now"), None, Process(7, "then"), None]


def test_a_cluster_that_was_stopped_is_so_until_a_node_is_started() -> None:
    stopped = replace(SIX, was_stopped=True)
    assert stopped.with_processes({}).was_stopped
    assert not stopped.with_processes({0: Process(8, "now")}).was_stopped


def test_a_node_that_is_not_there() -> None:
    with pytest.raises(LocalError, match=r"no node 9.*0, 1, 2, 3"):
        SIX.node(9)


def test_a_directory_that_was_made_for_nothing_is_removed_again(tmp_path: Path) -> None:
    """And those around it that were made with it; what was there before stays, and what was put there."""
    (tmp_path / "there").mkdir()
    inner = tmp_path / "there" / "made" / "too"
    with pytest.raises(LocalError), locked(inner):
        raise LocalError("it cannot be done")
    assert not (tmp_path / "there" / "made").exists() and (tmp_path / "there").is_dir()
    with locked(tmp_path / "there"):
        pass
    assert (tmp_path / "there").is_dir()
    with locked(inner):
        (inner / "node-0.log").write_text("why")
    assert (inner / "node-0.log").read_text() == "why"


def test_who_waits_for_a_directory_that_is_removed_makes_it_again(tmp_path: Path) -> None:
    directory = tmp_path / "made"
    with ThreadPoolExecutor(1) as second:
        with locked(directory):
            inode = (directory / LOCK).stat().st_ino

            def written() -> None:
                with locked(directory):
                    write_record(directory, SIX)

            waiting = second.submit(written)
            wait_until(lambda: _has_a_waiter(inode), "the second one waits")
        waiting.result()
    assert read_record(directory) == SIX


def _has_a_waiter(inode: int) -> bool:
    return any("->" in line and f":{inode} " in line for line in Path("/proc/locks").read_text().splitlines())


@pytest.mark.parametrize("content", ["", "{", "[]", '{"format": 99}', '{"format": 1, "cluster_id": "x"}'])
def test_a_damaged_file_is_said_to_be_one(tmp_path: Path, content: str) -> None:
    (tmp_path / FILE).write_text(content)
    with pytest.raises(LocalError, match="damaged"):
        read_record(tmp_path)
    assert (tmp_path / FILE).read_text() == content
