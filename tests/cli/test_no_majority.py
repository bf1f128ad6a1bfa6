"""A cluster here without a majority of its voters: changes are refused at once, and it is said what brings it back."""

import contextlib
import socket
import subprocess
from argparse import Namespace
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest

from klamm.cli import main
from klamm.cli.carried_out import carried_out
from klamm.cli.group_asking import FIND_COORDINATOR, Cluster, Refused, cluster_of
from klamm.cli.group_seen import committed_offsets
from klamm.cli.no_majority import gone, undecided
from klamm.errors import ErrorCode
from klamm.local.agreeing import Wish, new_cluster, with_ports
from klamm.local.asking import DESCRIBE_CLUSTER, METADATA
from klamm.local.ports import HeldPorts
from klamm.local.processes import process_of, started
from klamm.local.record import ClusterRecord, write_record
from klamm.pipeline.invoice import generating
from klamm.wire.messages.find_coordinator import Coordinator, FindCoordinatorResponse
from klamm.wire.messages.metadata import MetadataResponse, MetadataResponseTopic
from tests.cli.fake_broker import FakeBroker

SAID = "1 of 3 voters runs: no majority, so nothing can be decided; `klamm node start 1 2` mends it"

Running = Callable[[ClusterRecord, int], ClusterRecord]


