"""Too few voters run: what is told of a cluster that can decide nothing, whose brokers believe that all is well."""

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from klamm.local.agreeing import Wish
from klamm.local.cluster import LocalCluster
from klamm.local.record import write_record
from tests.cli.running import LONG_SECONDS, Ended, klamm
from tests.harness.topics import create_topic
from tests.harness.waiting import wait_until


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LocalCluster]:
    cluster = LocalCluster(tmp_path / "cluster")
    record = cluster.up(Wish(3, 1, 0, {"default.replication.factor": "3"}))
    create_topic(record.bootstrap_servers, "invoice", partitions=3)
    yield cluster
    cluster.kill(range(3))
    cluster.states()


def watched(cluster: LocalCluster, how: str, into: Path) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "klamm", "status", "--watch", how, "--dir", str(cluster.directory)]
    with into.open("wb") as output:
        return subprocess.Popen(command, stdout=output)


def test_it_is_said_at_once_and_what_mends_it(cluster: LocalCluster) -> None:
    """One is killed and one stands still: neither leads, neither follows, whatever the third one heard last."""
    at = ("--dir", str(cluster.directory))
    cluster.kill([1])
    cluster.pause([2])
    # Whoever waited for an answer here would wait for minutes, on any machine.
    patient = "import klamm.cli.status as s; s.ANSWER_SECONDS = s.HEARD_SECONDS = 200.0; from klamm.cli import main"
    command = [sys.executable, "-c", f"import sys; {patient}; sys.exit(main({['status', *at]!r}))"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    told = Ended(ended.returncode, ended.stdout, ended.stderr)
    assert told.code == 1 and "Traceback" not in told.err, told
    assert "1 of 3 voters runs: no majority, so nothing can be decided" in told.out
    start, resume = (f"`klamm node {what} --dir {cluster.directory}`" for what in ("start 1", "resume 2"))
    assert f"{start} and {resume} mend it\nwhat broker 0 heard last" in told.out
    lines = {line[:18].strip(): line[18:] for line in told.out.splitlines()}
    assert lines["controller"] == "none" and lines["offline"] == "2: invoice-1 and invoice-2"
    assert lines["under-replicated"].startswith("3: ")
    document = klamm("status", "--json", *at).json
    assert document["has_majority"] is False and document["controller"] is None and document["voters"] == [0, 1, 2]
    assert [each["partition"] for each in document["offline_partitions"]] == [1, 2]
    assert len(document["under_replicated_partitions"]) == 3
    placed = klamm("topic", "placement", "invoice", *at).out
    assert "R1-B1 (down)" in placed and "(P1!)" in placed and "third follower of" not in placed
    assert "no leader: P1 P2 (in parentheses: their first replica)" in placed
    why = f"\n1 of 3 voters runs: no majority, so nothing can be decided; {start} and {resume} mend it\n"
    assert why in placed and why in klamm("topic", "describe", "invoice", *at).out


def test_who_was_started_where_we_do_not_see_it_counts_everywhere(cluster: LocalCluster) -> None:
    """Changes were allowed, and topics and `status` said that too few voters ran."""
    at, record = ("--dir", str(cluster.directory)), cluster.record()
    unseen = tuple(node if node.node_id == 0 else replace(node, process=None) for node in record.nodes)
    write_record(cluster.directory, replace(record, nodes=unseen))
    try:
        assert klamm("topic", "create", "more", *at).code == 0
        placed, told = klamm("topic", "placement", "invoice", *at).out, klamm("status", *at)
        document = klamm("status", "--json", *at).json
    finally:
        write_record(cluster.directory, record)
    assert "(down)" not in placed and "voters" not in placed and "no leader" not in placed
    assert "\nnodes 1, 2: somebody listens at their ports, so they count as running\n" in told.out
    assert told.code == 0 and "voters" not in told.out and "offline           0" in told.out
    assert document["has_majority"] and document["offline_partitions"] == []


def test_who_was_started_alone_has_heard_nothing_and_it_is_said_what_it_lacks(cluster: LocalCluster) -> None:
    """It is waited for only as long as who has heard something may need: more would be in vain."""
    cluster.kill(range(3))
    cluster.start([1])
    at = ("--dir", str(cluster.directory))
    impatient = "import klamm.cli.status as s; s.ANSWER_SECONDS = 200.0; from klamm.cli import main"
    command = [sys.executable, "-c", f"import sys; {impatient}; sys.exit(main({['status', *at]!r}))"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 1 and ended.stderr == "", ended
    assert ended.stdout.splitlines()[-2:] == [
        "1 of 3 voters runs: no majority, so nothing can be decided;",
        f"`klamm node start 0 2 --dir {cluster.directory}` mends it",
    ]


def test_the_word_of_who_does_not_run_is_no_news(cluster: LocalCluster, tmp_path: Path) -> None:
    """Two die and one comes back. Nobody who is dead begins to lead, leaves the ISR or returns to it."""
    lines, documents = tmp_path / "lines", tmp_path / "documents"
    watching = [watched(cluster, "--plain", lines), watched(cluster, "--json", documents)]
    try:
        wait_until(lambda: lines.stat().st_size and documents.stat().st_size, "they watch", within_seconds=30)
        log = cluster.log_of(0)
        said_before = len(log.read_text())
        cluster.kill([1, 2])
        # One partition or two: what broker 1 led may be led by another before broker 2 dies as well.
        wait_until(lambda: " no leader" in lines.read_text(), "the loss is told", within_seconds=30)
        # The controller that was gives up after some seconds, and forgets who it knew to be dead.
        wait_until(
            lambda: "asking whether this node may lead" in log.read_text()[said_before:],
            "nobody leads",
            within_seconds=30,
        )
        cluster.start([1])
        wait_until(lambda: "has its majority again" in lines.read_text(), "they can decide", within_seconds=30)
        wait_until(lambda: "leads the quorum now" in _since_majority(lines), "somebody decides", within_seconds=30)
        wait_until(lambda: _latest(documents)["controller"] is not None, "and it is told", within_seconds=30)
        told = [line.partition(" ")[2] for line in _lines(lines)]
        # Who dies ends nothing: they watch until all have been stopped.
        cluster.start([2])
        cluster.down()
        assert [each.wait(LONG_SECONDS) for each in watching] == [1, 1]
    finally:
        for each in watching:
            each.kill()
    dead = told.index("broker 2 is dead")
    back = told.index("2 of 3 voters run: the quorum has its majority again")
    assert "1 of 3 voters runs: no majority, so nothing can be decided" in told[dead:back]
    assert not [line for line in told[dead:back] if "leads" in line or "ISR" in line or "in sync" in line], told
    assert not [line for line in told[dead + 1 :] if line.startswith("broker 2 leads") or "2 is back" in line], told
    majorities = [json.loads(line)["has_majority"] for line in documents.read_text().splitlines()]
    assert majorities[0] and not all(majorities)
    assert all(before != after for before, after in zip(_lines(documents), _lines(documents)[1:], strict=False))


def _since_majority(lines: Path) -> str:
    return lines.read_text().partition("has its majority again")[2]


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines()


def _latest(documents: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads(_lines(documents)[-1])
    return found
