"""`klamm topic move` and `moves`, on a cluster in this process; and how a topic is spread, on paper."""

import json
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from klamm.cli import main, topic_moves
from klamm.cli.group_asking import Cluster
from klamm.cli.options import Misused, addresses_of
from klamm.cli.topic_moves import ALTER_PARTITION_REASSIGNMENTS, LIST_PARTITION_REASSIGNMENTS, UnderWay
from klamm.cli.topic_targets import spread
from klamm.errors import ErrorCode
from klamm.local import asking_several
from klamm.local.asking import DESCRIBE_CLUSTER, METADATA
from klamm.local.view import BrokerSeen, ClusterSeen, PartitionSeen
from klamm.testing import EmbeddedCluster
from klamm.testing.shape import Shape
from klamm.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from klamm.wire.messages.describe_cluster import DescribeClusterBroker, DescribeClusterResponse
from klamm.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from klamm.wire.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from tests.cli.fake_broker import FakeBroker
from tests.cli.grouping import produce
from tests.harness.waiting import wait_until

Klamm = Callable[..., tuple[int, str, str]]
SETTINGS = {
    # One that stands still takes part all the same, so that a move to it lasts as long as the test wants.
    "broker.session.timeout.ms": "3600000",
    "replica.lag.time.max.ms": "3600000",
}
STILL = 3
"""A broker without a vote: the quorum does not miss it."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCluster]:
    cluster = EmbeddedCluster(Shape(brokers=4, settings=SETTINGS), tmp_path_factory.mktemp("move") / "cluster")
    try:
        yield cluster
    finally:
        cluster.close()


@pytest.fixture
def topic_command(
    cluster: EmbeddedCluster, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Klamm:
    # Where the machine has much to do, a broker that takes a second is no news.
    monkeypatch.setattr(asking_several, "SOON_SECONDS", 60.0)

    def call(*words: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = main(["topic", *words, "--bootstrap", cluster.bootstrap_servers])
        said = capsys.readouterr()
        return code, said.out, said.err

    return call


def replicas(topic_command: Klamm, topic: str) -> list[list[int]]:
    (described,) = json.loads(topic_command("describe", topic, "--json")[1])
    return [each["replicas"] for each in described["partitions"]]


def test_a_topic_moves_with_its_records(cluster: EmbeddedCluster, topic_command: Klamm, topic: str) -> None:
    cluster.create_topic(topic, partitions=4, replication=2)
    produce(cluster.bootstrap_servers, topic, {number: [1_000] * 5 for number in range(4)})
    before = replicas(topic_command, topic)
    assert any(3 in each for each in before)
    code, out, err = topic_command("move", topic, "--to", "0,1,2", "--json")
    assert (code, err) == (0, "")
    told = json.loads(out)["partitions"]
    after = replicas(topic_command, topic)
    assert [each["before"] for each in told] == before and [each["after"] for each in told] == after
    assert [each["state"] for each in told] == [
        "stays" if was == is_now else "moved" for was, is_now in zip(before, after, strict=True)
    ]
    assert all(len(set(each)) == 2 and set(each) <= {0, 1, 2} for each in after)
    assert {each["topic"]: each["records"] for each in json.loads(topic_command("list", "--json")[1])}[topic] == 20
    assert topic_command("move", topic, "--to", "0,1,2") == (0, f"topic {topic}: nothing to move\n", "")


def test_a_partition_moves_to_these_replicas(cluster: EmbeddedCluster, topic_command: Klamm, topic: str) -> None:
    cluster.create_topic(topic, partitions=2, replication=2)
    first, second = replicas(topic_command, topic)
    wanted = [each for each in range(4) if each not in second]
    code, out, _ = topic_command("move", topic, "--partition", "1", "--replicas", ",".join(map(str, wanted)))
    assert code == 0 and out.splitlines() == [
        f"topic {topic}: 1 of 1 partition moved",
        "partition  before  after",
        f"        1  {second[0]}, {second[1]}    {wanted[0]}, {wanted[1]}",
    ]
    assert replicas(topic_command, topic) == [first, wanted]
    assert topic_command("move", topic, "--to", "0,1,2,3", "--replication", "3")[0] == 0
    assert [len(each) for each in replicas(topic_command, topic)] == [3, 3]


@pytest.fixture
def stuck(cluster: EmbeddedCluster, topic_command: Klamm, topic: str) -> Iterator[tuple[str, list[int]]]:
    """A topic of one partition that is on its way to a broker that stands still, and where it was."""
    cluster.create_topic(topic, partitions=1, replication=2)
    topic_command("move", topic, "--to", "0,1,2")
    (home,) = replicas(topic_command, topic)
    cluster.pause(STILL)
    try:
        code, out, _ = topic_command("move", topic, "--replicas", f"{STILL},{home[0]}", "--no-wait")
        assert code == 0 and out.splitlines() == [
            f"topic {topic}: 1 of 1 partition moving; `klamm topic moves` shows what is left",
            "partition  before  after",
            f"        0  {home[0]}, {home[1]}    {STILL}, {home[0]}",
        ]
        yield topic, home
    finally:
        cluster.resume(STILL)
        wait_until(lambda: topic_command("moves")[1] == "nothing moves\n", "all moves are done", within_seconds=120)


def test_what_moves_is_listed_and_can_be_taken_back(stuck: tuple[str, list[int]], topic_command: Klamm) -> None:
    topic, home = stuck
    code, out, _ = topic_command("moves")
    assert code == 0 and out.splitlines()[0].split() == ["topic", "partition", "from", "to", "copying"]
    expected = {"topic": topic, "partition": 0, "from": home, "to": [STILL, home[0]], "copying": [STILL]}
    assert json.loads(topic_command("moves", topic, "--json")[1]) == [expected]
    code, out, _ = topic_command("move", topic, "--cancel")
    assert code == 0 and out.splitlines() == [
        f"topic {topic}: 1 of 1 partition taken back",
        "partition  was moving to  stays on",
        f"        0  {STILL}, {home[0]}           {home[0]}, {home[1]}",
    ]
    assert replicas(topic_command, topic) == [home]
    assert topic_command("moves", topic) == (0, "nothing moves\n", "")
    assert topic_command("move", topic, "--cancel") == (0, f"topic {topic}: nothing of it moves\n", "")


def test_another_wish_begins_where_it_was(stuck: tuple[str, list[int]], topic_command: Klamm) -> None:
    topic, home = stuck
    (other,) = {0, 1, 2} - set(home)
    code, out, _ = topic_command("move", topic, "--replicas", f"{other},{home[1]}", "--json")
    expected = {"partition": 0, "before": home, "after": [other, home[1]], "state": "moved", "why": None}
    assert (code, json.loads(out)["partitions"]) == (0, [expected])


def test_who_does_not_want_to_wait_any_longer_is_told_how_it_goes_on(
    stuck: tuple[str, list[int]], topic_command: Klamm, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ctrl_c(_: float) -> None:
        raise KeyboardInterrupt

    topic, home = stuck
    with monkeypatch.context() as patched:
        patched.setattr(topic_moves, "time", SimpleNamespace(monotonic=time.monotonic, sleep=ctrl_c))
        code, out, err = topic_command("move", topic, "--replicas", f"{home[1]},{STILL}")
    assert (code, out) == (130, "")
    assert f"the move goes on: `klamm topic moves` shows it, `klamm topic move {topic} --cancel` takes it back" in err
    (listed,) = json.loads(topic_command("moves", "--json")[1])
    assert listed["to"] == [home[1], STILL]


def test_who_waits_only_so_long_is_told_whom_it_waited_for(
    stuck: tuple[str, list[int]], topic_command: Klamm, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic, home = stuck
    monkeypatch.setattr(topic_moves, "_down", lambda *_: {STILL})
    code, out, err = topic_command("move", topic, "--replicas", f"{home[1]},{STILL}", "--timeout", "0.5")
    assert (code, out) == (1, "")
    assert err.count(f"broker {STILL} is down, and the move waits for it: start it; or `klamm topic moves`") == 1
    assert f"not done after 0.5 s, and goes on: `klamm topic moves` shows it, `klamm topic move {topic} --canc" in err


def is_fenced(topic_command: Klamm, topic: str, broker: int) -> bool:
    brokers = json.loads(topic_command("placement", topic, "--json")[1])["brokers"]
    return any(each["id"] == broker and each["fenced"] for each in brokers)


def test_nothing_is_sent_to_a_broker_that_is_down(cluster: EmbeddedCluster, topic_command: Klamm, topic: str) -> None:
    cluster.create_topic(topic, partitions=1, replication=2)
    topic_command("move", topic, "--to", "0,1")
    cluster.stop(STILL)
    try:
        wait_until(lambda: is_fenced(topic_command, topic, STILL), f"broker {STILL} is known to be down", 120)
        code, out, err = topic_command("move", topic, "--replicas", f"{STILL},0")
        assert (code, out) == (1, "") and f"broker {STILL} is down and would copy nothing" in err
        assert topic_command("move", topic, "--to", f"0,1,{STILL}")[0] == 0, "there are enough others"
        moving = [UnderWay((STILL, 0, 1), adding=(STILL,), removing=(1,))]
        assert topic_moves._down(Cluster(addresses_of(cluster.bootstrap_servers)), topic, moving) == {STILL}
    finally:
        cluster.start(STILL)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("not-there", "--to", "0,1"), 1, "there is no topic not-there"),
        (("not-there", "--cancel"), 1, "there is no topic not-there"),
        (("{topic}", "--to", "0,9"), 2, "there is no broker 9; there are 0, 1, 2, 3"),
        (("{topic}", "--to", "0"), 2, "2 replicas of a partition need 2 brokers"),
        (("{topic}", "--replicas", "0,1"), 2, "--replicas would make broker 0 lead all 2 partitions"),
        (("{topic}", "--partition", "5", "--to", "0,1"), 2, "there is no partition 5 of {topic}: it has 0 to 1"),
        (("{topic}", "--replicas", "0,1", "--replication", "2"), 2, "--replication goes with --to"),
        (("{topic}", "--cancel", "--no-wait"), 2, "nothing to wait for"),
    ],
)
def test_what_makes_no_sense_is_said(
    cluster: EmbeddedCluster, topic_command: Klamm, topic: str, words: tuple[str, ...], code: int, said: str
) -> None:
    cluster.create_topic(topic, partitions=2, replication=2)
    ended, out, err = topic_command("move", *(word.format(topic=topic) for word in words))
    assert (ended, out) == (code, "") and said.format(topic=topic) in err, err


@pytest.mark.parametrize("words", [(), ("--to", "0,x"), ("--to", "1,1"), ("--to", "1", "--cancel"), ("--replicas", "")])
def test_where_to_has_to_be_said(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["topic", "move", "invoice", *words])
    assert ended.value.code == 2 and "klamm topic move: error: " in capsys.readouterr().err


# With a broker of a few lines.


def faked(broker: FakeBroker, alter: object, *listed: object) -> None:
    """One broker, one topic of one partition on it, and what it answers to wishes."""
    left = list(listed)
    partition = MetadataResponsePartition(0, 0, leader_id=7, replica_nodes=[7], isr_nodes=[7])
    topic = MetadataResponseTopic(name="t", partitions=[partition])
    brokers = [MetadataResponseBroker(7, *broker.address), MetadataResponseBroker(8, *broker.address)]
    described = [DescribeClusterBroker(each.node_id, each.host, each.port) for each in brokers]

    def listing(_: Any) -> object:
        return left.pop(0) if len(left) > 1 else left[0]

    broker.answers = {
        METADATA: lambda request: MetadataResponse(brokers=brokers, topics=[topic]),
        DESCRIBE_CLUSTER: lambda request: DescribeClusterResponse(brokers=described),
        LIST_PARTITION_REASSIGNMENTS: listing,
        ALTER_PARTITION_REASSIGNMENTS: lambda request: alter,
    }


def said_of_it(code: int, message: str | None) -> AlterPartitionReassignmentsResponse:
    return AlterPartitionReassignmentsResponse(
        responses=[ReassignableTopicResponse("t", [ReassignablePartitionResponse(0, code, message)])]
    )


NOTHING = ListPartitionReassignmentsResponse()
ON_ITS_WAY = ListPartitionReassignmentsResponse(
    topics=[OngoingTopicReassignment("t", [OngoingPartitionReassignment(0, [7, 8], [7], [8])])]
)
NO_CONTROLLER = ListPartitionReassignmentsResponse(error_code=ErrorCode.NOT_CONTROLLER)


def test_a_move_is_watched_over_a_change_of_controllers(capsys: pytest.CaptureFixture[str]) -> None:
    with FakeBroker() as broker:
        faked(broker, said_of_it(0, None), ON_ITS_WAY, ON_ITS_WAY, NO_CONTROLLER, ON_ITS_WAY, NO_CONTROLLER, NOTHING)
        assert main(["topic", "move", "t", "--replicas", "7", "--bootstrap", str(broker.address)]) == 0
        assert broker.asked.count(LIST_PARTITION_REASSIGNMENTS) == 6
    assert capsys.readouterr().out.splitlines()[0] == "topic t: 1 of 1 partition moved"


@pytest.mark.parametrize(
    ("words", "code", "message", "said"),
    [
        (("--replicas", "8"), 39, "The assignment is bad.", "t-0: The assignment is bad."),
        (("--replicas", "8"), 9999, None, "t-0: error 9999"),
        (("--cancel",), ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, None, "t-0: it is not moving any more"),
    ],
)
def test_what_the_brokers_refuse_is_said(
    words: tuple[str, ...], code: int, message: str | None, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with FakeBroker() as broker:
        faked(broker, said_of_it(code, message), ON_ITS_WAY)
        assert main(["topic", "move", "t", *words, "--bootstrap", str(broker.address)]) == 1
    assert f"klamm topic move: {said}\n" in capsys.readouterr().err


def test_a_wish_that_nobody_decides_about(capsys: pytest.CaptureFixture[str]) -> None:
    with FakeBroker() as broker:
        refused = AlterPartitionReassignmentsResponse(error_code=ErrorCode.NOT_CONTROLLER)
        faked(broker, refused, NOTHING)
        assert main(["topic", "move", "t", "--replicas", "8", "--bootstrap", str(broker.address)]) == 1
        assert capsys.readouterr().err == "klamm topic move: nothing was moved: NOT_CONTROLLER\n"
        assert broker.asked.count(ALTER_PARTITION_REASSIGNMENTS) == 1, "what changes something is asked once"


# On paper.


def in_racks(brokers: int, racks: int, held: list[tuple[int, ...]], others: int = 0) -> ClusterSeen:
    return ClusterSeen(
        "c",
        None,
        tuple(BrokerSeen(each, f"R{each % racks}", "127.0.0.1", 1, is_fenced=False) for each in range(brokers)),
        tuple(PartitionSeen("t", number, each[0], each, each) for number, each in enumerate(held))
        + tuple(PartitionSeen("other", number, 0, (0, 1), (0, 1)) for number in range(others)),
    )


def test_a_topic_is_spread_over_racks_and_evenly() -> None:
    held = [(0, 1)] * 12
    targets = spread(in_racks(6, 2, held), "t", dict(enumerate(held)), (0, 1, 2, 3, 4, 5), None)
    assert list(targets) == list(range(12))
    assert all(first % 2 != second % 2 for first, second in targets.values()), "two racks each"
    for role in (0, 1):
        assert [sum(each[role] == broker for each in targets.values()) for broker in range(6)] == [2] * 6


def test_what_stands_well_stays() -> None:
    held = [(0, 1, 2), (1, 2, 0), (2, 0, 1)] * 4
    targets = spread(in_racks(4, 1, held), "t", dict(enumerate(held)), (0, 1, 2, 3), None)
    copies = sum(len(set(target).difference(held[number])) for number, target in targets.items())
    assert copies == 9, "broker 3 gets its quarter of 36 replicas, and nobody else copies anything"
    again = [targets[number] for number in range(12)]
    assert spread(in_racks(4, 1, again), "t", dict(enumerate(again)), (0, 1, 2, 3), None) == targets


def test_each_partition_has_as_many_replicas_as_before() -> None:
    held = [(0,), (0, 1), (0, 1, 2)]
    targets = spread(in_racks(4, 2, held, others=5), "t", dict(enumerate(held)), (1, 2, 3), None)
    assert [len(targets[number]) for number in range(3)] == [1, 2, 3]
    assert all(set(each) <= {1, 2, 3} for each in targets.values())


def test_brokers_that_are_down_cannot_lead_anything() -> None:
    down = ClusterSeen("c", None, (BrokerSeen(0, None, "127.0.0.1", 1, is_fenced=True),), ())
    with pytest.raises(Misused, match="all of these brokers are down"):
        spread(down, "t", {0: (0,)}, (0,), None)
