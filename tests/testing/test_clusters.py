"""What a test can do to its cluster, on both kinds: broken is broken when the call returns, mended is mended."""

import errno
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from klamm.local import embedded
from klamm.local.asking import Address, NoAnswer
from klamm.local.problems import LocalError
from klamm.local.view import live_brokers
from klamm.testing import ClusterUnderTest, EmbeddedCluster, ProcessCluster, topics
from klamm.testing.problems import NotInTime, NotPossible, TopicRefused
from klamm.testing.shape import Shape
from tests.harness.waiting import wait_until
from tests.local.clients import read, write


@pytest.fixture(scope="module", params=[EmbeddedCluster, ProcessCluster], ids=["embedded", "processes"])
def shared(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterUnderTest]:
    cluster = request.param(Shape(brokers=3), tmp_path_factory.mktemp("cluster") / "cluster-1")
    yield cluster
    cluster.close()


@pytest.fixture
def cluster(shared: ClusterUnderTest) -> Iterator[ClusterUnderTest]:
    """Well when the test begins, and mended when it ends."""
    yield shared
    shared.restore()
    assert shared.running == [0, 1, 2]


@pytest.fixture
def topic(cluster: ClusterUnderTest, request: pytest.FixtureRequest) -> str:
    name = cluster.create_topic(request.node.originalname, min_insync_replicas=2)
    cluster.wait_for_in_sync(name)
    return name


def address_of(cluster: ClusterUnderTest, broker: int) -> Address:
    host, _, port = cluster.bootstrap_servers.split(",")[broker].partition(":")
    return Address(host, int(port))


def test_a_topic_is_there_with_what_was_asked_for(cluster: ClusterUnderTest) -> None:
    assert cluster.create_topic("made", partitions=4, replication=2, retention_ms=60_000) == "made"
    assert len(cluster.in_sync("made", 3)) == 2 and cluster.leader_of("made", 3) in cluster.brokers
    write(cluster.bootstrap_servers, "made", "hello")


def test_a_topic_or_a_partition_that_is_misspelt_is_told_at_once(cluster: ClusterUnderTest, topic: str) -> None:
    began = time.monotonic()
    for ask in (cluster.leader_of, cluster.in_sync):
        for name in ("nope", "not a name"):
            with pytest.raises(NotPossible, match=f"^there is no topic {name}$"):
                ask(name)
        for partition in (1, 5, -1, 1 << 40):
            with pytest.raises(NotPossible, match=f"^there is no partition {partition} of {topic}: it has 0 to 0$"):
                ask(topic, partition)
        with pytest.raises(NotPossible, match="there is no topic nope"):
            ask("nope", -1)
    with pytest.raises(NotPossible, match="no broker 7 in this cluster"):
        cluster.wait_for_in_sync(topic, brokers=[0, 7])
    assert time.monotonic() - began < 10


def test_what_is_waited_for_may_be_made_meanwhile_and_else_may_be_misspelt(
    cluster: ClusterUnderTest, topic: str
) -> None:
    """By a producer, with its first record."""
    for wait in (cluster.wait_for_leader, cluster.wait_for_in_sync):
        with pytest.raises(NotInTime, match=r"^there is no topic nope; not within 0\.1 s"):
            wait("nope", timeout=0.1)
        with pytest.raises(NotInTime, match=f"^there is no partition 5 of {topic}: it has 0 to 0; not within"):
            wait(topic, 5, timeout=0.1)
    maker = threading.Timer(0.2, cluster.create_topic, ["made-meanwhile"])
    maker.start()
    assert cluster.wait_for_leader("made-meanwhile") in cluster.brokers
    maker.join()


def test_a_partition_that_its_replicas_have_no_room_for_is_told_as_well(cluster: ClusterUnderTest, topic: str) -> None:
    """Whether it could be added is another question."""
    cluster.kill(0)
    cluster.wait_for_in_sync(topic, brokers=[1, 2])
    with pytest.raises(NotPossible, match=f"^there is no partition 5 of {topic}: it has 0 to 0$"):
        cluster.leader_of(topic, 5)


