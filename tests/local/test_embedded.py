"""`klamm.Cluster`: nodes inside this process, on a thread of their own."""

import asyncio
import contextlib
import pydoc
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import klamm
from klamm.local.asking import Address
from klamm.local.cluster import LocalCluster
from klamm.local.problems import LocalError
from klamm.local.view import cluster_seen, live_brokers
from tests.harness.topics import create_topic
from tests.local.clients import read, write
from tests.local.several import needs_several_nodes


def test_a_synchronous_client_in_the_callers_thread() -> None:
    """It blocks its thread, and the cluster answers from another."""
    with klamm.Cluster(brokers=1) as cluster:
        assert cluster.running == [0]
        create_topic(cluster.bootstrap_servers, "greetings")
        write(cluster.bootstrap_servers, "greetings", "hello")
        assert read(cluster.bootstrap_servers, "greetings", 1) == ["hello"]


def test_inside_an_event_loop() -> None:
    async def story() -> list[str]:
        async with klamm.Cluster(brokers=1) as cluster:
            await asyncio.to_thread(write, cluster.bootstrap_servers, "greetings", "hello")
            return await asyncio.to_thread(read, cluster.bootstrap_servers, "greetings", 1)

    assert asyncio.run(story()) == ["hello"]


@pytest.mark.parametrize("how", ["kill", "stop"])
def test_a_node_that_ended_comes_back_with_its_records(how: str) -> None:
    with klamm.Cluster(brokers=1) as cluster:
        create_topic(cluster.bootstrap_servers, "kept")
        write(cluster.bootstrap_servers, "kept", "one")
        getattr(cluster, how)(0)
        assert cluster.running == []
        with pytest.raises(OSError):
            _connect(cluster)
        getattr(cluster, how)(0)
        cluster.start(0)
        cluster.start(0)
        assert cluster.running == [0]
        write(cluster.bootstrap_servers, "kept", "two")
        assert read(cluster.bootstrap_servers, "kept", 2) == ["one", "two"]


def test_a_killed_node_leaves_no_sign_of_a_clean_end(tmp_path: Path) -> None:
    """Else it would trust what it had not flushed."""
    marker = tmp_path / "node-0" / ".kafka_cleanshutdown"
    with klamm.Cluster(brokers=1, directory=tmp_path) as cluster:
        cluster.kill(0)
        assert not marker.exists()
        cluster.start(0)
        cluster.stop(0)
        assert marker.exists()


def test_without_a_directory_nothing_is_left() -> None:
    before = set(threading.enumerate())
    with klamm.Cluster(brokers=1) as cluster:
        directory = cluster._opened.directory
        assert directory.is_dir()
        for end in (cluster.kill, cluster.stop):
            write(cluster.bootstrap_servers, "greetings", "hello")
            end(0)
            cluster.start(0)
        assert open_files_in(directory)
    assert not directory.exists()
    assert not open_files_in(directory), "a fixture opens hundreds of clusters in one process"
    assert not any(thread.name == "klamm-cluster" for thread in set(threading.enumerate()) - before)


def open_files_in(directory: Path) -> list[str]:
    found = []
    for descriptor in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            found.append(str(descriptor.readlink()))
    return [name for name in found if name.startswith(str(directory))]


def test_with_a_directory_the_cluster_is_the_same_again_here_and_as_processes(tmp_path: Path) -> None:
    with klamm.Cluster(brokers=1, directory=tmp_path) as cluster:
        bootstrap = cluster.bootstrap_servers
        create_topic(bootstrap, "kept")
        write(bootstrap, "kept", "one")
    with klamm.Cluster(directory=tmp_path) as cluster:
        assert cluster.bootstrap_servers == bootstrap
        assert read(bootstrap, "kept", 1) == ["one"]
    processes = LocalCluster(tmp_path)
    from klamm.local.agreeing import Wish

    try:
        assert processes.up(Wish()).bootstrap_servers == bootstrap
        assert read(bootstrap, "kept", 1) == ["one"]
    finally:
        processes.down()


def test_settings_may_be_numbers_and_truths() -> None:
    with klamm.Cluster(brokers=1, settings={"num.partitions": 6, "auto.create.topics.enable": False}) as cluster:
        assert cluster._opened.record.settings == {"num.partitions": "6", "auto.create.topics.enable": "false"}


