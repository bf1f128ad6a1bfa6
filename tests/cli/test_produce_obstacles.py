"""What is in the way of records that nobody acknowledges is said while it lasts, and again when they are given up."""

from collections.abc import Iterator
from types import SimpleNamespace

import pytest

import klamm
from klamm.cli import main, produce_obstacles
from klamm.cli.config_asking import DESCRIBE_CONFIGS, TOPIC
from klamm.cli.group_asking import Cluster
from klamm.cli.produce_obstacles import Silence, obstacle_to
from klamm.local.asking import METADATA, Address
from klamm.wire.messages.describe_configs import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from klamm.wire.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from tests.cli.fake_broker import FakeBroker

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

    broker.answers = {METADATA: metadata}
    told = obstacle_to(Cluster([broker.address]), "invoice", None, needs_all=False)
    assert told == "invoice-0 has no leader; broker 8, which leads invoice-2, does not answer"
    assert obstacle_to(Cluster([broker.address]), "invoice", [1], needs_all=False) is None


def test_a_follower_that_counts_as_in_sync_and_is_gone(broker: FakeBroker) -> None:
    """Without a quorum nobody shortens the list: the metadata look well, and nothing is acknowledged."""
    told = led_by(broker.address, 7)
    told.topics[0].partitions[0].isr_nodes = [7, 8]
    minimum = DescribeConfigsResourceResult("min.insync.replicas", "1", False, config_source=5)
    result = DescribeConfigsResult(0, None, TOPIC, "invoice", [minimum])
    broker.answers = {METADATA: lambda _: told, DESCRIBE_CONFIGS: lambda _: DescribeConfigsResponse(results=[result])}
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


def test_whoever_thinks_before_typing_is_not_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = iter([0.0, 60.0, 60.1, 64.0, 64.0, 64.0])
    monkeypatch.setattr(produce_obstacles, "time", SimpleNamespace(monotonic=lambda: next(seconds)))
    silence = Silence(lambda: "a wall", lambda _: None)
    assert not silence.maybe_ask(acknowledged=0, waiting=1), "it has just been sent"
    assert silence.maybe_ask(acknowledged=0, waiting=1)


def test_it_is_asked_only_in_silence_and_said_once(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    silence = Silence(lambda: "a wall", said.append)
    assert not silence.maybe_ask(acknowledged=0, waiting=0)
    monkeypatch.setattr(produce_obstacles, "SILENT_SECONDS", 3_600.0)
    assert not silence.maybe_ask(acknowledged=0, waiting=1)
    monkeypatch.setattr(produce_obstacles, "SILENT_SECONDS", 0.0)
    assert silence.maybe_ask(acknowledged=0, waiting=1)
    assert not silence.maybe_ask(acknowledged=0, waiting=1)
    assert said == ["a wall"] and silence.cause() == "a wall"