def test_a_topic_that_one_broker_has_not_heard_of_yet_is_there(cluster: ClusterUnderTest) -> None:
    """Somebody made it through another one."""
    cluster.restart(0)  # It does not lead the quorum now.
    cluster.slow(0, delay_ms=300)
    late, other = address_of(cluster, 0), address_of(cluster, 1)
    topics.create([other], "just-made", 1, 3, {})
    assert topics.seen_by(late, ["just-made"]) is None
    assert topics.why_not_there([late], "just-made", 0) is None, "the controller has heard"
    topics.create([other], "made-since", 1, 3, {})
    assert topics.seen_by(late, ["made-since"]) is None
    assert cluster.leader_of("made-since") in cluster.brokers, "others have heard"


def test_without_a_majority_nobody_can_say_what_is_there(cluster: ClusterUnderTest, topic: str) -> None:
    for broker in cluster.brokers:
        cluster.kill(broker)
    assert cluster.leader_of(topic) is None and cluster.in_sync(topic) == []
    with pytest.raises(NotInTime, match=r"nope-0 has a leader .* running=nobody"):
        cluster.wait_for_leader("nope", timeout=0.1)
    cluster.start(2)
    assert topics.why_not_there([address_of(cluster, 2)], topic, 0) is None, "it does not know itself what there is"


def test_a_topic_that_cannot_be_is_refused_with_the_reason(cluster: ClusterUnderTest) -> None:
    with pytest.raises(TopicRefused, match="INVALID_REPLICATION_FACTOR"):
        cluster.create_topic("too-wide", replication=4)
    with pytest.raises(TopicRefused, match=r"INVALID_CONFIG.*retention"):
        cluster.create_topic("misspelt", retentionn_ms=5)


def test_killed_started_and_in_sync_again(cluster: ClusterUnderTest, topic: str) -> None:
    leader = cluster.wait_for_leader(topic)
    cluster.kill(leader)
    assert cluster.states()[leader] == "dead"
    with pytest.raises(NoAnswer):
        live_brokers(address_of(cluster, leader), 2.0)
    assert cluster.wait_for_leader(topic, other_than=leader) != leader
    write(cluster.bootstrap_servers, topic, "while it is dead")
    cluster.start(leader)
    cluster.wait_for_in_sync(topic)
    assert read(cluster.bootstrap_servers, topic, 1) == ["while it is dead"]


def test_the_port_of_a_broker_that_is_down_is_nobody_elses(cluster: ClusterUnderTest) -> None:
    cluster.stop(1)
    with socket.socket() as stranger, pytest.raises(OSError) as refused:
        stranger.bind(address_of(cluster, 1))
    assert refused.value.errno == errno.EADDRINUSE


def test_a_paused_leader_is_replaced_and_returns(cluster: ClusterUnderTest, topic: str) -> None:
    leader = cluster.wait_for_leader(topic)
    cluster.pause(leader)
    assert cluster.states()[leader] == "paused" and leader not in cluster.running
    with pytest.raises(NoAnswer):
        live_brokers(address_of(cluster, leader), 0.3)
    cluster.wait_for_leader(topic, other_than=leader)
    cluster.resume(leader)
    cluster.wait_for_in_sync(topic)
    assert leader in cluster.running


@pytest.mark.parametrize("end", ["kill", "stop"])
def test_one_that_is_paused_can_be_ended(cluster: ClusterUnderTest, end: str) -> None:
    cluster.pause(2)
    getattr(cluster, end)(2)
    assert cluster.states()[2] == "dead"


def test_a_leader_that_is_cut_off_is_replaced_and_follows_when_healed(cluster: ClusterUnderTest, topic: str) -> None:
    leader = cluster.wait_for_leader(topic)
    cluster.partition(leader)
    assert cluster.running == [0, 1, 2], "clients still reach everybody"
    assert leader in live_brokers(address_of(cluster, leader), 5.0), "also the one that is cut off"
    with pytest.raises(NotPossible, match="heal"):
        cluster.start(leader)
    following = [broker for broker in cluster.brokers if broker != leader]
    cluster.wait_for_in_sync(topic, brokers=following)
    assert cluster.leader_of(topic) in following
    cluster.heal(leader)
    cluster.wait_for_in_sync(topic)