@pytest.fixture
def record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ClusterRecord]:
    """Three brokers, all voters, none of which runs; their ports are nobody's."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "klamm-data").mkdir()
    with HeldPorts("127.0.0.1", [0] * 3) as held:
        made = with_ports(new_cluster(Wish(3, 1), Random(1)), held.ports)
    write_record(Path("klamm-data"), made)
    return made


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    """The first so many of them have a process."""
    with contextlib.ExitStack() as ended:

        def run(record: ClusterRecord, count: int) -> ClusterRecord:
            processes = {}
            for node_id in range(count):
                child = started(["sleep", "3600"], tmp_path / f"{node_id}.log")
                ended.callback(_end, child)
                processes[node_id] = process_of(child.pid)
            write_record(Path("klamm-data"), record.with_processes(processes))
            return record

        yield run


def _end(child: "subprocess.Popen[bytes]") -> None:
    child.kill()
    child.wait()


def test_two_of_three_are_dead(record: ClusterRecord, running: Running) -> None:
    servers = running(record, 1).bootstrap_servers
    assert undecided(None, servers) == SAID
    assert undecided(None, "127.0.0.1:1") is None, "somebody else's"


@pytest.mark.parametrize("count", [0, 2, 3])
def test_a_majority_or_nobody_at_all(record: ClusterRecord, running: Running, count: int) -> None:
    assert undecided(None, running(record, count).bootstrap_servers) is None


def test_one_is_dead_and_one_is_paused(record: ClusterRecord, running: Running) -> None:
    running(record, 2)
    assert main(["node", "pause", "1"]) == 0
    assert undecided(None, record.bootstrap_servers) == (
        "1 of 3 voters runs: no majority, so nothing can be decided; "
        "`klamm node start 2` and `klamm node resume 1` mend it"
    )


def test_the_only_one_with_a_vote_is_paused(tmp_path: Path, running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("klamm-data").mkdir()
    alone = running(new_cluster(Wish(1, 1), Random(1)), 1)
    assert main(["node", "pause", "0"]) == 0
    assert undecided(None, alone.bootstrap_servers) == (
        "node 0 alone has a vote and does not run, so nothing can be decided; `klamm node resume 0` mends it"
    )


def test_who_was_started_where_we_do_not_see_it_is_not_dead(record: ClusterRecord, running: Running) -> None:
    servers = running(record, 1).bootstrap_servers
    assert gone(None, servers) == [1, 2]
    with socket.create_server(("127.0.0.1", record.nodes[2].port)):
        assert undecided(None, servers) is None
        assert gone(None, servers) == [], "who may change something is not told that brokers are down"


@pytest.mark.parametrize("is_named", [False, True], ids=["by its directory", "by its brokers"])
def test_it_is_the_same_cluster_however_it_is_asked_for(
    record: ClusterRecord, running: Running, is_named: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    servers = running(record, 1).bootstrap_servers
    told: list[int] = []

    def noted(broker: object, topics: object, gone: list[int]) -> None:
        told.extend(gone)

    monkeypatch.setattr("klamm.cli.group_asking.placement_seen_by", noted)
    with FakeBroker(record.nodes[0].port):
        asked = cluster_of(Namespace(dir=None, bootstrap=servers if is_named else None))
        asked.seen()
    assert told == [1, 2] and asked.undecided() == SAID


@pytest.mark.parametrize(
    "words",
    [
        ("topic", "create", "x"),
        ("topic", "delete", "x"),
        ("topic", "delete", "x", "--force"),
        ("topic", "alter", "x", "--partitions", "3"),
        ("topic", "elect"),
        ("topic", "move", "x", "--to", "0"),
        ("config", "set", "topic", "x", "retention.ms=5"),
        ("config", "unset", "topic", "x", "retention.ms"),
        ("bench",),
    ],
    ids=" ".join,
)
def test_a_change_is_refused_before_anybody_is_asked(
    record: ClusterRecord, running: Running, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    """It took thirty seconds, and then it was "Local: Timed out"."""
    running(record, 1)
    with FakeBroker(record.nodes[0].port) as broker:
        assert main(words) == 1
        assert broker.asked == []
    (said,) = capsys.readouterr().err.splitlines()
    assert said.endswith(f": {SAID}")


def test_it_may_be_why_something_else_failed(
    record: ClusterRecord, running: Running, capsys: pytest.CaptureFixture[str]
) -> None:
    running(record, 1)
    with FakeBroker(record.nodes[0].port) as broker:
        broker.answers = {DESCRIBE_CLUSTER: lambda _: None, METADATA: lambda _: None}
        assert main(["topic", "list"]) == 1
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 2 and said[1] == f"klamm topic list: {SAID}"


@pytest.mark.parametrize(
    ("problem", "words"),
    [(TimeoutError(), "no answer in time"), (ConnectionResetError(), "ConnectionResetError")],
    ids=["waited in vain", "cut off"],
)
def test_it_may_be_why_there_are_no_words(
    record: ClusterRecord, running: Running, problem: OSError, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """It said "klamm pipeline generate: ", and nothing more."""
    running(record, 1)

    def action() -> int:
        raise problem

    assert carried_out("bench", Namespace(dir=None, bootstrap=None), action) == 1
    assert capsys.readouterr().err.splitlines() == [f"klamm bench: {words}", f"klamm bench: {SAID}"]


@pytest.mark.parametrize("is_there", [False, True])
def test_invoices_go_to_a_topic_that_is_there(
    record: ClusterRecord,
    running: Running,
    is_there: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A missing one can only be made by a majority: it was waited for, and in the end there was an empty sentence."""
    monkeypatch.setattr(generating, "run", lambda *_: 0)
    running(record, 1)
    topics = [MetadataResponseTopic(0, "invoice")] if is_there else []
    with FakeBroker(record.nodes[0].port) as broker:
        broker.answers = {METADATA: lambda _: MetadataResponse(topics=topics)}
        assert main(["pipeline", "generate", "--count", "10"]) == (0 if is_there else 1)
    said = capsys.readouterr().err.splitlines()
    assert said == ([] if is_there else [f"klamm pipeline generate: {SAID}"])


def test_a_coordinator_is_not_waited_for_where_nobody_can_choose_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("klamm.cli.group_asking.LEADER_SECONDS", 0.1)
    nobody = Coordinator("g", -1, "", -1, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    with FakeBroker() as broker:
        broker.answers = {
            METADATA: lambda _: MetadataResponse(),
            FIND_COORDINATOR: lambda _: FindCoordinatorResponse(coordinators=[nobody]),
        }
        with pytest.raises(Refused, match="has no coordinator that answers, after 0 s"):
            committed_offsets(Cluster([broker.address], undecided=lambda: SAID), ["g"])
