"""The fixtures' clusters without pytest's fixtures: the same objects, and nothing is left of them either."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from proof.fixtures import left_behind

import klamm
from klamm.local.problems import LocalError
from klamm.testing import ClusterUnderTest, EmbeddedCluster, ProcessCluster, embedded_cluster, process_cluster
from tests.harness.waiting import wait_until
from tests.local.clients import read, write

OPENED = [(embedded_cluster, EmbeddedCluster), (process_cluster, ProcessCluster)]
Open = Callable[..., AbstractContextManager[ClusterUnderTest]]
DOCS = Path(__file__).parent.parent.parent / "docs" / "testing.md"

PAUSES = """
import time
from klamm.testing import process_cluster

with process_cluster(brokers=1) as cluster:
    cluster.pause(0)
    print("paused", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where clusters keep their files; empty again in the end, and nobody works there any more."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    yield tmp_path
    wait_until(lambda: not any(left_behind(tmp_path).values()), f"nothing is left: {left_behind(tmp_path)}")


@pytest.mark.parametrize(("opened", "kind"), OPENED, ids=["embedded", "processes"])
def test_a_cluster_of_the_same_kind_as_the_fixtures(opened: Open, kind: type, temporary: Path) -> None:
    with opened(brokers=2, racks=2, settings={"num.partitions": 4}) as cluster:
        assert isinstance(cluster, kind) and cluster.brokers == [0, 1]
        assert left_behind(temporary)["files_left"]
        assert cluster.leader_of(cluster.create_topic("numbered", partitions=-1), 3) in cluster.brokers
        topic = cluster.create_topic("orders")
        write(cluster.bootstrap_servers, topic, "hello")
        cluster.kill(0)
        cluster.restore()
        assert read(cluster.bootstrap_servers, topic, 1) == ["hello"]


@pytest.mark.parametrize(("opened", "kind"), OPENED, ids=["embedded", "processes"])
def test_what_cannot_start_leaves_nothing(opened: Open, kind: type, temporary: Path) -> None:
    with pytest.raises(LocalError, match="racks cannot be filled"), opened(brokers=1, racks=2):
        pass
    with pytest.raises(ValueError, match="brokers is a number from 1 upwards, not 0"), opened(brokers=0):
        pass


def test_when_the_program_is_killed_somebody_tidies_up(temporary: Path) -> None:
    """A broker that is paused could not notice by itself."""
    program = subprocess.Popen([sys.executable, "-c", PAUSES], stdout=subprocess.PIPE)
    assert program.stdout is not None and program.stdout.readline() == b"paused\n"
    assert left_behind(temporary)["processes_left"]
    os.kill(program.pid, signal.SIGKILL)
    assert program.wait(60) == -signal.SIGKILL
    program.stdout.close()


@pytest.mark.parametrize("kind", [klamm.Cluster, ClusterUnderTest])
def test_the_tables_name_all_that_a_cluster_can_do(kind: type) -> None:
    for_subclasses = {"told_by", "loop_of", "dialer_of"}
    names = {name for name in dir(kind) if not name.startswith("_")} - for_subclasses - {"close"}
    section = "### What they can do" if kind is ClusterUnderTest else "## Without pytest"
    table = DOCS.read_text().partition(section)[2].partition("\n#")[0]
    told = set(re.findall(r"`(\w+)", "\n".join(line for line in table.splitlines() if line.startswith("|"))))
    assert names <= told, f"{sorted(names - told)} are not in the table"
