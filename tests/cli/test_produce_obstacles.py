"""What is in the way of records that nobody acknowledges is said while it lasts, and again when they are given up."""

import gc
import threading
from collections.abc import Iterator
from pathlib import Path
from queue import SimpleQueue

import pytest

import klamm
from klamm.cli import main, produce_obstacles
from klamm.cli.config_asking import DESCRIBE_CONFIGS, TOPIC
from klamm.cli.group_asking import Cluster
from klamm.cli.produce_obstacles import Silence, obstacle_to
from klamm.errors import ErrorCode
from klamm.local.asking import METADATA, Address
from klamm.local.storage_seen import DESCRIBE_LOG_DIRS
from klamm.wire.messages.describe_configs import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from klamm.wire.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from klamm.wire.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from tests.cli.fake_broker import FakeBroker
from tests.cli.taking_broker import TakingBroker
from tests.harness.waiting import wait_until

NOBODY = Address("127.0.0.1", 1)


@pytest.fixture
def broker() -> Iterator[FakeBroker]:
    with FakeBroker() as started:
        yield started


def test_too_few_replicas_in_sync_are_named_while_it_is_tried_and_in_the_end(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(produce_obstacles, "SILENT_SECONDS", 0.3)
    with klamm.Cluster(brokers=3) as cluster:
        where = ("--bootstrap", cluster.bootstrap_servers)
        all_three = ("--partitions", "2", "--replication", "3", "--config", "min.insync.replicas=3")
        assert main(["topic", "create", "invoice", *all_three, *where]) == 0
        cluster.stop(2)
        capfd.readouterr()
        assert main(["produce", "invoice", "--value", "x", "--partition", "1", "--timeout", "2", *where]) == 1
        first, second, account = capfd.readouterr().err.splitlines()
        why = "invoice-1 has 2 of 3 required replicas in sync"
        assert first == f"klamm produce: no acknowledgement yet: {why}; trying for 2 s"
        assert second.startswith("klamm produce: 1 record given up: ") and second.endswith(f"({why})")
        assert account.startswith("1 sent to invoice, 0 acknowledged, 0 failed, 1 not acknowledged (may be there) in ")
        assert main(["produce", "invoice", "--value", "x", "--acks", "1", *where]) == 0


def led_by(address: Address, *leaders: int) -> MetadataResponse:
    partitions = [
        MetadataResponsePartition(0, index, leader, replica_nodes=[7, 8], isr_nodes=[7])
        for index, leader in enumerate(leaders)
    ]
    topic = MetadataResponseTopic(0, "invoice", partitions=partitions)
    return MetadataResponse(
        brokers=[MetadataResponseBroker(7, *address), MetadataResponseBroker(8, *NOBODY)], topics=[topic]
    )


def test_partitions_without_a_leader_or_with_one_that_is_silent(broker: FakeBroker) -> None:
    def metadata(_: MetadataRequest) -> MetadataResponse:
        return led_by(broker.address, -1, 7, 8)

    broker.answers = {METADATA: metadata, DESCRIBE_LOG_DIRS: lambda _: disk(ErrorCode.NONE)}
    told = obstacle_to(Cluster([broker.address]), "invoice", None, needs_all=False)
    assert told == "invoice-0 has no leader; broker 8, which leads invoice-2, does not answer"
    assert obstacle_to(Cluster([broker.address]), "invoice", [1], needs_all=False) is None


def disk(code: int, usable_bytes: int = 1 << 30, lag: int = 0) -> DescribeLogDirsResponse:
    partition = DescribeLogDirsPartition(0, 10, lag)
    directory = DescribeLogDirsResult(
        code, "d", [DescribeLogDirsTopic("invoice", [partition])], 40_000_000, usable_bytes
    )
    return DescribeLogDirsResponse(results=[directory])


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (disk(ErrorCode.NONE), None),
        (disk(ErrorCode.KAFKA_STORAGE_ERROR, 5_000), "has a full disk, 5.0 kB of 40.0 MB free"),
        (disk(ErrorCode.KAFKA_STORAGE_ERROR), "has a disk that takes no writes"),
        (disk(ErrorCode.NONE, lag=-1), "has failed logs: invoice-0"),
    ],
)
def test_a_disk_that_takes_nothing(broker: FakeBroker, answer: DescribeLogDirsResponse, words: str | None) -> None:
    """librdkafka tries again and again, and says in the end that it took too long."""
    broker.answers = {METADATA: lambda _: led_by(broker.address, 7), DESCRIBE_LOG_DIRS: lambda _: answer}
    told = obstacle_to(Cluster([broker.address]), "invoice", None, needs_all=False)
    assert told == (words and f"broker 7, which leads invoice-0, {words}")