def test_while_one_is_cut_off_the_others_come_and_go(cluster: ClusterUnderTest, topic: str) -> None:
    cluster.partition(0)
    cluster.wait_for_in_sync(topic, brokers=[1, 2])
    cluster.kill(1)
    cluster.start(1)
    cluster.wait_for_in_sync(topic, brokers=[1, 2])
    with pytest.raises(NotPossible, match="heal"):
        cluster.restart(0)
    assert cluster.running == [0, 1, 2], "it was not stopped for a start that could not be"
    cluster.kill(1)
    cluster.kill(2)
    with pytest.raises(NotPossible, match="heal"):
        cluster.start(1)


def test_a_slow_follower_holds_up_who_waits_for_all(cluster: ClusterUnderTest, topic: str) -> None:
    write(cluster.bootstrap_servers, topic, "warm")
    follower = next(broker for broker in cluster.brokers if broker != cluster.leader_of(topic))
    cluster.slow(follower, delay_ms=150)
    cluster.restart(3 - follower - (cluster.leader_of(topic) or 0))
    cluster.wait_for_in_sync(topic)
    began = time.monotonic()
    write(cluster.bootstrap_servers, topic, "late")
    assert time.monotonic() - began >= 0.3
    cluster.heal()


def test_nothing_can_arrive_before_it_was_sent(cluster: ClusterUnderTest) -> None:
    no_delays: list[Any] = [-1, -0.5, float("nan"), float("inf"), 10**400, "x", None]
    for delay_ms in no_delays:
        with pytest.raises(
            NotPossible, match=f"^delay_ms is a number of milliseconds from 0 upwards, not {delay_ms!r}$"
        ):
            cluster.slow(0, delay_ms)
    cluster.slow(0, 0)


def test_everything_broken_at_once_is_restored(cluster: ClusterUnderTest, topic: str) -> None:
    write(cluster.bootstrap_servers, topic, "before")
    cluster.partition(0)
    cluster.kill(1)
    cluster.pause(2)
    cluster.restore()
    assert cluster.running == [0, 1, 2]
    write(cluster.bootstrap_servers, topic, "after")
    cluster.wait_for_in_sync(topic)
    assert read(cluster.bootstrap_servers, topic, 2) == ["before", "after"]


def test_when_all_have_ended_they_are_started_together(cluster: ClusterUnderTest, topic: str) -> None:
    """The first of them alone has no majority, and would wait for it in vain."""
    write(cluster.bootstrap_servers, topic, "before")
    for end in (cluster.kill, cluster.stop):
        for broker in cluster.brokers:
            end(broker)
        assert cluster.running == []
        cluster.restore()
        assert cluster.running == [0, 1, 2]
        assert all(live_brokers(address_of(cluster, broker), 5.0) == {0, 1, 2} for broker in cluster.brokers)
    assert read(cluster.bootstrap_servers, topic, 1) == ["before"]


def test_when_all_have_ended_they_can_be_started_one_by_one(cluster: ClusterUnderTest) -> None:
    for broker in cluster.brokers:
        cluster.kill(broker)
    began = time.monotonic()
    for broker in cluster.brokers:
        cluster.start(broker)
    assert time.monotonic() - began < 20, "the first one was not waited for before it had a majority"
    assert all(live_brokers(address_of(cluster, broker), 5.0) == {0, 1, 2} for broker in cluster.brokers)


def test_some_are_started_together_and_the_others_stay_down(cluster: ClusterUnderTest) -> None:
    for broker in cluster.brokers:
        cluster.kill(broker)
    cluster.start(0, 2)
    assert cluster.running == [0, 2]
    cluster.partition(0)
    with pytest.raises(NotPossible, match="heal"):
        cluster.start(0, 1)
    assert cluster.running == [0, 2]


