"""What stands in the way of `klamm up`, said in words, and the command in the words mends it."""

import contextlib
import json
import os
import re
import shlex
import shutil
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from klamm.local.cluster import LocalCluster
from klamm.local.ports import HeldPorts
from klamm.local.problems import LocalError, PortsTaken
from klamm.local.processes import wait_ended
from klamm.local.record import FILE
from tests.cli.running import Ended, klamm
from tests.harness.topics import create_topic
from tests.local.clients import read, write

ONE = ("--brokers", "1", "--port", "0", "--detach")


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    directory = tmp_path / "cluster"
    yield directory
    ended(directory)


def ended(directory: Path) -> None:
    cluster = LocalCluster(directory)
    with contextlib.suppress(LocalError):
        cluster.kill(node.node_id for node in cluster.record().nodes)


def up(home: Path, *words: str) -> str:
    """A cluster with a record in it; its bootstrap servers."""
    started = klamm("up", "--json", *(words or ONE), "--dir", str(home))
    assert started.code == 0, started.err
    return str(started.json["bootstrap_servers"])


def with_a_record(servers: str) -> None:
    create_topic(servers, "kept")
    write(servers, "kept", "one")


def mended_by(refused: Ended, beginning: str) -> Ended:
    """The command of those words that begins so, run as it stands there."""
    assert refused.code == 1 and refused.out == "", refused
    (command,) = [each for each in re.findall("`klamm ([^`]*)`", refused.err) if each.startswith(beginning)]
    return klamm(*shlex.split(command))


def states(home: Path) -> list[str]:
    return [state for _, state in LocalCluster(home).states()]