def test_a_follower_that_counts_as_in_sync_and_is_gone(broker: FakeBroker) -> None:
    """Without a quorum nobody shortens the list: the metadata look well, and nothing is acknowledged."""
    told = led_by(broker.address, 7)
    told.topics[0].partitions[0].isr_nodes = [7, 8]
    minimum = DescribeConfigsResourceResult("min.insync.replicas", "1", False, config_source=5)
    result = DescribeConfigsResult(0, None, TOPIC, "invoice", [minimum])
    broker.answers = {
        METADATA: lambda _: told,
        DESCRIBE_CONFIGS: lambda _: DescribeConfigsResponse(results=[result]),
        DESCRIBE_LOG_DIRS: lambda _: disk(ErrorCode.NONE),
    }
    cluster = Cluster([broker.address])
    waits = "invoice-0 waits for broker 8, which does not answer"
    assert obstacle_to(cluster, "invoice", None, needs_all=True) == waits
    assert obstacle_to(cluster, "invoice", None, needs_all=False) is None


def test_a_few_are_named_and_the_others_counted(broker: FakeBroker) -> None:
    broker.answers = {METADATA: lambda _: led_by(broker.address, *[-1] * 5)}
    told = obstacle_to(Cluster([broker.address]), "invoice", None, needs_all=False)
    assert told == "invoice-0 has no leader; invoice-1 has no leader; invoice-2 has no leader; and 2 more"


def test_nobody_answers() -> None:
    told = obstacle_to(Cluster([NOBODY]), "invoice", None, needs_all=True)
    assert told is not None and told.startswith("no broker answers: 127.0.0.1:1: ")


