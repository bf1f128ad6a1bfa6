"""Commands whose output the shell has closed, as cron does: no stack trace, and nothing that runs on without a word."""

import contextlib
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from klamm.local.cluster import LocalCluster
from klamm.local.problems import NoCluster
from tests.cli.running import LONG_SECONDS, Ended, klamm

ONE = "up --brokers 1 --port 0"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    home = tmp_path_factory.mktemp("closed") / "cluster"
    assert klamm(*ONE.split(), "--detach", "--dir", str(home)).code == 0
    yield home
    klamm("down", "--dir", str(home))


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "cluster"
    cluster = LocalCluster(tmp_path / "cluster")
    with contextlib.suppress(NoCluster):
        cluster.kill(node.node_id for node in cluster.record().nodes)


def shell(words: str, cwd: Path) -> "subprocess.Popen[str]":
    """`klamm` with these words, as a shell takes them."""
    command = ["sh", "-c", f"exec {sys.executable} -m klamm {words}"]
    return subprocess.Popen(command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def ended(words: str, cwd: Path) -> Ended:
    out, err = (process := shell(words, cwd)).communicate(timeout=LONG_SECONDS)
    assert "Traceback" not in err, err
    return Ended(process.returncode, out, err)


@pytest.mark.parametrize(
    "words", ["status --dir {}", "topic list --dir {}", "completion bash", "--help", "pipeline example", "up --help"]
)
def test_what_nobody_wants_to_see_is_not_shown(running: Path, words: str, tmp_path: Path) -> None:
    assert ended(f"{words.format(running)} >&-", tmp_path).code == 0


def test_records_are_not_read_to_be_thrown_away(running: Path, tmp_path: Path) -> None:
    """A group would never see them again."""
    refused = ended(f"consume invoice --group g --dir {running} >&-", tmp_path)
    assert (refused.code, refused.err) == (
        2,
        "klamm consume: standard output is closed; `>/dev/null` reads all the same\n",
    )


@pytest.mark.parametrize("words", ["topic frobnicate", "frobnicate", "down --dir nowhere", "broker --set x=1"])
def test_complaints_do_not_come_where_results_are_read(words: str, tmp_path: Path) -> None:
    refused = ended(f"{words} 2>&-", tmp_path)
    assert refused.code == 2 and "klamm: " not in refused.out and "error" not in refused.out, refused


def test_how_far_it_is_does_not_come_there_either(tmp_path: Path) -> None:
    often = "import sys, klamm.cli.progress as p; p.LINE_SECONDS = 0.0; from klamm.cli import main; sys.exit(main({}))"
    words = ["sim", "--seeds", "2", "--json"]
    command = ["sh", "-c", f'exec "{sys.executable}" -c "$1" 2>&-', "sh", often.format(words)]
    told = subprocess.run(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True, timeout=LONG_SECONDS, check=True)
    assert told.stdout.startswith("{")


def test_up_without_anybody_to_say_it_to_stays(home: Path) -> None:
    """It ended with exit code 1, and its cluster ran on."""
    foreground = shell(f"{ONE} --dir {home} 2>&-", home.parent)
    assert foreground.stdout is not None
    assert foreground.stdout.readline().startswith("bootstrap servers: 127.0.0.1:")
    foreground.send_signal(signal.SIGINT)
    out, _ = foreground.communicate(timeout=LONG_SECONDS)
    assert (foreground.returncode, out) == (0, "")
    assert [state for _, state in LocalCluster(home).states()] == ["dead"]


def test_whatever_fails_when_a_cluster_runs_it_is_said_that_it_does(home: Path) -> None:
    """Also a mistake of ours."""
    broken = "import sys, klamm.cli.up as up; up._print_result = None; from klamm.cli import main; sys.exit(main({}))"
    command = [sys.executable, "-c", broken.format([*ONE.split(), "--dir", str(home)])]
    failed = subprocess.run(command, capture_output=True, text=True, timeout=LONG_SECONDS, check=False)
    assert failed.returncode == 1 and "TypeError" in failed.stderr
    assert f"klamm up: the cluster runs nevertheless: `klamm status --dir {home}` shows it" in failed.stderr
    assert [state for _, state in LocalCluster(home).states()] == ["running"]
