"""`klamm up`, `down`, `status` and `node`, as a person's shell runs them."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from klamm.local.cluster import LocalCluster
from klamm.local.problems import NoCluster
from klamm.local.record import FILE, locked
from tests.cli.running import LONG_SECONDS, klamm
from tests.harness.topics import create_topic
from tests.harness.waiting import wait_until
from tests.local.several import needs_several_nodes


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A directory for a cluster, which is gone in the end, whatever happened."""
    directory = tmp_path / "cluster"
    yield directory
    cluster = LocalCluster(directory)
    with contextlib.suppress(NoCluster):
        cluster.kill(node.node_id for node in cluster.record().nodes)


def in_the_foreground(command: list[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_a_cluster_left_running_is_looked_at_hurt_healed_and_stopped(home: Path) -> None:
    at = ("--dir", str(home))
    up = klamm("up", "--brokers", "1", "--port", "0", "-d", "--json", *at)
    assert up.code == 0, up.err
    (node,) = up.json["nodes"]
    assert up.json["bootstrap_servers"] == node["address"] and node["id"] == 0 and node["rack"] == "R1"

    status = klamm("status", "--json", *at)
    assert status.code == 0
    (seen,) = status.json["nodes"]
    assert (seen["state"], seen["pid"], seen["address"]) == ("running", node["pid"], node["address"])
    assert status.json["reachable"] and status.json["offline_partitions"] == []

    assert klamm("node", "pause", "0", *at).out == "node 0 paused\n"
    paused = klamm("status", *at)
    assert paused.code == 1 and " paused " in paused.out and "node 0 alone has a vote and does not run" in paused.out
    assert klamm("node", "resume", "0", *at).out == "node 0 resumed\n"
    again = klamm("node", "resume", "0", *at)
    assert (again.code, again.out) == (0, "") and "node 0 was not paused" in again.err

    assert klamm("node", "kill", "0", *at).out == "node 0 killed\n"
    again = klamm("node", "kill", "0", *at)
    assert again.code == 0 and "was not running" in again.err
    killed = klamm("status", *at)
    assert " dead " in killed.out and "no node runs; `klamm up" in killed.out
    assert klamm("status", "--json", *at).json["nodes"][0] | {"pid": None, "state": "dead"} == seen | {
        "pid": None,
        "state": "dead",
    }
    assert klamm("node", "start", "0", "0", *at).out == "node 0 started\n", "each is named once"
    assert "runs already" in klamm("node", "start", "0", *at).err
    assert klamm("node", "stop", "0", "0", *at).out == "node 0 stopped\n"
    assert "klamm node resume: node 0 is stopped; `klamm node start 0" in klamm("node", "resume", "0", *at).err
    assert klamm("node", "start", "0", *at).code == 0

    assert klamm("down", *at)[1:] == ("1 node stopped\n", f"`klamm up --dir {home}` starts it again, with its data\n")
    assert klamm("down", *at).out == "no node was running\n"
    status = klamm("status", *at)
    assert status.code == 1 and " stopped " in status.out
    assert status.out.endswith(f"stopped; `klamm up --dir {home}` starts it\n")
    assert klamm("status", "--json", *at).json["nodes"][0]["state"] == "dead", "scripts know it by this word"


def test_under_replicated_and_offline_partitions_are_counted(home: Path) -> None:
    up = klamm("up", "--brokers", "1", "--port", "0", "--detach", "--json", "--dir", str(home))
    create_topic(up.json["bootstrap_servers"], "invoice", partitions=3)
    text = klamm("status", "--dir", str(home))
    assert text.code == 0
    assert "partitions        3" in text.out and "offline           0" in text.out


def test_settings_without_effect_are_named_once_and_not_once_a_node(home: Path) -> None:
    three = ("--brokers", "3", "--port", "0", "--detach", "--dir", str(home))
    up = klamm("up", *three, "--set", "num.io.threads=4", "--set", "num.partitions=2", "--set", "zookeeper.connect=x:1")
    assert up.code == 0 and up.out.startswith("bootstrap servers: ")
    told = [line for line in up.err.splitlines() if " up after " not in line]
    assert told == [
        "num.io.threads has no effect. A Klamm node is one thread: it has no pools to size.",
        "zookeeper.connect is ignored. Kafka 4 has no ZooKeeper, and neither has Klamm.",
    ]


def test_in_the_foreground_ctrl_c_stops_the_cluster(home: Path) -> None:
    command = [sys.executable, "-m", "klamm", "up", "--brokers", "1", "--port", "0", "--dir", str(home)]
    foreground = in_the_foreground(command)
    assert foreground.stdout is not None
    assert foreground.stdout.readline().startswith("bootstrap servers: 127.0.0.1:")
    foreground.send_signal(signal.SIGINT)
    _, said = foreground.communicate(timeout=LONG_SECONDS)
    assert foreground.returncode == 0 and "stopping" in said and "Traceback" not in said
    assert said.endswith(f"stopped; `klamm up --dir {home}` starts it again, with its data in {home}\n")
    assert [state for _, state in LocalCluster(home).states()] == ["dead"]
    assert "stopped cleanly" in LocalCluster(home).log_of(0).read_text()


def test_ctrl_c_twice_finds_somebody_however_quick_it_is(home: Path) -> None:
    """Between the word and the deed it left the cluster running."""
    quick = (
        "import os, signal, sys, klamm.cli.up as up\n"
        "say = up._say_if_heard\n"
        "up._say_if_heard = lambda text: (say(text), 'once more' in text and os.kill(os.getpid(), signal.SIGINT))\n"
        "from klamm.cli import main\n"
        "sys.exit(main(sys.argv[1:]))"
    )
    foreground = in_the_foreground(
        [sys.executable, "-c", quick, "up", "--brokers", "1", "--port", "0", "--dir", str(home)]
    )
    assert foreground.stdout is not None and foreground.stdout.readline()
    foreground.send_signal(signal.SIGINT)
    _, said = foreground.communicate(timeout=LONG_SECONDS)
    assert foreground.returncode == 0 and "killed: 0; they recover" in said and "Traceback" not in said
    assert [state for _, state in LocalCluster(home).states()] == ["dead"]


def test_ctrl_c_in_the_middle_of_an_import_is_one(home: Path) -> None:
    """Where a class is made Python called it a RuntimeError, and the cluster ran on."""
    hit = (
        "import builtins, os, signal, sys\n"
        "class Hit:\n"
        "    def __set_name__(self, *_): os.kill(os.getpid(), signal.SIGINT)\n"
        "imported = builtins.__import__\n"
        "def importing(name, *others, **named):\n"
        "    if name == 'klamm.cli.watching': type('Made', (), {'field': Hit()})\n"
        "    return imported(name, *others, **named)\n"
        "builtins.__import__ = importing\n"
        "from klamm.cli import main\n"
        "sys.exit(main(sys.argv[1:]))"
    )
    command = [sys.executable, "-c", hit, "up", "--brokers", "1", "--port", "0", "--dir", str(home)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=LONG_SECONDS, check=False)
    assert ended.returncode == 0 and "Traceback" not in ended.stderr and "stopped;" in ended.stderr
    assert [state for _, state in LocalCluster(home).states()] == ["dead"]


@pytest.mark.parametrize("what", ["", "{"])
def test_ctrl_c_where_somebody_has_removed_the_record_says_what_runs(home: Path, what: str) -> None:
    """It was a stack trace."""
    foreground = in_the_foreground(
        [sys.executable, "-m", "klamm", "up", "--brokers", "1", "--port", "0", "--plain", "--dir", str(home)]
    )
    assert foreground.stdout is not None and foreground.stdout.readline()
    record = (home / FILE).read_text()
    (home / FILE).unlink()
    if what:
        (home / FILE).write_text(what)
    # Who looks at the cluster at this moment has not found its record either, and has ended with the same words.
    with contextlib.suppress(ProcessLookupError):
        foreground.send_signal(signal.SIGINT)
    _, said = foreground.communicate(timeout=LONG_SECONDS)
    (home / FILE).write_text(record)
    assert foreground.returncode == 1 and "Traceback" not in said
    assert said.endswith("; what was started here runs on\n")
    assert [state for _, state in LocalCluster(home).states()] == ["running"]


def test_in_the_foreground_a_node_that_ends_and_returns_is_told_of(home: Path) -> None:
    command = [sys.executable, "-m", "klamm", "up", "--brokers", "1", "--port", "0", "--dir", str(home)]
    foreground = in_the_foreground(command)
    assert foreground.stdout is not None
    foreground.stdout.readline()
    klamm("down", "--dir", str(home))
    _, said = foreground.communicate(timeout=LONG_SECONDS)
    assert foreground.returncode == 0 and "broker 0 is stopped" in said
    assert said.endswith(f"the cluster was stopped; `klamm up --dir {home}` starts it again, with its data\n")
    assert "Ctrl-C stops the cluster." in said and "no node runs any more" not in said


def test_who_watches_in_lines_is_told_at_once_what_there_is(home: Path) -> None:
    at = ("--dir", str(home))
    klamm("up", "--brokers", "1", "--port", "0", "--detach", *at)
    watching = in_the_foreground([sys.executable, "-m", "klamm", "status", "--watch", "--plain", *at])
    assert watching.stdout is not None
    assert watching.stdout.readline().endswith(" 1 of 1 node running; 0 topics, 0 partitions, nothing in it yet\n")
    watching.send_signal(signal.SIGINT)
    assert watching.wait(LONG_SECONDS) == 0
    reads, writes = os.pipe()
    os.close(reads)
    command = [sys.executable, "-m", "klamm", "status", "--watch", "--plain", *at]
    unread = subprocess.run(command, stdout=writes, stderr=subprocess.PIPE, timeout=LONG_SECONDS, check=False)
    os.close(writes)
    assert (unread.returncode, unread.stderr) == (141, b"")


def test_lines_are_asked_for_and_come_where_results_come(home: Path) -> None:
    """After --plain on standard output; with --json there is JSON alone."""
    for how, expected in (("--plain", 1), ("--json", 0)):
        command = [sys.executable, "-m", "klamm", "up", how, "--brokers", "1", "--dir", str(home)]
        foreground = in_the_foreground([*command, *(() if (home / "cluster.json").exists() else ("--port", "0"))])
        assert foreground.stdout is not None and foreground.stdout.readline()
        klamm("down", "--dir", str(home))
        printed, said = foreground.communicate(timeout=LONG_SECONDS)
        assert foreground.returncode == 0
        assert [text.count("broker 0 is stopped") for text in (printed, said)] == [expected, 1 - expected]


def test_where_the_result_cannot_be_written_it_is_said_that_the_cluster_runs(home: Path) -> None:
    command = [sys.executable, "-m", "klamm", "up", "--brokers", "1", "--port", "0", "--dir", str(home)]
    for detach, states, said in (
        (["-d"], ["running"], f"`klamm down --dir {home}` stops it"),
        ([], ["dead"], "stopped;"),
    ):
        with Path("/dev/full").open("w") as full:
            ended = subprocess.run(
                [*command, *detach], stdout=full, stderr=subprocess.PIPE, text=True, timeout=LONG_SECONDS, check=False
            )
        assert ended.returncode == 1 and "cannot write: No space left on device" in ended.stderr
        assert said in ended.stderr and "Traceback" not in ended.stderr
        assert [state for _, state in LocalCluster(home).states()] == states
        klamm("down", "--dir", str(home))


@pytest.fixture
def stuck(home: Path) -> Path:
    """A cluster whose node never gets ready: what it reads first is a pipe into which nobody writes."""
    klamm("up", "--brokers", "1", "--port", "0", "--detach", "--dir", str(home))
    klamm("down", "--dir", str(home))
    identity = home / "node-0" / "meta.properties"
    identity.unlink()
    os.mkfifo(identity)
    return home


def test_interrupted_while_it_starts_nothing_is_left_running(stuck: Path) -> None:
    cluster = LocalCluster(stuck)
    command = [sys.executable, "-m", "klamm", "up", "--dir", str(stuck)]
    starting = in_the_foreground(command)
    wait_until(lambda: cluster.states()[0].state == "running", "a node was started")
    starting.send_signal(signal.SIGTERM)
    out, said = starting.communicate(timeout=LONG_SECONDS)
    # A shell calls both 130. Python ends itself by the signal if it came while it compiled a string (a dataclass).
    assert starting.returncode in (130, -signal.SIGINT)
    assert out == "" and "interrupted" in said and "Traceback" not in said
    assert cluster.states()[0].state == "dead"


def test_a_node_that_takes_too_long_is_named_and_ended(stuck: Path) -> None:
    ended = klamm("up", "--timeout", "0.3", "--dir", str(stuck))
    assert ended.code == 1 and "node 0 still does not take connections" in ended.err
    assert str(stuck / "node-0.log") in ended.err
    assert LocalCluster(stuck).states()[0].state == "dead"


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("up", "--brokers", "2", "--racks", "3"), 1, "3 racks cannot be filled with 2 brokers"),
        (("up", "--set", "num.partitions"), 2, "KEY=VALUE"),
        (("up", "--timeout", "0"), 2, "expected a number above 0"),
        (("up", "--brokers", "1", "--port", "70000"), 2, "expected a number from 0 to 65535"),
        (("up", "--brokers", "1", "--port", "0", "--set", "no.such.setting=1"), 1, "no.such.setting"),
        (("down",), 2, "there is no cluster"),
        (("status",), 2, "there is no cluster"),
        (("node", "kill", "0"), 2, "there is no cluster"),
    ],
)
def test_mistakes_are_said_in_words(home: Path, words: tuple[str, ...], code: int, said: str) -> None:
    ended = klamm(*words, "--dir", str(home))
    assert ended.code == code and said in ended.err and ended.out == ""


