"""A cluster of processes: brought up, taken down, its nodes killed, paused and started; nothing is left behind."""

import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from math import inf
from pathlib import Path
from random import Random

import pytest

from klamm.local import listeners
from klamm.local.agreeing import Wish, new_cluster
from klamm.local.answering import check_nobody_else_answers
from klamm.local.asking import Address, NoAnswer
from klamm.local.cluster import LocalCluster
from klamm.local.listeners import Listener
from klamm.local.problems import BadLayout, LocalError, NoCluster, NodeDidNotStart, PortsTaken
from klamm.local.processes import Process, process_of, started, state_of
from klamm.local.record import FILE, ClusterRecord, NodeRecord, write_record
from klamm.local.view import cluster_seen
from tests.harness.topics import create_topic
from tests.harness.waiting import wait_until
from tests.local.clients import read, write
from tests.local.several import needs_several_nodes

ONE = Wish(brokers=1, racks=1, first_port=0)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LocalCluster]:
    cluster = LocalCluster(tmp_path / "cluster")
    yield cluster
    if (cluster.directory / FILE).exists():
        cluster.kill(node.node_id for node in cluster.record().nodes)
        cluster.states()


def states(cluster: LocalCluster) -> dict[int, str]:
    return {node.node_id: state for node, state in cluster.states()}


def test_a_cluster_comes_up_goes_down_and_comes_up_again_with_its_records(cluster: LocalCluster) -> None:
    up: list[int] = []
    record = cluster.up(ONE, on_ready=up.append)
    assert up == [0] and states(cluster) == {0: "running"}
    create_topic(record.bootstrap_servers, "kept")
    write(record.bootstrap_servers, "kept", "one", "two")
    assert cluster.down() == []
    assert states(cluster) == {0: "dead"}
    again = cluster.up(Wish())
    assert again.bootstrap_servers == record.bootstrap_servers and again.cluster_id == record.cluster_id
    assert read(again.bootstrap_servers, "kept", 2) == ["one", "two"]


def test_settings_reach_every_node(cluster: LocalCluster) -> None:
    record = cluster.up(Wish(1, 1, 0, {"num.partitions": "7"}))
    create_topic(record.bootstrap_servers, "seven")
    (node,) = record.nodes
    assert len(cluster_seen([Address(record.host, node.port)], 5.0, ["seven"]).partitions) == 7


def test_a_node_is_killed_and_started_again(cluster: LocalCluster) -> None:
    record = cluster.up(ONE)
    create_topic(record.bootstrap_servers, "kept")
    write(record.bootstrap_servers, "kept", "one")
    cluster.kill([0])
    assert states(cluster) == {0: "dead"}
    assert cluster.start([0]), "it serves clients"
    assert read(record.bootstrap_servers, "kept", 1) == ["one"]
    cluster.start([0])
    assert states(cluster) == {0: "running"}, "one that runs is left alone"


def test_two_who_start_a_node_at_once_start_one(cluster: LocalCluster) -> None:
    cluster.up(ONE)
    cluster.kill([0])
    before = cluster.log_of(0).stat().st_size
    with ThreadPoolExecutor(2) as people:
        assert all(people.map(lambda person: person.start([0]), (cluster, LocalCluster(cluster.directory))))
    said = cluster.log_of(0).read_bytes()[before:].decode()
    assert said.count("takes connections") == 1 and "in use" not in said, said


def test_a_paused_node_is_deaf_and_goes_on(cluster: LocalCluster) -> None:
    record = cluster.up(ONE)
    address = Address(record.host, record.nodes[0].port)
    cluster.pause([0])
    assert states(cluster) == {0: "paused"}
    with pytest.raises(NoAnswer):
        cluster_seen([address], 0.05)
    cluster.resume([0])
    assert states(cluster) == {0: "running"}
    assert cluster_seen([address], 10.0).brokers[0].broker_id == 0


def test_a_paused_node_can_be_stopped_cleanly(cluster: LocalCluster) -> None:
    cluster.up(ONE)
    cluster.pause([0])
    assert cluster.stop([0]) == []
    assert "stopped cleanly" in cluster.log_of(0).read_text()