def test_a_stranger_has_the_port(home: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused = klamm("up", "--brokers", "1", "--port", str(port), "--detach", "--dir", str(home))
    assert refused.code == 1 and f"`klamm up --port 0 --dir {home}`" in refused.err
    assert f"127.0.0.1:{port} by process {os.getpid()} (" in refused.err
    assert not (home / FILE).exists()


def test_another_cluster_has_the_ports(home: Path, tmp_path: Path) -> None:
    servers = up(home)
    port = servers.rpartition(":")[2]
    other = tmp_path / "other"
    refused = klamm("up", "--brokers", "1", "--port", port, "--detach", "--dir", str(other))
    assert f"taken by the cluster in {home}" in refused.err
    assert mended_by(refused, "down").code == 0 and states(home) == ["dead"]
    assert klamm("up", "--brokers", "1", "--port", port, "--detach", "--dir", str(other)).code == 0
    again = klamm("up", "--detach", "--dir", str(home))
    assert again.code == 1 and str(other) in again.err
    try:
        moved = klamm("up", "--port", "0", "--detach", "--dir", str(home))
        assert moved.code == 0 and f"moved from {servers} to 127.0.0.1:" in moved.err
    finally:
        ended(other)


def test_a_copy_of_a_cluster_that_runs_is_another(home: Path, tmp_path: Path) -> None:
    """It showed the original's processes as its own, and stopped them."""
    servers = up(home)
    with_a_record(servers)
    copy = tmp_path / "copy"
    shutil.copytree(home, copy)
    shown = klamm("status", "--dir", str(copy))
    assert shown.code == 1 and f"no node runs; `klamm up --dir {copy}`" in shown.out
    assert "was not running" in klamm("node", "kill", "0", "--dir", str(copy)).err
    assert klamm("down", "--dir", str(copy)).out == "no node was running\n" and states(home) == ["running"]
    refused = klamm("up", "--detach", "--dir", str(copy))
    assert f"{servers} is taken by the cluster in {home}; `klamm down --dir {home}` stops it" in refused.err
    try:
        up(copy, "--port", "0", "--detach")
        assert states(copy) == states(home) == ["running"]
    finally:
        ended(copy)


def three_free_ports() -> int:
    """In a row: the first of them."""
    for first in range(24_000 + os.getpid() % 300 * 3, 32_000, 3):
        with contextlib.suppress(PortsTaken), HeldPorts("127.0.0.1", range(first, first + 3)):
            return first
    raise AssertionError("all ports are taken")


def test_a_stopped_cluster_moves_to_other_ports_with_its_data(home: Path) -> None:
    """Three that vote and replicate: they find one another, and one that returns finds the others."""
    before = up(home, "--port", "0", "--detach")
    create_topic(before, "kept", partitions=1, config={"min.insync.replicas": "3"})
    write(before, "kept", "one")
    refused = klamm("up", "--port", "1", "--detach", "--dir", str(home))
    assert refused.code == 1 and "runs already" in refused.err
    klamm("down", "--dir", str(home))
    first = str(three_free_ports())
    moved = klamm("up", "--port", first, "--json", "--detach", "--dir", str(home))
    assert moved.code == 0 and f"moved from {before} to 127.0.0.1:{first}," in moved.err, moved.err
    after = moved.json["bootstrap_servers"]
    assert not set(before.split(",")) & set(after.split(","))
    assert read(after, "kept", 1) == ["one"]
    klamm("node", "kill", "0", "--dir", str(home))
    assert klamm("node", "start", "0", "--dir", str(home)).code == 0
    write(after, "kept", "two")
    assert read(after, "kept", 2) == ["one", "two"]


def test_part_of_it_runs(home: Path) -> None:
    """Somebody killed two of three nodes, or they died. What runs is not started twice."""
    up(home, "--port", "0", "--detach")
    klamm("node", "kill", "1", "2", "--dir", str(home))
    refused = klamm("up", "--detach", "--dir", str(home))
    assert "node 0 runs, nodes 1, 2 are dead" in refused.err
    assert mended_by(refused, "node start").out == "nodes 1, 2 started\n"
    assert states(home) == ["running"] * 3
    whole = klamm("up", "--detach", "--dir", str(home))
    assert "runs already" in whole.err and "klamm status --watch" in whole.err
    assert mended_by(whole, "down").code == 0 and states(home) == ["dead"] * 3


def test_all_of_it_died(home: Path) -> None:
    """The machine was switched off: the record names processes that are no more. It starts again, with its data."""
    with_a_record(up(home))
    klamm("node", "kill", "0", "--dir", str(home))
    servers = up(home, "--detach")
    assert read(servers, "kept", 1) == ["one"]


def test_a_record_of_another_version(home: Path) -> None:
    up(home)
    klamm("down", "--dir", str(home))
    record = json.loads((home / FILE).read_text())
    (home / FILE).write_text(json.dumps({**record, "format": 2}))
    refused = klamm("up", "--detach", "--dir", str(home))
    assert "format 2" in refused.err and "knows 1" in refused.err
    assert (home / "node-0").exists(), "nothing is touched"
    fresh = klamm("up", "--fresh", *ONE, "--dir", str(home))
    assert fresh.code == 0 and states(home) == ["running"]


def test_a_record_that_is_damaged_or_gone(home: Path) -> None:
    up(home)
    klamm("down", "--dir", str(home))
    (home / FILE).write_text("{")
    assert f"klamm up --fresh --dir {home}" in klamm("up", "--detach", "--dir", str(home)).err
    (home / FILE).unlink()
    refused = klamm("up", *ONE, "--dir", str(home))
    assert "node-0" in refused.err and f"`klamm up --fresh --dir {home}`" in refused.err
    assert klamm("up", "--fresh", *ONE, "--dir", str(home)).code == 0


@pytest.mark.parametrize("how", ["gone", "damaged"])
def test_a_record_that_is_lost_while_the_cluster_runs(home: Path, how: str) -> None:
    """No command finds its nodes any more but the one that is named."""
    up(home)
    ((node, _),) = LocalCluster(home).states()
    assert node.process is not None
    (home / FILE).unlink() if how == "gone" else (home / FILE).write_text("{")
    refused = [klamm("up", "--fresh", *ONE, "--dir", str(home))]
    if how == "gone":
        refused += [klamm(*words, "--dir", str(home)) for words in (("up", *ONE), ("down",), ("status",))]
    with (home / "node-0" / ".lock").open():  # Who looks at it, as a backup does, is not named.
        refused.append(klamm("up", "--fresh", *ONE, "--dir", str(home)))
    for each in refused:
        assert each.code in (1, 2) and f"node-0 by process {node.process.pid}" in each.err
        assert f"`kill {node.process.pid}` stops them" in each.err
    os.kill(node.process.pid, signal.SIGTERM)
    assert wait_ended(node.process, 30)
    assert klamm("up", "--fresh", *ONE, "--dir", str(home)).code == 0


def test_an_empty_name_is_no_directory(tmp_path: Path) -> None:
    for words in (("up", *ONE), ("status",), ("topic", "list"), ("broker",)):
        refused = klamm(*words, "--dir", "", cwd=tmp_path)
        assert refused.code == 2 and "an empty name is no directory" in refused.err
    assert list(tmp_path.iterdir()) == []


def test_a_single_broker_says_where_its_data_is_and_who_has_its_port(home: Path, tmp_path: Path) -> None:
    servers = up(home)
    refused = klamm("broker", "--listen", servers, "--dir", str(tmp_path / "single"))
    assert refused.code == 1 and f"the cluster in {home}, which has it: `klamm down --dir {home}`" in refused.err
    assert f"data in {home / 'node-0'}\n" in LocalCluster(home).log_of(0).read_text()
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        port = stranger.getsockname()[1]
        refused = klamm("broker", "--listen", f"127.0.0.1:{port}", "--dir", str(tmp_path / "single"))
    assert refused.code == 1 and f"or end process {os.getpid()} (" in refused.err


@pytest.mark.parametrize(
    ("name", "value", "said"), [("version", "0", "version 0, not 1"), ("cluster.id", "x", "cluster.id x")]
)
def test_data_of_another_version_or_cluster(home: Path, name: str, value: str, said: str) -> None:
    up(home)
    klamm("down", "--dir", str(home))
    identity = home / "node-0" / "meta.properties"
    identity.write_text(re.sub(f"(?m)^{re.escape(name)}=.*$", f"{name}={value}", identity.read_text()))
    refused = klamm("up", "--detach", "--dir", str(home))
    assert refused.code == 1 and said in refused.err and f"`klamm up --fresh --dir {home}`" in refused.err
    assert f"{name}={value}" in identity.read_text(), "nothing is touched"


def test_one_place_for_the_metrics_of_several_nodes(home: Path) -> None:
    listener = "klamm.metrics.listener"
    refused = klamm("up", "--detach", "--port", "0", "--set", f"{listener}=127.0.0.1:9404", "--dir", str(home))
    assert refused.code == 1 and "one place for 3 nodes" in refused.err and not (home / FILE).exists()
    assert len(refused.err.splitlines()) == 1
    off = klamm("up", "--json", *ONE, "--set", f"{listener}=", "--dir", str(home))
    assert off.code == 0 and off.json["nodes"][0]["metrics"] is None


def test_directories_of_another_kind(home: Path, tmp_path: Path) -> None:
    up(home)
    klamm("down", "--dir", str(home))
    single = klamm("up", "--detach", "--dir", str(home / "node-0"))
    assert single.code == 1 and f"`klamm broker --dir {home / 'node-0'}`" in single.err
    for option in (("--dir", str(home)), ("--set", f"log.dirs={home}")):
        broker = klamm("broker", "--listen", "127.0.0.1:0", *option)
        assert (
            broker.code == 1 and "the directory of a cluster" in broker.err and f"`klamm up --dir {home}`" in broker.err
        )
    assert (home / "node-0" / "meta.properties").exists() and not (home / "meta.properties").exists()
    file = tmp_path / "file"
    file.write_text("something")
    refused = klamm("up", "--detach", "--dir", str(file))
    assert refused.code == 1 and "is a file" in refused.err


def test_fresh_deletes_when_nothing_stands_in_the_way_and_only_what_is_the_clusters(home: Path) -> None:
    with_a_record(up(home))
    (home / "notes.txt").write_text("mine")
    refused = klamm("up", "--fresh", *ONE, "--dir", str(home))
    assert refused.code == 1 and "in use" in refused.err and states(home) == ["running"]
    assert mended_by(refused, "down").code == 0
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert klamm("up", "--fresh", "--brokers", "1", "--port", port, "--detach", "--dir", str(home)).code == 1
    assert klamm("up", "--fresh", "--brokers", "1", "--racks", "2", "--dir", str(home)).code == 1
    unfit = klamm("up", "--fresh", *ONE, "--set", "num.partitions=abc", "--dir", str(home))
    assert unfit.code == 1 and "num.partitions" in unfit.err and "nothing was done" in unfit.err
    assert len(unfit.err.splitlines()) == 1
    assert read(up(home, "--detach"), "kept", 1) == ["one"], "it was not deleted for a start that could not be"
    klamm("down", "--dir", str(home))
    up(home, "--fresh", *ONE)
    assert klamm("topic", "list", "--json", "--dir", str(home)).json == []
    assert (home / "notes.txt").read_text() == "mine"
    klamm("down", "--dir", str(home))
    (home / "node-7").mkdir()
    (home / "node-7" / "thesis.tex").write_text("mine")
    refused = klamm("up", "--fresh", *ONE, "--dir", str(home))
    assert refused.code == 1 and "node-7" in refused.err and (home / "node-7" / "thesis.tex").exists()
    assert (home / "node-0" / "meta.properties").exists(), "nothing is touched"