class Clock:
    """Of the module, in the hands of a test."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(produce_obstacles, "time", made)
    # The answers are there at once, if the machine has time for a thread.
    monkeypatch.setattr(produce_obstacles, "GLANCE_SECONDS", 20.0)
    return made


def test_whoever_thinks_before_typing_is_not_silence(clock: Clock) -> None:
    silence = Silence(lambda: "a wall", lambda _: None)
    clock.now = 60.0
    assert not silence.maybe_ask(acknowledged=0, waiting=1), "it has just been sent"
    clock.now = 64.0
    assert silence.maybe_ask(acknowledged=0, waiting=1)


def test_another_silence_has_another_cause(clock: Clock) -> None:
    """Only the first was said, and what was given up in the last was blamed on it."""
    said, walls = list[str](), iter(["a wall", "a ditch"])
    silence = Silence(lambda: next(walls), said.append)
    for acknowledged in [0] * 6 + [50, 60] + [60] * 10:
        silence.maybe_ask(acknowledged, waiting=1)
        clock.now += 1.0
    assert said == ["a wall", "a ditch"] and silence.cause() == "a ditch"


def test_one_partition_is_silent_beside_others(clock: Clock) -> None:
    """It was not asked about, because others acknowledged."""
    said, walls = list[str](), iter(["a wall", "a ditch"])
    silence = Silence(lambda: next(walls), said.append)
    for second in range(20):
        clock.now = float(second)
        silence.maybe_ask(acknowledged=second, waiting=1, silent_seconds=second)
    assert said == ["a wall"]
    silence.maybe_ask(acknowledged=30, waiting=1, silent_seconds=20.0)
    silence.maybe_ask(acknowledged=30, waiting=0, silent_seconds=0.0)
    assert silence.obstacle is None, "though nothing more was acknowledged when it was heard that this one goes on"
    for second in range(20, 40):
        clock.now = float(second)
        silence.maybe_ask(acknowledged=30, waiting=1)
    assert said == ["a wall", "a ditch"]


def test_what_fails_ends_no_silence(clock: Clock) -> None:
    silence = Silence(lambda: "a wall", lambda _: None)
    for second, waiting in enumerate([1, 1, 1, 1, 1, 0, 0, 1]):
        clock.now = float(second)
        silence.maybe_ask(acknowledged=0, waiting=waiting)
    assert silence.obstacle == "a wall"


def test_whoever_asks_a_cluster_that_is_slow_keeps_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """It took ten seconds, in the middle of four that were to be tried."""
    monkeypatch.setattr(produce_obstacles, "SILENT_SECONDS", 0.0)
    monkeypatch.setattr(produce_obstacles, "CAUSE_SECONDS", 0.1)
    said, asked, is_found = list[str](), list[bool](), threading.Event()

    def ask() -> str | None:
        asked.append(is_found.wait(20))
        return "a wall"

    silence = Silence(ask, said.append)
    for _ in range(3):
        silence.maybe_ask(acknowledged=0, waiting=1)
    assert silence.cause() is None and silence.obstacle is None
    assert asked == [], "nobody has waited for it"
    is_found.set()
    monkeypatch.setattr(produce_obstacles, "CAUSE_SECONDS", 20.0)
    assert silence.cause() == "a wall" and asked == [True], "it was asked once"


def test_an_answer_that_comes_late_is_said_when_it_comes(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(produce_obstacles, "GLANCE_SECONDS", 0.01)
    said, answers = list[str](), SimpleQueue[str]()
    silence = Silence(lambda: answers.get(timeout=20), said.append)
    silence.maybe_ask(acknowledged=0, waiting=1)
    clock.now = 4.0
    assert silence.maybe_ask(acknowledged=0, waiting=1) and said == []
    answers.put("a wall")
    wait_until(lambda: silence.maybe_ask(acknowledged=0, waiting=1) and said == ["a wall"], "it is said")


def test_an_answer_that_comes_after_the_silence_is_not_said_of_another(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(produce_obstacles, "GLANCE_SECONDS", 0.01)
    said, answers = list[str](), SimpleQueue[str]()
    silence = Silence(lambda: answers.get(timeout=20), said.append)
    silence.maybe_ask(acknowledged=0, waiting=1)
    clock.now = 4.0
    silence.maybe_ask(acknowledged=0, waiting=1)
    silence.maybe_ask(acknowledged=1, waiting=1)
    answers.put("a wall")
    answers.put("a ditch")

    def is_said() -> bool:
        clock.now += 1.0
        return silence.maybe_ask(acknowledged=1, waiting=1) and said != []

    wait_until(is_said, "it is said")
    assert said == ["a ditch"]


def test_it_is_asked_only_in_silence_and_said_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(produce_obstacles, "GLANCE_SECONDS", 20.0)
    said: list[str] = []
    silence = Silence(lambda: "a wall", said.append)
    assert not silence.maybe_ask(acknowledged=0, waiting=0)
    monkeypatch.setattr(produce_obstacles, "SILENT_SECONDS", 3_600.0)
    assert not silence.maybe_ask(acknowledged=0, waiting=1)
    monkeypatch.setattr(produce_obstacles, "SILENT_SECONDS", 0.0)
    assert silence.maybe_ask(acknowledged=0, waiting=1)
    assert not silence.maybe_ask(acknowledged=0, waiting=1)
    assert said == ["a wall"] and silence.cause() == "a wall"


def test_a_partition_that_nobody_leads_is_named_while_others_acknowledge(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(produce_obstacles, "SILENT_SECONDS", 0.5)
    (tmp_path / "input").write_bytes(b"x\n" * 100_000)
    with TakingBroker("t", leads=[1, 2], leaderless=[0]) as led:
        where = ("--file", str(tmp_path / "input"), "--rate", "100", "--bootstrap", led.servers)
        assert main(["produce", "t", "--partition", "any", "--timeout", "3", *where]) == 1
        gc.collect()
    first, *_ = capfd.readouterr().err.splitlines()
    assert first == "klamm produce: no acknowledgement yet: t-0 has no leader; trying for 3 s"