def test_pausing_a_dead_node_is_refused(cluster: LocalCluster) -> None:
    cluster.up(ONE)
    cluster.kill([0])
    for verb in (cluster.pause, cluster.resume):
        with pytest.raises(LocalError, match=r"node 0 is dead; `klamm node start 0 --dir .*` starts it"):
            verb([0])
    cluster.start([0])
    cluster.stop([0])
    with pytest.raises(LocalError, match=r"node 0 is stopped; `klamm node start 0 --dir .*` starts it"):
        cluster.resume([0])


def test_a_node_that_does_not_stop_in_time_is_named_and_killed(cluster: LocalCluster, tmp_path: Path) -> None:
    stubborn = started(["sh", "-c", "trap '' TERM; echo ready; while :; do sleep 1; done"], tmp_path / "log")
    wait_until(lambda: "ready" in (tmp_path / "log").read_text(), "it is deaf to SIGTERM")
    cluster.directory.mkdir()
    write_record(cluster.directory, new_cluster(ONE, Random(1)).with_processes({0: process_of(stubborn.pid)}))
    assert cluster.stop([0], timeout_seconds=0.1) == [0]
    assert states(cluster) == {0: "running"}
    assert cluster.down(timeout_seconds=0.1) == [0]
    assert states(cluster) == {0: "dead"} and stubborn.wait() == -signal.SIGKILL


def test_a_cluster_that_runs_is_not_started_twice(cluster: LocalCluster) -> None:
    cluster.up(ONE)
    with pytest.raises(LocalError, match="runs already"):
        cluster.up(ONE)
    assert states(cluster) == {0: "running"}
    for wish, said in (
        (
            Wish(brokers=6, racks=2),
            r"another than was asked for .--brokers 1, not 6; --racks 1, not 2; `klamm up --dir OTHER --port 0`",
        ),
        (Wish(settings={"num.partitions": "7"}), r"[0-9], and takes --set when it is started again; `klamm status"),
    ):
        with pytest.raises(LocalError, match=f"runs already, .*{said}"):
            cluster.up(wish)


def test_who_means_a_cluster_that_is_dead_does_not_change_another(cluster: LocalCluster, tmp_path: Path) -> None:
    record = cluster.up(ONE)
    check_nobody_else_answers(cluster.directory, cluster.record())
    cluster.kill([0])
    check_nobody_else_answers(cluster.directory, cluster.record())
    other = LocalCluster(tmp_path / "other")
    other.up(Wish(1, 1, record.node(0).port))
    try:
        with pytest.raises(LocalError, match=f"does not run, .*; if you mean that one, add --dir {other.directory}$"):
            check_nobody_else_answers(cluster.directory, cluster.record())
        alive = NodeRecord(1, "R1", ("broker",), 1, process=process_of(os.getpid()))
        partly = replace(cluster.record(), nodes=(*cluster.record().nodes, alive))
        with pytest.raises(LocalError, match=r"node 0 is dead, .*; for the rest of this one, --bootstrap 127.0.0.1:1$"):
            check_nobody_else_answers(cluster.directory, partly)
    finally:
        other.kill([0])


def test_the_metrics_of_a_node_that_was_started_alone_are_where_they_usually_are(cluster: LocalCluster) -> None:
    usual = cluster.up(ONE).node(0).metrics_port
    assert usual is not None
    for is_taken in (True, False):
        cluster.kill([0])
        with socket.create_server(("127.0.0.1", usual)) if is_taken else nullcontext():
            cluster.start([0])
        assert (cluster.record().node(0).metrics_port != usual) == is_taken


def interrupt(_: int) -> None:
    raise KeyboardInterrupt


