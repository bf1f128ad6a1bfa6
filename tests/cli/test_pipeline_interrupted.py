"""Ctrl-C while `klamm pipeline run` starts Spark ends it then and there, in a sentence, and leaves no Java behind.

It once announced that it stopped after a batch, where there was none; and a little later Spark took Ctrl-C for itself
and answered in stack traces. A terminal sends it to the whole group of processes, `kill -INT` to one.
"""

import os
import pty
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import klamm
from tests.docs.leftovers import end_marked
from tests.harness.waiting import wait_until
from tests.pipeline.runner.shop import FILE
from tests.pipeline.runner.world import make_topic

MARK = "KLAMM_TEST_INTERRUPTED"
LONG_SECONDS, SOON_SECONDS = 300.0, 30.0
SENTENCE = "interrupted before the first batch: nothing was read or written"
CTRL_C = b"\x03"
SHOWN, HIDDEN = "\x1b[?25h", "\x1b[?25l"

PRICED = "def priced(orders: DataFrame) -> DataFrame:\n"
PLANS_LONG = FILE.replace(
    PRICED,
    f"""{PRICED}
    import os, pathlib, time
    pathlib.Path(os.environ["{MARK}"], "plans").touch()
    time.sleep(60)
""",
)
RIGHT_AFTER_THE_START = """
import os, signal, sys
from py4j.clientserver import ClientServerConnection
from pyspark import SparkContext

class Waiting:
    def __init__(self, answers):
        self._answers = answers

    def readline(self):
        os.kill(os.getpid(), signal.SIGINT)
        return self._answers.readline()

    def close(self):
        self._answers.close()

send, start = ClientServerConnection.send_command, SparkContext._do_init

def interrupted(connection, command):
    ClientServerConnection.send_command = send
    connection.stream = Waiting(connection.stream)
    return send(connection, command)

def started(*arguments, **options):
    start(*arguments, **options)
    ClientServerConnection.send_command = interrupted

SparkContext._do_init = started

from klamm.cli import main
sys.exit(main(sys.argv[1:]))
"""
"""Ctrl-C while PySpark waits for the first answer after its start."""


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with klamm.Cluster(brokers=1) as cluster:
        make_topic(cluster.bootstrap_servers)
        yield cluster.bootstrap_servers


class Terminal:
    """A run on a terminal of its own; everything it starts carries a mark."""

    def __init__(self, place: Path, servers: str, file: str) -> None:
        self.place, self.said = place, ""
        (place / "shop.py").write_text(file)
        words = ["pipeline", "run", str(place / "shop.py"), "--bootstrap", servers, "--data", str(place / "data")]
        self.pid, self._screen = pty.fork()
        if self.pid == 0:
            environment = {**os.environ, MARK: str(place), "TERM": "xterm"}
            os.execve(sys.executable, [sys.executable, "-m", "klamm", *words], environment)
        os.set_blocking(self._screen, False)

    def has_said(self, words: str) -> bool:
        self._read()
        return words in self.said

    def has_java(self) -> bool:
        self._read()
        return any(b"SparkSubmit" in command for command in self.living().values())

    def plans(self) -> bool:
        self._read()
        return (self.place / "plans").exists()

    def living(self) -> dict[int, bytes]:
        """Processes with the mark, and their commands."""
        mark, found = f"{MARK}={self.place}".encode(), {}
        for entry in Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and mark in (entry / "environ").read_bytes().split(b"\0"):
                    found[int(entry.name)] = (entry / "cmdline").read_bytes()
            except OSError:
                continue  # It has ended meanwhile, or is not ours.
        return found

    def press(self, key: bytes) -> None:
        os.write(self._screen, key)

    def code(self) -> int:
        """When it has ended. Somebody has to read meanwhile what it says."""
        ended = (0, 0)

        def has_ended() -> bool:
            nonlocal ended
            self._read()
            ended = os.waitpid(self.pid, os.WNOHANG)
            return ended[0] != 0

        wait_until(has_ended, f"it ends; it said {self.said!r}", SOON_SECONDS)
        self._read()
        return os.waitstatus_to_exitcode(ended[1])

    def _read(self) -> None:
        try:
            while more := os.read(self._screen, 65_536):
                self.said += more.decode()
        except OSError:
            return  # There is nothing more, for now or for ever.

    def close(self) -> None:
        end_marked(MARK, str(self.place))
        os.close(self._screen)


@pytest.fixture
def run(tmp_path: Path, servers: str) -> Iterator[Callable[[str], Terminal]]:
    begun: list[Terminal] = []

    def begin(file: str) -> Terminal:
        begun.append(Terminal(tmp_path, servers, file))
        return begun[0]

    yield begin
    for each in begun:
        each.close()


@pytest.mark.parametrize("how", ["Ctrl-C", "kill -INT"])
@pytest.mark.parametrize("moment", ["before Java", "while Java starts", "when it has started"])
def test_it_ends_then_and_there(moment: str, how: str, run: Callable[[str], Terminal]) -> None:
    terminal = run(PLANS_LONG if moment == "when it has started" else FILE)
    wait_until(lambda: terminal.has_said("starting Spark"), "Spark is announced", LONG_SECONDS)
    if moment == "while Java starts":
        wait_until(terminal.has_java, "there is a Java", LONG_SECONDS)
    elif moment == "when it has started":
        wait_until(terminal.plans, "the flow is planned", LONG_SECONDS)
    if how == "Ctrl-C":
        terminal.press(CTRL_C)
    else:
        os.kill(terminal.pid, signal.SIGINT)
    assert terminal.code() == 130, terminal.said
    assert terminal.living() == {}, "no Java is left"
    assert terminal.said.count(SENTENCE) == 1 and "Traceback" not in terminal.said and "stopping" not in terminal.said
    assert terminal.said.rfind(SHOWN) > terminal.said.rfind(HIDDEN), "the cursor is back"
    data = terminal.place / "data"
    left = {each.name for each in data.iterdir()} if data.is_dir() else set()
    assert left <= {"spark.log"}, "nor a lock"


def test_spark_does_not_take_ctrl_c_for_itself(tmp_path: Path, servers: str) -> None:
    (tmp_path / "shop.py").write_text(FILE)
    words = ["pipeline", "run", "shop.py", "--bootstrap", servers, "--data", "data"]
    command = [sys.executable, "-c", RIGHT_AFTER_THE_START, *words]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=LONG_SECONDS)
    assert (ended.returncode, ended.stdout) == (130, ""), ended.stderr
    assert ended.stderr.splitlines() == ["starting Spark (local[*]) ...", SENTENCE]


@pytest.mark.parametrize("verb", ["check", "test"])
def test_nor_does_it_where_nothing_is_run(verb: str, tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(FILE)
    command = [sys.executable, "-c", RIGHT_AFTER_THE_START, "pipeline", verb, "shop.py"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=LONG_SECONDS)
    assert (ended.returncode, ended.stderr) == (130, "starting Spark ...\n")