def test_who_was_just_killed_is_not_in_sync(cluster: ClusterUnderTest, topic: str) -> None:
    """Even if nobody else has noticed yet."""
    cluster.wait_for_in_sync(topic)
    cluster.kill(1)
    with pytest.raises(NotInTime):
        cluster.wait_for_in_sync(topic, timeout=0.05)
    cluster.wait_for_in_sync(topic, brokers=[0, 2])


def test_what_cannot_be_is_said_in_a_sentence(cluster: ClusterUnderTest, topic: str) -> None:
    with pytest.raises(NotPossible, match="no broker 7 in this cluster; its brokers are 0, 1, 2"):
        cluster.kill(7)
    cluster.kill(1)
    for act in (cluster.pause, cluster.resume):
        with pytest.raises(NotPossible, match="broker 1 is dead"):
            act(1)
    cluster.wait_for_in_sync(topic, brokers=[0, 2])
    with pytest.raises(NotInTime, match=r"not within 0.1 s: all replicas of .* running=0,2"):
        cluster.wait_for_in_sync(topic, timeout=0.1)


def test_what_a_broker_said_is_there_to_read(cluster: ClusterUnderTest) -> None:
    (line,) = cluster.log(0, 1)
    assert line and len(cluster.log(0, 3)) == 3
    assert any("the controller is" in line for line in cluster.log(0, 500))
    assert cluster.log(0, 0) == [] and len(cluster.log(0, 10**30)) > 3


def test_what_nobody_said_is_refused(cluster: ClusterUnderTest) -> None:
    with pytest.raises(NotPossible, match="no broker 9 in this cluster; its brokers are 0, 1, 2"):
        cluster.log(9, 1)
    no_numbers: list[Any] = [-1, 1.5, "x", None]
    for lines in no_numbers:
        with pytest.raises(NotPossible, match=f"^lines is a number from 0 upwards, not {lines!r}$"):
            cluster.log(0, lines)


@pytest.mark.parametrize("kind", [EmbeddedCluster, ProcessCluster])
def test_a_cluster_that_cannot_start_leaves_nothing_and_says_why(
    kind: type[EmbeddedCluster | ProcessCluster], tmp_path: Path
) -> None:
    with pytest.raises(LocalError, match="racks cannot be filled"):
        kind(Shape(brokers=1, racks=2), tmp_path / "cluster-1")
    with pytest.raises(LocalError, match=r"num\.partitions does not take 'many'"):
        kind(Shape(brokers=1, settings={"num.partitions": "many"}), tmp_path / "cluster-2")
    assert kind is EmbeddedCluster or not list(tmp_path.iterdir())


def test_what_closing_causes_is_not_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nodes end one after the other, and those that are left may notice. pytest showed it beside tests that broke
    nothing."""
    cluster = EmbeddedCluster(Shape(brokers=3), tmp_path / "cluster-1")
    cluster.create_topic("orders")
    asked_to_end = embedded._asked_to_end

    def ended_and_missed(*arguments: Any) -> "Future[None]":
        ended = asked_to_end(*arguments)
        wait_until(lambda: any("node 0 is gone" in line for line in cluster.log(1, 500)), "1 misses 0")
        return ended

    monkeypatch.setattr(embedded, "_asked_to_end", ended_and_missed)
    caplog.clear()
    cluster.close()
    assert not caplog.records


def test_a_witness_takes_part_in_links_and_is_no_broker(tmp_path: Path) -> None:
    """Two racks have a third vote outside. Whoever is cut off is cut off from it too."""
    cluster = EmbeddedCluster(Shape(brokers=2, racks=2), tmp_path / "cluster-1")
    try:
        assert cluster.brokers == [0, 1] and list(cluster.states()) == [0, 1]
        topic = cluster.create_topic("orders", replication=2)
        leader = cluster.wait_for_leader(topic)
        cluster.partition(leader)
        cluster.wait_for_leader(topic, other_than=leader)
    finally:
        cluster.close()