@pytest.fixture
def whim(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long a node takes to start here, who ends it does so at once."""
    monkeypatch.setattr("klamm.local.cluster.WHIM_SECONDS", inf)


@pytest.mark.usefixtures("whim")
def test_who_thinks_better_of_a_first_start_finds_nothing_left_of_it(cluster: LocalCluster) -> None:
    with pytest.raises(KeyboardInterrupt):
        cluster.up(ONE, on_ready=interrupt)
    assert not cluster.directory.exists()


def test_who_loses_patience_with_a_start_that_takes_long_finds_what_the_nodes_said(
    cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("klamm.local.cluster.WHIM_SECONDS", 0.0)
    with pytest.raises(KeyboardInterrupt):
        cluster.up(ONE, on_ready=interrupt)
    assert [path.name for path in cluster.directory.glob("[!.]*")] == ["node-0.log"]


@pytest.mark.usefixtures("whim")
def test_a_start_that_is_ended_at_once_leaves_the_logs_of_an_earlier_one(cluster: LocalCluster) -> None:
    with failing(cluster), pytest.raises(NodeDidNotStart):
        cluster.up(ONE)
    with pytest.raises(KeyboardInterrupt):
        cluster.up(ONE, on_ready=interrupt)
    assert "no disk" in cluster.log_of(0).read_text()


@contextmanager
def failing(cluster: LocalCluster) -> Iterator[None]:
    """Its nodes begin, complain and end."""

    def launched(record: ClusterRecord, node: NodeRecord) -> "subprocess.Popen[bytes]":
        begin = ["sh", "-c", 'mkdir -p "$1" && echo "cannot start: no disk" && exit 2', "sh"]
        return started([*begin, str(cluster.directory / f"node-{node.node_id}")], cluster.log_of(node.node_id))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cluster, "launched", launched)
        yield


def test_settings_that_no_node_would_take_are_said_before_anything_is_started(cluster: LocalCluster) -> None:
    with pytest.raises(LocalError, match=r"nothing was done: num\.partitons .* did you mean num\.partitions\?"):
        cluster.up(Wish(1, 1, 0, {"num.partitons": "1"}))
    assert not cluster.directory.exists()


def test_a_new_cluster_that_does_not_start_leaves_its_log_and_nothing_else(cluster: LocalCluster) -> None:
    with failing(cluster), pytest.raises(NodeDidNotStart, match="cannot start: no disk"):
        cluster.up(ONE)
    left = sorted(path.name for path in cluster.directory.iterdir() if not path.name.startswith("."))
    assert left == ["node-0.log"]
    cluster.up(ONE)


def test_a_known_cluster_that_does_not_start_keeps_its_data(cluster: LocalCluster) -> None:
    record = cluster.up(ONE)
    create_topic(record.bootstrap_servers, "kept")
    write(record.bootstrap_servers, "kept", "one")
    cluster.down()
    with failing(cluster), pytest.raises(NodeDidNotStart):
        cluster.up(Wish())
    assert states(cluster) == {0: "dead"}
    with pytest.raises(LocalError, match="nothing was done"):
        cluster.up(Wish(settings={"no.such.setting": "1"}))
    cluster.up(Wish())
    assert read(record.bootstrap_servers, "kept", 1) == ["one"]


def test_a_move_that_fails_is_none(cluster: LocalCluster) -> None:
    """It was noted, and the next start was there, without a word."""
    cluster.up(ONE)
    cluster.down()
    before = cluster.record()
    with failing(cluster), pytest.raises(NodeDidNotStart):
        cluster.up(Wish(first_port=20_000 + os.getpid() % 4_000, settings={"num.partitions": "7"}))
    assert cluster.record() == before


def test_ports_that_are_taken_are_said_before_anything_is_started(cluster: LocalCluster) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(PortsTaken):
        cluster.up(Wish(1, 1, taken.getsockname()[1]))
    assert not cluster.directory.exists(), "what was made for it is gone again"


def test_a_start_that_cannot_be_leaves_the_directory_as_it_was(cluster: LocalCluster) -> None:
    cluster.directory.mkdir()
    with pytest.raises(BadLayout):
        cluster.up(Wish(1, 2))
    assert cluster.directory.is_dir(), "somebody had made it before"
    (cluster.directory / "notes.txt").write_text("mine")
    with pytest.raises(BadLayout):
        cluster.up(Wish(1, 2))
    assert (cluster.directory / "notes.txt").read_text() == "mine"


@needs_several_nodes
def test_a_node_whose_port_is_taken_is_not_said_to_be_started(cluster: LocalCluster) -> None:
    """Neither where the others run, nor where the quorum has no majority and nobody waits for it to serve."""
    record = cluster.up(Wish(3, 1, 0))
    cluster.down()
    with (
        socket.create_server((record.host, record.node(1).port)),
        pytest.raises(PortsTaken, match=f"taken already: {record.host}:{record.node(1).port} by process {os.getpid()}"),
    ):
        cluster.start([1])
    cluster.start([0, 1, 2])


def test_a_cluster_that_runs_elsewhere_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    node = Listener(1, ("python", "-m", "klamm", "broker", "--dir", "/data/mine/node-0"))
    monkeypatch.setattr(listeners, "listener_on", {9092: node}.get)
    with pytest.raises(NoCluster, match=r"no cluster in .*, but one runs from /data/mine: add --dir /data/mine"):
        LocalCluster(tmp_path).record()


def test_a_cluster_one_directory_above_or_below_is_named(cluster: LocalCluster) -> None:
    """Somebody has gone into klamm-data, or says --dir of the directory that it is in."""
    cluster.directory.mkdir()
    write_record(cluster.directory, new_cluster(ONE, Random(1)))
    for near in (cluster.directory / "klamm-data", cluster.directory.parent):
        with pytest.raises(NoCluster, match=f"but there is one in {cluster.directory}: add --dir {cluster.directory};"):
            LocalCluster(near).record()


def test_data_without_a_record_is_not_taken_for_a_new_clusters(cluster: LocalCluster) -> None:
    (cluster.directory / "node-0").mkdir(parents=True)
    with pytest.raises(LocalError, match="node-0"):
        cluster.up(ONE)
    assert (cluster.directory / "node-0").is_dir()


def test_a_directory_without_a_cluster_is_not_made(cluster: LocalCluster) -> None:
    for act in (cluster.record, cluster.states, cluster.down, lambda: cluster.start([0]), lambda: cluster.kill([0])):
        with pytest.raises(NoCluster, match="klamm up"):
            act()
    assert not cluster.directory.exists()


def test_a_process_that_only_has_the_number_of_a_node_is_left_alone(cluster: LocalCluster, tmp_path: Path) -> None:
    """The machine was restarted, the numbers were given anew, and `klamm down` is called."""
    record = cluster.up(ONE)
    node = record.nodes[0].process
    assert node is not None
    write_record(cluster.directory, record.with_processes({0: Process(node.pid, "an earlier boot:1")}))
    assert states(cluster) == {0: "dead"}
    assert cluster.down() == []
    cluster.kill([0])
    assert state_of(node) == "running"
    os.kill(node.pid, signal.SIGKILL)


@needs_several_nodes
def test_six_brokers_in_two_racks_and_a_witness(cluster: LocalCluster) -> None:
    record = cluster.up(Wish(6, 2, 0))
    assert states(cluster) == dict.fromkeys(range(7), "running")
    for node in record.brokers:
        seen = cluster_seen([Address(record.host, node.port)], 5.0)
        assert [(each.broker_id, each.rack, each.is_fenced) for each in seen.brokers] == [
            (number, "R1" if number < 3 else "R2", False) for number in range(6)
        ]
        assert seen.controller in (0, 3, 6) and seen.cluster_id == record.cluster_id
    assert cluster.down() == []


@needs_several_nodes
def test_a_lost_rack_takes_neither_quorum_nor_records(cluster: LocalCluster) -> None:
    record = cluster.up(Wish(4, 2, 0, {"default.replication.factor": "3"}))
    create_topic(record.bootstrap_servers, "kept", partitions=4)
    write(record.bootstrap_servers, "kept", "before")
    cluster.kill([2, 3])
    write(record.bootstrap_servers, "kept", "after")
    cluster.start([2, 3])
    assert states(cluster) == dict.fromkeys(range(5), "running")


@needs_several_nodes
def test_a_node_without_a_majority_is_started_and_does_not_serve_yet(cluster: LocalCluster) -> None:
    cluster.up(Wish(3, 1, 0))
    cluster.kill([0, 1, 2])
    assert not cluster.start([1])
    assert cluster.start([0])
    assert cluster.start([2])


@needs_several_nodes
def test_when_one_node_does_not_start_the_others_are_ended(cluster: LocalCluster) -> None:
    with failing(cluster), pytest.raises(NodeDidNotStart):
        cluster.up(Wish(3, 1, 0))
    assert not (cluster.directory / FILE).exists()