def test_a_port_that_is_taken_and_a_node_that_is_not_there(home: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        ended = klamm("up", "--brokers", "1", "--port", port, "--detach", "--dir", str(home))
        assert ended.code == 1 and port in ended.err and "--port" in ended.err
    assert klamm("up", "--brokers", "1", "--port", "0", "--detach", "--dir", str(home)).code == 0
    ended = klamm("node", "kill", "5", "--dir", str(home))
    assert ended.code == 2 and "no node 5" in ended.err
    other = klamm("up", "--brokers", "3", "--detach", "--dir", str(home))
    assert other.code == 1 and "runs already" in other.err


@needs_several_nodes
def test_six_brokers_in_two_racks(home: Path) -> None:
    """The front page's example: blocks per rack, a witness, a rack killed, and everybody back."""
    at = ("--dir", str(home))
    up = klamm("up", "--brokers", "6", "--racks", "2", "--port", "0", "--detach", "--json", *at)
    assert up.code == 0, up.err
    assert [(node["rack"], node["roles"]) for node in up.json["nodes"]] == [
        ("R1", ["broker", "controller"]),
        ("R1", ["broker"]),
        ("R1", ["broker"]),
        ("R2", ["broker", "controller"]),
        ("R2", ["broker"]),
        ("R2", ["broker"]),
        (None, ["controller"]),
    ]
    created = klamm("topic", "create", "invoice", "--partitions", "10", "--replication", "3", *at)
    assert created.code == 0, created.err
    placement = klamm("topic", "placement", "invoice", *at)
    assert [line.split("  ")[0] for line in placement.out.splitlines()][1:] == [
        "R1-B0",
        "R2-B3",
        "R1-B1",
        "R2-B4",
        "R1-B2",
        "R2-B5",
    ]
    assert klamm("node", "kill", "0", "1", "2", *at).code == 0
    hurt = klamm("status", "--json", *at).json
    assert hurt["reachable"] and hurt["controller"] in (3, 6)
    assert klamm("node", "start", "0", "1", "2", *at).code == 0
    wait_until(
        lambda: klamm("status", "--json", *at).json["under_replicated_partitions"] == [],
        "everything is in sync again",
        within_seconds=60,
    )
    assert klamm("down", *at).out == "7 nodes stopped\n"
    for number in range(7):
        said = LocalCluster(home).log_of(number).read_text()
        assert "Traceback" not in said, said


def test_who_waits_for_somebody_elses_start_and_gives_up_stops_nothing(home: Path) -> None:
    """Two people start the same cluster; the second waits for the first, loses patience, and leaves."""
    assert klamm("up", "--brokers", "1", "--port", "0", "--detach", "--dir", str(home)).code == 0
    command = [sys.executable, "-m", "klamm", "up", "--dir", str(home)]
    with locked(home):
        second = in_the_foreground(command)
        wait_until(lambda: _waits_for_a_lock(second.pid), "it waits")
        second.send_signal(signal.SIGINT)
        _, said = second.communicate(timeout=LONG_SECONDS)
    assert second.returncode == 130 and "Traceback" not in said
    assert [state for _, state in LocalCluster(home).states()] == ["running"]


def _waits_for_a_lock(pid: int) -> bool:
    return any("->" in line and str(pid) in line.split() for line in Path("/proc/locks").read_text().splitlines())
