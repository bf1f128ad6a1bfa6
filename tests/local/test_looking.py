"""Looks at a real cluster: what is in them, and how few questions they take."""

import os
import socket
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as Place
from confluent_kafka.admin import AdminClient

from klamm.ids import TopicPartition
from klamm.local import looking
from klamm.local.agreeing import Wish, new_cluster, with_ports
from klamm.local.asking import Conversation, NoAnswer
from klamm.local.cluster import LocalCluster
from klamm.local.deciding import NodeState
from klamm.local.look import Look
from klamm.local.looking import LIST_OFFSETS, Looker
from klamm.local.processes import process_of
from klamm.local.record import locked
from klamm.local.view import ClusterSeen, PartitionSeen, UnknownTopic
from klamm.wire.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from tests.harness.topics import create_topic
from tests.harness.waiting import wait_until
from tests.local.clients import read, write


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    cluster = LocalCluster(tmp_path_factory.mktemp("looked-at") / "cluster")
    cluster.up(Wish(3, 1, 0, {"default.replication.factor": "3"}))
    yield cluster
    cluster.kill(range(3))
    cluster.states()


def seen(looker: Looker, what: str, holds: Any) -> Look:
    """Looks again until it is so."""
    looks: list[Look] = []

    def is_so() -> bool:
        looks.append(looker.look())
        return bool(holds(looks[-1]))

    wait_until(is_so, what, within_seconds=30)
    return looks[-1]


def test_ends_sizes_and_a_broker_that_stands_still(cluster: LocalCluster) -> None:
    servers = cluster.record().bootstrap_servers
    create_topic(servers, "looked-at", config={"min.insync.replicas": "1"})
    create_topic(servers, "strict", config={"min.insync.replicas": "3"})
    write(servers, "looked-at", *("x" * 100 for _ in range(200)))
    place = TopicPartition("looked-at", 0)
    with Looker(cluster) as looker:
        look = seen(looker, "200 records on all", lambda look: look.ends.get(place) == 200 and _equal(look, place))
        assert look.is_answered and look.live == {0, 1, 2} and look.controller in (0, 1, 2)
        assert all(look.behind(broker, place) == 0 for broker in range(3))
        assert _refusing(look) == []
        follower = next(each for each in range(3) if each not in (look.partitions[place].leader, look.controller))
        cluster.pause([follower])
        seen(looker, "the ISR shrinks", lambda look: follower not in look.partitions[place].in_sync)
        write(servers, "looked-at", *("x" * 100 for _ in range(300)))
        look = seen(looker, "500 records", lambda look: look.ends[place] == 500)
        assert look.states[follower] == "paused" and look.behind(follower, place) == 300
        # Two are in sync, which is enough for the one topic and not for the other.
        seen(looker, "one refuses acks=all", lambda look: _refusing(look) == ["strict"])
        cluster.resume([follower])
        look = seen(looker, "it is back", lambda look: follower in look.partitions[place].in_sync)
        seen(looker, "it has all of it", lambda look: look.behind(follower, place) == 0)


def test_a_partition_begins_where_records_are_left(cluster: LocalCluster) -> None:
    servers, place = cluster.record().bootstrap_servers, TopicPartition("shortened", 0)
    create_topic(servers, place.topic)
    write(servers, place.topic, *("x" * 100 for _ in range(50)))
    with Looker(cluster) as looker:
        seen(looker, "all of it", lambda look: (look.starts.get(place), look.ends.get(place)) == (0, 50))
        admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
        for deleted in admin.delete_records([Place(place.topic, 0, 40)]).values():
            deleted.result(30)
        write(servers, place.topic, "another")
        seen(looker, "what is left", lambda look: (look.starts[place], look.ends[place]) == (40, 51))