def test_two_clusters_know_nothing_of_each_other() -> None:
    with klamm.Cluster(brokers=1) as one, klamm.Cluster(brokers=1) as other:
        create_topic(one.bootstrap_servers, "here")
        assert _topics(one) == ["here"] and _topics(other) == []


def test_a_cluster_that_cannot_start_says_why_and_can_be_tried_again(tmp_path: Path) -> None:
    with pytest.raises(LocalError, match=r"no\.such\.setting"):
        klamm.Cluster(brokers=1, settings={"no.such.setting": "1"}).open()
    with klamm.Cluster(brokers=1, directory=tmp_path) as one:
        with pytest.raises(LocalError, match="somebody else listens"):
            klamm.Cluster(directory=tmp_path).open()
        assert one.running == [0]
    klamm.Cluster(directory=tmp_path).open().close()


def test_a_cluster_that_is_not_open_says_so() -> None:
    cluster = klamm.Cluster(brokers=1)
    with pytest.raises(RuntimeError, match="not open"):
        _ = cluster.bootstrap_servers
    cluster.close()
    with cluster, pytest.raises(RuntimeError, match="open already"):
        cluster.open()


def test_importing_klamm_imports_next_to_nothing() -> None:
    """Every command and every node does it."""
    script = "import sys, klamm; print(sorted(name for name in sys.modules if name.startswith('klamm')))"
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert said.strip() == "['klamm']"
    with pytest.raises(AttributeError, match="Clutter"):
        _ = klamm.Clutter


def test_help_and_dir_tell_what_there_is() -> None:
    assert {"Cluster", "__version__"} <= set(dir(klamm)) and not {"Any", "TYPE_CHECKING"} & set(dir(klamm))
    told = pydoc.plain(pydoc.render_doc(klamm))
    assert "class Cluster" in told and "klamm_embedded" in told and "start(self, *node_ids" in told
    for_subclasses = {"told_by", "loop_of", "dialer_of", "abandon"}
    names = {name for name in vars(klamm.Cluster) if not name.startswith("_")} - for_subclasses
    assert klamm.Cluster.__doc__ and all(name in klamm.Cluster.__doc__ for name in names)


@needs_several_nodes
def test_three_nodes_on_one_loop_survive_one() -> None:
    with klamm.Cluster(brokers=3) as cluster:
        create_topic(cluster.bootstrap_servers, "kept", config={"min.insync.replicas": "2"})
        write(cluster.bootstrap_servers, "kept", "one")
        cluster.kill(0)
        write(cluster.bootstrap_servers, "kept", "two")
        cluster.start(0)
        cluster.stop(1)
        write(cluster.bootstrap_servers, "kept", "three")
        assert read(cluster.bootstrap_servers, "kept", 3) == ["one", "two", "three"]


@needs_several_nodes
def test_nodes_that_ended_are_started_together_and_serve() -> None:
    """One alone is no majority, and is not waited for before there is one."""
    with klamm.Cluster(brokers=3) as cluster:
        for node_id in cluster.running:
            cluster.kill(node_id)
        cluster.start()
        assert cluster.running == [0, 1, 2]
        for node_id in cluster.running:
            cluster.kill(node_id)
        cluster.start(2)
        cluster.start(0, 1)
        addresses = [Address("127.0.0.1", node.port) for node in cluster.nodes]
        assert all(live_brokers(address, 5.0) == {0, 1, 2} for address in addresses)


@needs_several_nodes
def test_two_racks_and_a_witness_inside_one_process() -> None:
    with klamm.Cluster(brokers=4, racks=2) as cluster:
        assert cluster.running == [0, 1, 2, 3, 4]
        assert cluster.brokers == [0, 1, 2, 3], "the witness is none"
        assert [node.rack for node in cluster.nodes] == ["R1", "R1", "R2", "R2", None]


def _connect(cluster: klamm.Cluster) -> None:
    import socket

    socket.create_connection(("127.0.0.1", cluster.nodes[0].port)).close()


def _topics(cluster: klamm.Cluster) -> list[str]:
    seen = cluster_seen([Address("127.0.0.1", cluster.nodes[0].port)], 10.0)
    return sorted({each.topic for each in seen.partitions})


@needs_several_nodes
@pytest.mark.parametrize("end", ["close", "abandon"])
def test_that_nodes_miss_one_another_in_the_end_is_no_news(caplog: pytest.LogCaptureFixture, end: str) -> None:
    cluster = klamm.Cluster(brokers=3).open()
    caplog.clear()
    getattr(cluster, end)()
    assert not caplog.records
