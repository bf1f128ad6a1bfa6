"""Who finds no broker is told of the cluster that was here, and how to have it back."""

import signal
import socket
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest

from klamm.cli import main
from klamm.cli.options import bootstrap_of
from klamm.cli.tips import way_back
from klamm.local.agreeing import Wish, new_cluster, with_ports
from klamm.local.asking import METADATA
from klamm.local.cluster import LocalCluster
from klamm.local.ports import HeldPorts
from klamm.local.processes import process_of, started
from klamm.local.record import ClusterRecord, write_record
from klamm.wire.messages.metadata import MetadataResponse
from tests.cli.fake_broker import FakeBroker
from tests.pipeline.runner.shop import FILE

STOPPED = "2026-11-18 06:30:00.000 INFO  [broker 0] stopped cleanly\n"


class Place(NamedTuple):
    """A directory with a cluster of one broker and a witness, neither of which runs; its ports are nobody's."""

    directory: Path
    record: ClusterRecord


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    monkeypatch.chdir(tmp_path)
    directory = tmp_path / "klamm-data"
    directory.mkdir()
    with HeldPorts("127.0.0.1", [0] * 3) as held:
        record = with_ports(new_cluster(Wish(2, 2), Random(1)), held.ports)
        write_record(directory, record)
        for node in record.nodes:
            LocalCluster(directory).log_of(node.node_id).write_text(STOPPED)
        yield Place(directory, record)


def test_a_cluster_that_was_stopped(place: Place) -> None:
    servers = place.record.bootstrap_servers
    back = f"the cluster in {place.directory} was stopped; `klamm up` starts it again, with its data"
    assert way_back(None, servers) == back
    assert way_back(None, servers.split(",")[1]) == back, "one of its brokers, named by hand"
    moved = place.directory.rename(place.directory.with_name("my cluster"))
    assert way_back(None, servers) is None, "there is none in the usual place"
    assert f"`klamm up --dir '{moved}'` starts it again" in str(way_back("my cluster", servers))


def test_a_cluster_that_died(place: Place) -> None:
    LocalCluster(place.directory).log_of(1).write_text("2026-11-18 06:30:00.000 INFO  [broker 1] leads orders-0\n")
    assert "does not run any more; `klamm up`" in str(way_back(None, place.record.bootstrap_servers))


def test_a_cluster_whose_witness_runs_alone(place: Place) -> None:
    witness = started(["sleep", "3600"], place.directory / "node-2.log")
    try:
        write_record(place.directory, place.record.with_processes({2: process_of(witness.pid)}))
        assert way_back(None, place.record.bootstrap_servers) == (
            f"of the cluster in {place.directory} no broker runs; `klamm node start 0 1` starts what is missing"
        )
    finally:
        witness.kill()
        assert witness.wait() == -signal.SIGKILL


def test_brokers_of_somebody_else(place: Place) -> None:
    assert way_back(None, "127.0.0.1:1") is None
    assert way_back(None, "nonsense") is None
    (place.directory / "cluster.json").write_text("{")
    assert way_back(None, place.record.bootstrap_servers) is None


def test_somebody_else_listens_where_it_was(place: Place) -> None:
    with socket.create_server(("127.0.0.1", place.record.nodes[0].port)):
        assert way_back(None, place.record.bootstrap_servers) is None


def test_another_cluster_in_its_place_is_not_taken_for_it(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    """Who stands in the directory of the one must not delete a topic of the other, nor be sent where nobody is."""
    with FakeBroker(place.record.brokers[1].port) as other:
        other.answers = {METADATA: lambda request: MetadataResponse(cluster_id="another")}
        assert main(["topic", "delete", "invoice"]) == 1
        there = f"127.0.0.1:{place.record.brokers[1].port}"
        assert capsys.readouterr().err == (
            f"klamm topic delete: the cluster in {place.directory} does not run, and another cluster answers at "
            f"{there}, where it would; if you mean that one, add --bootstrap {there}\n"
        )
        other.answers = {METADATA: lambda request: MetadataResponse(cluster_id=place.record.cluster_id)}
        options = Namespace(bootstrap=None, dir=None)
        assert bootstrap_of(options) == place.record.bootstrap_servers, "it is the one, started where we cannot see it"


@pytest.mark.parametrize(
    "words",
    [
        ("topic", "list"),
        ("topic", "create", "invoice"),
        ("produce", "invoice", "--value", "one"),
        ("consume", "invoice"),
        ("group", "list"),
        ("config", "show", "topic", "invoice"),
        ("bench", "--records", "1"),
        ("pipeline", "generate", "--count", "1"),
        ("pipeline", "run", "shop.py", "--once"),
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_commands_that_find_no_broker(place: Place, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    Path("shop.py").write_text(FILE)
    assert main(words) == 1
    out, err = capsys.readouterr()
    command = " ".join(words[:2] if words[0] in ("topic", "group", "config", "pipeline") else words[:1])
    back = f"the cluster in {place.directory} was stopped; `klamm up` starts it again, with its data"
    assert (out, err) == ("", f"klamm {command}: no broker answers: {back}\n")


def test_without_a_cluster_here_it_is_said_who_was_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["topic", "list", "--bootstrap", "127.0.0.1:1"]) == 1
    assert "127.0.0.1:1: Connection refused. Is a cluster running? `klamm up` starts one" in capsys.readouterr().err


def test_a_directory_that_cannot_be_looked_into(capsys: pytest.CaptureFixture[str]) -> None:
    """It is no cluster's as far as anybody can see; why it cannot be used is said in a sentence."""
    name = "x" * 300
    assert main(["broker", "--dir", name, "--listen", "127.0.0.1:0"]) == 1
    assert "cannot be used: File name too long" in capsys.readouterr().err
    assert main(["up", "--dir", f"{name}/data", "--port", "0", "--detach"]) == 1
    assert "File name too long" in capsys.readouterr().err
