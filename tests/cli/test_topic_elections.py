"""`klamm topic elect`, on a cluster in this process whose brokers do not give leadership back by themselves."""

import json
from collections.abc import Callable, Iterator

import pytest

from klamm.cli import main
from klamm.testing import EmbeddedCluster
from klamm.testing.shape import Shape
from tests.cli.grouping import produce
from tests.harness.waiting import wait_until

Klamm = Callable[..., tuple[int, str, str]]
SETTINGS = {"auto.leader.rebalance.enable": "false", "unclean.leader.election.enable": "false"}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCluster]:
    cluster = EmbeddedCluster(Shape(settings=SETTINGS), tmp_path_factory.mktemp("elect") / "cluster")
    try:
        yield cluster
    finally:
        cluster.close()


@pytest.fixture
def elect(cluster: EmbeddedCluster, capsys: pytest.CaptureFixture[str]) -> Klamm:
    def call(*words: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = main(["topic", "elect", *words, "--bootstrap", cluster.bootstrap_servers])
        said = capsys.readouterr()
        return code, said.out, said.err

    return call


def rows(out: str) -> list[list[str]]:
    return [line.split(maxsplit=4) for line in out.splitlines()[1:]]


def test_preferred_leaders_lead_again_as_soon_as_they_can(cluster: EmbeddedCluster, elect: Klamm, topic: str) -> None:
    cluster.create_topic(topic, partitions=3, replication=3)
    (its_own,) = [number for number in range(3) if cluster.leader_of(topic, number) == 0]
    already = "is the preferred one already"
    code, out, _ = elect(topic)
    assert code == 0 and [row[4] for row in rows(out)] == [already] * 3

    cluster.stop(0)
    deputy = cluster.wait_for_leader(topic, its_own, other_than=0)
    code, out, _ = elect(topic)
    expected = "not elected: broker 0 is preferred, and is not in sync"
    assert code == 1
    assert rows(out)[its_own] == [topic, str(its_own), str(deputy), str(deputy), expected]

    cluster.start(0)
    for number in range(3):
        cluster.wait_for_in_sync(topic, number)
    assert cluster.leader_of(topic, its_own) == deputy
    code, out, _ = elect(topic, "--partition", str((its_own + 1) % 3))
    assert code == 0 and [row[4] for row in rows(out)] == [already]
    code, out, _ = elect(topic, "--json")
    told = {each["partition"]: each for each in json.loads(out)}
    assert code == 0 and told[its_own] == {
        "topic": topic,
        "partition": its_own,
        "leader": 0,
        "before": deputy,
        "preferred": 0,
        "outcome": "elected",
        "why": None,
    }
    assert sorted(each["outcome"] for each in told.values()) == ["already", "already", "elected"]
    assert cluster.wait_for_leader(topic, its_own) == 0


def test_of_all_topics_only_what_changes_is_shown(cluster: EmbeddedCluster, elect: Klamm, topic: str) -> None:
    cluster.create_topic(topic, partitions=3, replication=3)
    elect()
    code, out, _ = elect()
    assert code == 0 and out.startswith("nobody to elect: ") and out.endswith("led by their preferred replicas\n")
    cluster.restart(1)
    for number in range(3):
        cluster.wait_for_in_sync(topic, number)
    code, out, _ = elect()
    assert code == 0 and [row[2::2] for row in rows(out) if row[0] == topic] == [["1", "elected"]]


def test_an_unclean_election_is_explained_before_it_is_done(cluster: EmbeddedCluster, elect: Klamm, topic: str) -> None:
    """One is away while records are written, and then the only one that has them goes."""
    cluster.create_topic(topic, partitions=1, replication=2, **{"min.insync.replicas": 1})
    cluster.wait_for_in_sync(topic)
    leader = cluster.wait_for_leader(topic)
    (follower,) = set(cluster.in_sync(topic)) - {leader}
    code, out, _ = elect(topic, "--unclean")
    assert code == 0 and rows(out) == [[topic, "0", str(leader), str(leader), "has a leader"]]

    cluster.stop(follower)
    cluster.wait_for_in_sync(topic, 0, brokers=[leader])
    produce(cluster.bootstrap_servers, topic, {0: [1_000] * 3})
    cluster.kill(leader)
    try:
        cluster.start(follower)
        wait_until(lambda: cluster.leader_of(topic) is None, "nobody leads", within_seconds=120)
        code, out, err = elect(topic, "--unclean")
        assert (code, out) == (1, "") and f"{topic}-0 would be led by a replica that was not in sync" in err
        assert "lost for good" in err and "--force" in err
        assert cluster.leader_of(topic) is None
        code, out, _ = elect(topic, "--unclean", "--force")
        assert (code, rows(out)) == (0, [[topic, "0", str(follower), "-", "elected"]])
    finally:
        cluster.restore()


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("not-there",), 1, "there is no topic not-there"),
        (("--partition", "0"), 2, "--partition is of one topic"),
        (("a", "b", "--partition", "0"), 2, "--partition is of one topic"),
    ],
)
def test_what_makes_no_sense_is_said(elect: Klamm, words: tuple[str, ...], code: int, said: str) -> None:
    ended, out, err = elect(*words)
    assert (ended, out) == (code, "") and said in err


def test_a_partition_that_is_not_there(cluster: EmbeddedCluster, elect: Klamm, topic: str) -> None:
    cluster.create_topic(topic)
    code, out, err = elect(topic, "--partition", "7")
    assert (code, out) == (2, "") and f"there is no partition 7 of {topic}: it has 0 to 0" in err
