"""`klamm topic`, against a broker."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from klamm.cli import main
from klamm.cli.group_asking import Cluster
from klamm.cli.topic_extents import LogExtent, extents_of, records_in
from klamm.ids import TopicPartition
from klamm.local.view import BrokerSeen, ClusterSeen, PartitionSeen
from tests.cli.grouping import produce
from tests.harness.kafka_node import KafkaNode
from tests.harness.klamm_node import KlammNode
from tests.harness.node import Node, under_test

Klamm = Callable[..., tuple[int, str, str]]


@pytest.fixture
def topic_command(node: Node, capsys: pytest.CaptureFixture[str]) -> Klamm:
    """`klamm topic VERB …` at this broker: the exit code, what it printed, what it said."""

    def call(*words: str) -> tuple[int, str, str]:
        code = main(["topic", *words, "--bootstrap", node.bootstrap])
        said = capsys.readouterr()
        return code, said.out, said.err

    return call


def test_a_topic_is_created_described_altered_and_deleted(topic_command: Klamm, topic: str) -> None:
    created = topic_command("create", topic, "--partitions", "3", "--replication", "1", "--config", "retention.ms=1000")
    assert created == (0, f"topic {topic} created\n", "")
    code, out, _ = topic_command("describe", topic)
    assert code == 0
    assert out.splitlines() == [
        f"topic {topic}: 3 partitions, 1 replica each",
        "  retention.ms=1000",
        "partition  leader  replicas  in sync  first  end  records",
        "        0       0  0         0            0    0        0",
        "        1       0  0         0            0    0        0",
        "        2       0  0         0            0    0        0",
    ]
    altered = topic_command("alter", topic, "--partitions", "5", "--config", "cleanup.policy=compact")
    assert altered == (0, f"topic {topic} altered\n", "")
    assert topic_command("alter", topic, "--unset", "retention.ms")[0] == 0
    (described,) = json.loads(topic_command("describe", topic, "--json")[1])
    assert described["config"] == {"cleanup.policy": "compact"}
    assert [each["partition"] for each in described["partitions"]] == [0, 1, 2, 3, 4]
    assert topic_command("delete", topic) == (0, f"topic {topic} deleted\n", "")
    code, _, err = topic_command("describe", topic)
    assert code == 1 and f"there is no topic {topic}" in err


def test_what_is_not_given_is_the_brokers_default(topic_command: Klamm, topic: str) -> None:
    assert topic_command("create", topic)[0] == 0
    (described,) = json.loads(topic_command("describe", topic, "--json")[1])
    assert described["config"] == {}
    (partition,) = described["partitions"]
    assert partition == {"partition": 0, "leader": 0, "replicas": [0], "in_sync": [0], "first": 0, "end": 0}


def test_topics_are_listed(topic_command: Klamm, topic: str) -> None:
    topic_command("create", topic, "--partitions", "2")
    listed = json.loads(topic_command("list", "--json")[1])
    expected = {"topic": topic, "partitions": 2, "replicas": 1, "offline": 0, "under_replicated": 0, "records": 0}
    assert expected in listed
    assert topic in topic_command("list")[1]


def test_records_are_counted(topic_command: Klamm, node: Node, topic: str) -> None:
    topic_command("create", topic, "--partitions", "2")
    produce(node.bootstrap, topic, {0: [1_000] * 2, 1: [1_000] * 3})
    assert {each["topic"]: each["records"] for each in json.loads(topic_command("list", "--json")[1])}[topic] == 5
    (described,) = json.loads(topic_command("describe", topic, "--json")[1])
    assert [(each["first"], each["end"]) for each in described["partitions"]] == [(0, 2), (0, 3)]
    assert [line.split()[-3:] for line in topic_command("describe", topic)[1].splitlines()[-2:]] == [
        ["0", "2", "2"],
        ["0", "3", "3"],
    ]


def test_what_a_leader_does_not_tell_is_left_open() -> None:
    """Whoever looks at topics may do so because a broker is down: the rest is shown, and nothing waited for."""
    down = BrokerSeen(0, None, "127.0.0.1", 1, is_fenced=False)
    partitions = [PartitionSeen("t", 0, 0, (0,), (0,)), PartitionSeen("t", 1, -1, (0,), ())]
    extents = extents_of(Cluster([]), ClusterSeen("c", None, (down,), tuple(partitions)))
    assert extents == {} and records_in(extents, partitions) is None
    known = {TopicPartition("t", 0): LogExtent(2, 5)}
    assert records_in(known, partitions) is None and records_in(known, partitions[:1]) == 3


def test_the_placement_of_a_topic(topic_command: Klamm, topic: str) -> None:
    topic_command("create", topic, "--partitions", "2")
    assert topic_command("placement", topic)[1].splitlines() == ["broker  leads", "B0      P0 P1"]
    document = json.loads(topic_command("placement", topic, "--json")[1])
    assert document["brokers"] == [{"id": 0, "rack": None, "fenced": False}]
    assert document["partitions"][1] == {"partition": 1, "leader": 0, "followers": [], "in_sync": [0]}


def test_asking_about_a_topic_does_not_create_it(topic_command: Klamm, topic: str) -> None:
    """The broker creates topics for clients that ask about them; to look is not to ask for."""
    for verb in ("describe", "placement"):
        code, out, err = topic_command(verb, topic)
        assert (code, out) == (1, "") and f"there is no topic {topic}" in err
    assert topic not in topic_command("list")[1]


def test_several_are_deleted_and_the_one_that_is_not_there_is_named(topic_command: Klamm, topic: str) -> None:
    topic_command("create", topic)
    code, out, err = topic_command("delete", topic, "not-there")
    assert (code, out) == (1, f"topic {topic} deleted\n")
    assert err == "klamm topic delete: there is no topic not-there; `klamm topic list` lists them\n"


def test_a_topic_that_is_nearly_there(topic_command: Klamm, topic: str) -> None:
    topic_command("create", topic)
    nearly = topic[:-3] + topic[-2:]
    looking = [("describe",), ("placement",), ("elect",), ("moves",)]
    changing = [("delete",), ("alter", "--partitions", "9"), ("move", "--to", "0")]
    for words in looking + changing:
        code, out, err = topic_command(words[0], nearly, *words[1:])
        assert (code, out) == (1, "")
        assert err == f"klamm topic {words[0]}: there is no topic {nearly}. Did you mean {topic}?\n"


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("create", "x", "--replication", "5"), 1, "x: "),
        (("create", "not/a/name"), 1, "not/a/name: "),
        (("create", ""), 1, "klamm topic create: '': "),
        (("create", "x", "--config", "no.such.setting=1"), 1, "no.such.setting"),
        (("create", "x", "--config", "retention.ms"), 2, "KEY=VALUE"),
        (("alter", "x"), 2, "nothing to alter"),
        (("alter", "x", "--config", "a=1", "--unset", "a"), 2, "at once"),
        (("alter", "not-there", "--partitions", "3"), 1, "there is no topic not-there"),
        (("alter", "not-there", "--config", "retention.ms=1"), 1, "there is no topic not-there"),
    ],
)
def test_what_is_refused_is_said_in_words(topic_command: Klamm, words: tuple[str, ...], code: int, said: str) -> None:
    ended, out, err = topic_command(*words)
    assert (ended, out) == (code, "") and said in err, err


def test_fewer_partitions_are_refused(topic_command: Klamm, topic: str) -> None:
    topic_command("create", topic, "--partitions", "3")
    code, _, err = topic_command("alter", topic, "--partitions", "2")
    assert code == 1 and topic in err


def test_on_one_broker_there_is_nobody_to_elect_and_nowhere_to_move(topic_command: Klamm, topic: str) -> None:
    topic_command("create", topic, "--partitions", "2")
    code, out, _ = topic_command("elect", topic)
    assert code == 0 and [line.split()[:4] for line in out.splitlines()[1:]] == [
        [topic, "0", "0", "0"],
        [topic, "1", "0", "0"],
    ]
    assert topic_command("move", topic, "--to", "0") == (0, f"topic {topic}: nothing to move\n", "")
    assert topic_command("move", topic, "--cancel") == (0, f"topic {topic}: nothing of it moves\n", "")
    assert topic_command("moves", topic) == (0, "nothing moves\n", "")
    assert json.loads(topic_command("moves", "--json")[1]) == []


@pytest.mark.parametrize(
    "verb", ["list", "create", "describe", "placement", "delete", "alter", "elect", "move", "moves"]
)
def test_nobody_there_is_said_at_once(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = [verb] if verb == "list" else [verb, "x"]
    words += {"alter": ["--partitions", "3"], "move": ["--to", "0"]}.get(verb, [])
    assert main(["topic", *words, "--bootstrap", "127.0.0.1:1"]) == 1
    assert "no broker answers" in capsys.readouterr().err


def test_what_the_brokers_keep_for_themselves_is_deleted_only_by_force(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """All groups would be gone, for a word that was mistyped."""
    node = {"klamm": KlammNode, "kafka": KafkaNode}[under_test()](tmp_path / "broker")
    try:
        node.start()
        where = ["--bootstrap", node.bootstrap]
        for name in ("invoice", "__consumer_offsets"):
            assert main(["topic", "create", name, "--partitions", "1", "--replication", "1", *where]) == 0
        capsys.readouterr()
        assert main(["topic", "delete", "invoice", "__consumer_offsets", *where]) == 1
        said = capsys.readouterr()
        assert "the offsets of all groups" in said.err and "--force" in said.err and said.out == ""
        assert main(["topic", "delete", "invoice", "__consumer_offsets", "--force", *where]) == 0
        assert "__consumer_offsets deleted" in capsys.readouterr().out
    finally:
        node.discard()
