"""`klamm topic list` and `klamm group list` where a broker stands still: it is named, and costs one wait."""

import json
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from klamm.cli import main
from klamm.cli.config_asking import INCREMENTAL_ALTER_CONFIGS
from klamm.cli.group_asking import LIST_OFFSETS, Cluster
from klamm.cli.group_views import LIST_GROUPS
from klamm.local import asking_several
from klamm.local.asking import DESCRIBE_CLUSTER, METADATA
from klamm.testing import EmbeddedCluster
from klamm.testing.shape import Shape
from klamm.wire.messages.describe_cluster import DescribeClusterBroker, DescribeClusterResponse
from klamm.wire.messages.incremental_alter_configs import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsResponse,
)
from klamm.wire.messages.list_groups import ListGroupsResponse
from klamm.wire.messages.list_offsets import ListOffsetsResponse
from klamm.wire.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from tests.cli.fake_broker import FakeBroker

SETTINGS = {
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "6",
    # Nobody takes over from the one that stands still: what is seen does not depend on when one looks.
    "broker.session.timeout.ms": "3600000",
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCluster]:
    cluster = EmbeddedCluster(Shape(settings=SETTINGS), tmp_path_factory.mktemp("still") / "cluster")
    try:
        yield cluster
    finally:
        cluster.close()


def test_who_stands_still_is_named_and_the_rest_is_shown(
    cluster: EmbeddedCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    servers = cluster.bootstrap_servers
    cluster.create_topic("invoice", partitions=3, replication=1)
    cluster.create_topic("__consumer_offsets", partitions=6, replication=1)
    first = servers.split(",")[0]
    cluster.pause(0)
    try:
        capsys.readouterr()
        assert main(["topic", "list", "--json", "--bootstrap", servers]) == 0
        said = capsys.readouterr()
        assert f"klamm: {first} does not answer yet; asking on" in said.err.splitlines()
        (invoice,) = [each for each in json.loads(said.out) if each["topic"] == "invoice"]
        assert invoice["records"] is None and invoice["partitions"] == 3
        assert main(["group", "list", "--bootstrap", servers]) == 1
        said = capsys.readouterr()
        assert f"klamm group list: the groups of broker 0 are missing: {first}: " in said.err
    finally:
        cluster.resume(0)


@pytest.fixture
def three() -> Iterator[list[FakeBroker]]:
    with ExitStack() as started:
        yield [started.enter_context(FakeBroker()) for _ in range(3)]


def test_all_are_asked_at_once(
    three: list[FakeBroker], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each answers when all have been asked: one after the other, nobody would."""
    monkeypatch.setattr(asking_several, "SOON_SECONDS", 60.0)
    monkeypatch.setattr("klamm.cli.topic_extents.ANSWER_SECONDS", 60.0)
    patient = {"timeout_seconds": 60.0, "moment_seconds": 60.0}
    monkeypatch.setattr("klamm.cli.group_asking.Cluster.of_brokers.__kwdefaults__", patient)
    monkeypatch.setattr("klamm.cli.group_views.MOMENT_SECONDS", 60.0)
    all_asked = threading.Barrier(3)
    numbered = list(enumerate(three))

    def together(response: object) -> Any:
        def answer(_: object) -> object:
            all_asked.wait(60)
            return response

        return answer

    topic = MetadataResponseTopic(
        name="t",
        partitions=[
            MetadataResponsePartition(0, number, leader_id=number, replica_nodes=[number], isr_nodes=[number])
            for number, _ in numbered
        ],
    )
    brokers = [MetadataResponseBroker(number, *each.address) for number, each in numbered]
    described = [DescribeClusterBroker(number, *each.address) for number, each in numbered]
    for each in three:
        each.answers = {
            METADATA: lambda request: MetadataResponse(brokers=brokers, topics=[topic]),
            DESCRIBE_CLUSTER: lambda request: DescribeClusterResponse(brokers=described),
            LIST_GROUPS: together(ListGroupsResponse()),
            LIST_OFFSETS: together(ListOffsetsResponse()),
        }
    where = ["--bootstrap", str(three[0].address)]
    assert main(["topic", "list", *where]) == 0 and main(["group", "list", *where]) == 0
    assert capsys.readouterr().err == ""
    assert [each.asked.count(LIST_OFFSETS) for each in three] == [2, 2, 2]
    assert [each.asked.count(LIST_GROUPS) for each in three] == [1, 1, 1]


def test_who_answers_is_silent_no_longer(three: list[FakeBroker]) -> None:
    """Else one hiccup would have its groups missing at the end of the same command."""
    broker = three[0]
    broker.answers = {METADATA: lambda request: MetadataResponse(brokers=[MetadataResponseBroker(0, *broker.address)])}
    cluster = Cluster([broker.address])
    cluster._note_silent(broker.address)
    cluster.brokers()
    assert not cluster._silent


def test_a_change_is_asked_of_one_broker_and_once(
    three: list[FakeBroker], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """However long it takes: a copy that comes late would undo what was set since."""
    monkeypatch.setattr(asking_several, "SOON_SECONDS", 0.01)
    done = threading.Event()

    def slowly(_: object) -> IncrementalAlterConfigsResponse:
        done.wait(0.2)
        return IncrementalAlterConfigsResponse(responses=[AlterConfigsResourceResponse(resource_name="t")])

    brokers = [MetadataResponseBroker(number, *each.address) for number, each in enumerate(three)]
    for each in three:
        each.answers = {
            METADATA: lambda request: MetadataResponse(brokers=brokers),
            INCREMENTAL_ALTER_CONFIGS: slowly,
        }
    where = ["--bootstrap", ",".join(str(each.address) for each in three)]
    assert main(["config", "set", "topic", "t", "retention.ms=60000", *where]) == 0
    assert sum(each.asked.count(INCREMENTAL_ALTER_CONFIGS) for each in three) == 1