def test_what_consumers_were_given_and_what_groups_have_read(cluster: LocalCluster) -> None:
    """Also who belongs to no group is given something, and no broker's log is any longer for it."""
    servers, place = cluster.record().bootstrap_servers, TopicPartition("given", 0)
    create_topic(servers, place.topic)
    write(servers, place.topic, *("x" * 100 for _ in range(50)))
    read(servers, place.topic, 50)
    with Looker(cluster) as looker:
        seen(looker, "bytes out", lambda look: sum(_given(look, place.topic)) > 5_000)
        consumer = Consumer({"bootstrap.servers": servers, "group.id": "readers", "auto.offset.reset": "earliest"})
        consumer.subscribe([place.topic])
        wait_until(lambda: consumer.poll(1.0) is not None, "a record", within_seconds=30)
        consumer.commit(offsets=[Place(place.topic, 0, 10)], asynchronous=False)
        look = seen(looker, "the group", lambda look: look.committed.get("readers") == {place: 10})
        assert look.members("readers") == 1 and look.lag("readers") == 40
        consumer.unsubscribe()
        consumer.close()
        admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
        for deleted in admin.delete_consumer_groups(["readers"]).values():
            deleted.result(30)
        seen(looker, "it is deleted", lambda look: "readers" not in look.committed)


def _refusing(look: Look) -> list[str]:
    return [each.topic for each in look.partitions.values() if each.is_below_min_in_sync]


def _given(look: Look, topic: str) -> list[int]:
    return [each.bytes_out.get(topic, 0) for each in look.figures.values()]


def _equal(look: Look, place: TopicPartition) -> bool:
    return len({look.sizes[broker].get(place) for broker in range(3)}) == 1


def test_partitions_in_which_nothing_happens_are_not_asked_about(
    cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hundred topics, and one that somebody writes to: the connections stay, and one start and end are asked for."""
    servers = cluster.record().bootstrap_servers
    for number in range(10):
        create_topic(servers, f"idle-{number}", partitions=10)
    create_topic(servers, "busy")
    asked: list[tuple[int, Any]] = []
    opened: Counter[str] = Counter()
    ask, begin = Conversation.ask, Conversation.__init__

    def noted(self: Conversation, api_key: int, version: int, request: Any) -> Any:
        asked.append((api_key, request))
        return ask(self, api_key, version, request)

    def counted(self: Conversation, *arguments: Any) -> None:
        opened["connections"] += 1
        begin(self, *arguments)

    monkeypatch.setattr(Conversation, "ask", noted)
    monkeypatch.setattr(Conversation, "__init__", counted)

    def offsets_asked(looker: Looker) -> list[str]:
        asked.clear()
        looker.look()
        return [
            f"{topic.name}-{each.partition_index}"
            for key, request in asked
            if key == LIST_OFFSETS
            for topic in request.topics
            for each in topic.partitions
            # (In what other tests of this cluster left, something may still happen.)
            if topic.name.startswith(("idle-", "busy"))
        ]

    with Looker(cluster) as looker:
        assert len(offsets_asked(looker)) > 200, "at first, about all"
        wait_until(lambda: offsets_asked(looker) == [], "nothing happens")
        write(servers, "busy", "one")
        assert offsets_asked(looker) == ["busy-0", "busy-0"]
        assert opened["connections"] == 3
        assert looker.pause_seconds < 5


def test_a_node_that_is_started_during_a_look_is_not_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The record was read two times for one look. Whoever was started in between ran, and was gone: its partitions had
    no leader, for as long as a look lasts."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        record = with_ports(new_cluster(Wish(3, 1), Random(1)), [port] * 3)
        readings = [record, record.with_processes({0: process_of(os.getpid())})]
        monkeypatch.setattr(LocalCluster, "record", lambda self: readings.pop(0) if len(readings) > 1 else readings[0])
        told: list[int] = []

        def asked(broker: Conversation, *, gone: list[int]) -> ClusterSeen:
            told.extend(gone)
            raise UnknownTopic

        monkeypatch.setattr(looking, "placement_seen_by", asked)
        with Looker(LocalCluster(tmp_path)) as looker:
            looker.look()
            looker.look()
        assert told == [1, 2], "a majority does not run, but node 0 does"


class Returning:
    """A partition with a leader and two followers that come back, of an ISR that nobody could shrink: 53 records are
    committed, 433 more are not, until the followers have said that they hold them."""

    place = TopicPartition("inv", 0)

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.end, self.asked = 53, 0
        self.sizes = {0: 48_600, 1: 5_300, 2: 5_300}
        self.silent = {1, 2}
        self._nodes = with_ports(new_cluster(Wish(3, 1), Random(1)), [1, 2, 3])
        patch.setattr(LocalCluster, "record", lambda _: self._nodes)
        patch.setattr(LocalCluster, "states_of", lambda _, it: [NodeState(node, "running") for node in it.nodes])
        patch.setattr(looking._Line, "opened", lambda line: self._opened(line))
        patch.setattr(looking._Line, "controller", lambda line: (0, 1))
        patch.setattr(looking._Line, "figures", lambda line: None)
        seen = PartitionSeen("inv", 0, 0, (0, 1, 2), (0, 1, 2))
        patch.setattr(looking, "placement_seen_by", lambda *_, gone: ClusterSeen("an-id", 0, (), (seen,)))
        patch.setattr(looking, "_committed", lambda broker: {})
        patch.setattr(looking, "_offsets", self._offsets)
        patch.setattr(looking, "log_dirs", self._log_dirs)

    def _opened(self, line: Any) -> int:
        broker: int = line.node.node_id
        if broker in self.silent:
            raise NoAnswer
        return broker

    def _log_dirs(self, broker: int) -> DescribeLogDirsResponse:
        partition = DescribeLogDirsPartition(0, self.sizes[broker])
        directory = DescribeLogDirsResult(topics=[DescribeLogDirsTopic("inv", [partition])])
        return DescribeLogDirsResponse(results=[directory])

    def _offsets(self, broker: int, partitions: Any, at: int) -> dict[TopicPartition, int]:
        self.asked += 1
        return dict.fromkeys(partitions, self.end if at == looking.LATEST else 0)


def test_an_end_moves_when_followers_return_though_the_leaders_log_does_not_grow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A view said lag 53 where it was 486, until somebody wrote again."""
    world = Returning(monkeypatch)
    with Looker(LocalCluster(tmp_path)) as looker:
        assert [looker.look().ends[world.place] for _ in range(5)] == [53] * 5, "they are starting"
        world.silent, world.sizes = set(), dict.fromkeys(range(3), 48_600)
        assert looker.look().ends[world.place] == 53, "they hold it, and their next fetch is going to say so"
        world.end = 486
        assert looker.look().ends[world.place] == 486
        looker.look()
        asked = world.asked
        assert looker.look().ends[world.place] == 486 and world.asked == asked, "nothing happens any more"


@pytest.mark.parametrize("is_killed", [True, False])
def test_who_stops_a_cluster_says_so_even_of_nodes_that_were_killed(tmp_path: Path, is_killed: bool) -> None:
    """Whoever watched saw a dead node, and waited for it to return."""
    cluster = LocalCluster(tmp_path / "cluster")
    cluster.up(Wish(1, 1, 0))
    with Looker(cluster) as looker:
        if is_killed:
            cluster.kill([0])
            assert not looker.look().was_stopped
            assert cluster.down() == []
        else:
            cluster.pause([0])
            cluster.down(timeout_seconds=0)
        assert looker.look().was_stopped
        cluster.start([0])
        assert not looker.look().was_stopped
        cluster.kill([0])
        assert not looker.look().was_stopped, "that was no end of the cluster"


def test_a_cluster_is_stopped_also_where_that_cannot_be_noted(tmp_path: Path) -> None:
    """Somebody starts nodes at this moment, or the disk is full."""
    cluster = LocalCluster(tmp_path / "cluster")
    cluster.up(Wish(1, 1, 0))
    with locked(cluster.directory):
        assert cluster.down() == []
    assert [state for _, state in cluster.states()] == ["dead"] and not cluster.record().was_stopped


def test_nobody_answers(tmp_path: Path) -> None:
    cluster = LocalCluster(tmp_path / "cluster")
    cluster.up(Wish(1, 1, 0))
    with Looker(cluster) as looker:
        assert looker.look().is_answered
        cluster.kill([0])
        look = looker.look()
        assert not look.is_answered and look.is_gone(0) and look.live == {0}, "the rest is what was known before"
