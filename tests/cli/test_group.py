"""`klamm group`, against a broker, with groups that clients made.

They run against Klamm; `KLAMM_UNDER_TEST=kafka` runs them against Apache Kafka.
"""

import json
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from klamm.cli import main
from tests.cli.grouping import PROTOCOLS, commit, committed, members, produce
from tests.harness.fixtures import new_name
from tests.harness.kafka_node import KafkaNode
from tests.harness.klamm_node import KlammNode
from tests.harness.node import Node, under_test
from tests.harness.topics import create_topic
from tests.harness.waiting import wait_until

Klamm = Callable[..., tuple[int, str, str]]

SETTINGS = {
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "4",
    "group.initial.rebalance.delay.ms": "0",
    # Members of the newer protocol hear of their partitions when they beat.
    "group.consumer.min.heartbeat.interval.ms": "500",
    "group.consumer.heartbeat.interval.ms": "500",
}
PARTITIONS = 3
HOUR_MS = 3_600_000


@pytest.fixture(scope="module")
def grouping_node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """One broker that coordinates groups."""
    kind = {"klamm": KlammNode, "kafka": KafkaNode}[under_test()]
    node = kind(tmp_path_factory.mktemp("grouping") / "broker", SETTINGS)
    try:
        node.start()
        yield node
    finally:
        node.discard()


@pytest.fixture
def bootstrap(grouping_node: Node) -> str:
    return grouping_node.bootstrap


@pytest.fixture
def group_command(bootstrap: str, capsys: pytest.CaptureFixture[str]) -> Klamm:
    """`klamm group VERB …` at this broker: the exit code, what it printed, what it said."""

    def call(*words: str) -> tuple[int, str, str]:
        code = main(["group", *words, "--bootstrap", bootstrap])
        said = capsys.readouterr()
        return code, said.out, said.err

    return call


@pytest.fixture
def group() -> str:
    return new_name("group")


@pytest.fixture
def filled(bootstrap: str, topic: str) -> str:
    """A topic of three partitions with ten records each, one an hour, the last one just now."""
    create_topic(bootstrap, topic, PARTITIONS)
    now_ms = int(time.time() * 1000)
    produce(bootstrap, topic, {number: [now_ms - HOUR_MS * ago for ago in range(9, -1, -1)] for number in range(3)})
    return topic


def described(group_command: Klamm, group: str) -> dict[str, Any]:
    code, out, err = group_command("describe", group, "--json")
    assert (code, err) == (0, "")
    (document,) = json.loads(out)
    assert isinstance(document, dict)
    return document


def test_a_group_without_members_shows_its_lag(group_command: Klamm, bootstrap: str, filled: str, group: str) -> None:
    commit(bootstrap, group, filled, {0: 4, 1: 10})
    code, out, err = group_command("describe", group)
    assert (code, err) == (0, "")
    width = len(filled)
    assert out.splitlines() == [
        f"group {group}: Empty, classic protocol, 0 members, coordinator broker 0 ({bootstrap}), "
        "total lag 6 (1 partition not counted, with 10 records)",
        f"{'topic':<{width}}  partition  committed  log end  lag  member  client  host",
        f"{filled}          0          4       10    6  -       -       -",
        f"{filled}          1         10       10    0  -       -       -",
        f"{filled}          2          -       10    -  -       -       -",
    ]
    document = described(group_command, group)
    assert (document["lag"], document["not_counted"]) == (6, {"partitions": 1, "records": 10})
    third = document["partitions"][2]
    assert (third["partition"], third["committed"], third["log_end"], third["lag"]) == (2, None, 10, None)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_members_and_what_they_own(
    group_command: Klamm, bootstrap: str, filled: str, group: str, protocol: str
) -> None:
    each = {"group.protocol": protocol, "client.id": "billing"}
    static = {**each, "client.id": "shipping", "group.instance.id": "desk-1"}
    commit(bootstrap, group, filled, {0: 3})
    with members(bootstrap, group, filled, PARTITIONS, each, static) as joined:
        wait_until(lambda: described(group_command, group)["state"] == "Stable", "the group is stable")
        document = described(group_command, group)
        code, out, _ = group_command("describe", group, "--members")
    assert (document["type"], document["lag"]) == (protocol, 7)
    assert document["assignor"] in (("uniform",) if protocol == "consumer" else ("range",))
    told = {each["client"]: each for each in document["members"]}
    assert told["billing"]["owns"] == {filled: sorted(number for _, number in joined[0].owns)}
    assert told["shipping"]["owns"] == {filled: sorted(number for _, number in joined[1].owns)}
    assert (told["billing"]["instance"], told["shipping"]["instance"]) == (None, "desk-1")
    rows = {each["partition"]: each for each in document["partitions"]}
    for client, its_own in (("billing", joined[0].owns), ("shipping", joined[1].owns)):
        for _, number in its_own:
            assert (rows[number]["client"], rows[number]["member"]) == (client, told[client]["member"])
    assert [(rows[number]["committed"], rows[number]["lag"]) for number in range(3)] == [
        (3, 7),
        (None, None),
        (None, None),
    ]
    assert code == 0 and f"group {group}: Stable, {protocol} protocol, assignor " in out
    assert "2 members" in out and "total lag 7 (2 partitions not counted, with 20 records)" in out
    assert "desk-1" in out and f"{filled}: " in out.split("\n\n")[1]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_groups_are_listed_with_type_state_and_members(
    group_command: Klamm, bootstrap: str, filled: str, group: str, protocol: str
) -> None:
    other = {"classic": "consumer", "consumer": "classic"}[protocol]
    with members(bootstrap, group, filled, PARTITIONS, {"group.protocol": protocol}):
        wait_until(lambda: described(group_command, group)["state"] == "Stable", "the group is stable")
        listed = json.loads(group_command("list", "--json")[1])
        row = {"group": group, "type": protocol, "state": "Stable", "members": 1, "coordinator": 0}
        assert row in listed
        assert group in group_command("list", "--state", "stable", "--type", protocol)[1]
        assert group not in group_command("list", "--state", "EMPTY")[1]
        assert group not in group_command("list", "--type", other)[1]
        assert f"{group} " in group_command("list")[1]


def test_all_groups_are_described(group_command: Klamm, bootstrap: str, filled: str, group: str) -> None:
    for name in (group, f"{group}-too"):
        commit(bootstrap, name, filled, {0: 1})
    code, out, _ = group_command("describe", "--all", "--json")
    assert code == 0 and {group, f"{group}-too"} <= {each["group"] for each in json.loads(out)}


def test_a_group_in_use_is_not_deleted_and_an_empty_one_is(
    group_command: Klamm, bootstrap: str, filled: str, group: str
) -> None:
    commit(bootstrap, f"{group}-idle", filled, {0: 1})
    with members(bootstrap, group, filled, PARTITIONS, {"client.id": "billing"}):
        code, out, err = group_command("delete", group, f"{group}-idle", "not-there")
        assert (code, out) == (1, f"group {group}-idle deleted\n")
        assert f"group '{group}' is in use: 1 member (billing at " in err and "stop them first" in err
        assert "there is no consumer group 'not-there'" in err
    assert group_command("delete", group, "--json")[:2] == (0, f'{{\n  "deleted": [\n    "{group}"\n  ]\n}}\n')
    code, out, err = group_command("describe", group)
    assert (code, out) == (1, "") and f"there is no consumer group '{group}'" in err


def test_nothing_is_reset_without_execute(group_command: Klamm, bootstrap: str, filled: str, group: str) -> None:
    commit(bootstrap, group, filled, {0: 4, 1: 10})
    words = ("reset-offsets", group, "--topic", f"{filled}:0,2", "--to-offset", "6")
    code, out, err = group_command(*words)
    width = len(filled)
    assert out.splitlines() == [
        f"{'topic':<{width}}  partition  from  to  change",
        f"{filled}          0     4   6       2",
        f"{filled}          2     -   6       -",
    ]
    assert code == 0 and "--execute" in err
    assert committed(bootstrap, group, filled, PARTITIONS) == [4, 10, None]
    code, executed, err = group_command(*words, "--execute")
    assert (code, executed, err) == (0, out, f"group {group}: 2 offsets committed\n")
    assert committed(bootstrap, group, filled, PARTITIONS) == [6, 10, 6]


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        (("--to-earliest",), [2, 0, None]),
        (("--to-latest",), [10, 10, None]),
        (("--to-current",), [4, 9, None]),
        (("--to-offset", "5"), [5, 5, None]),
        (("--shift-by", "-1"), [3, 8, None]),
        (("--shift-by", "1"), [5, 10, None]),
        (("--by-duration", "PT3H30M"), [6, 6, None]),
        (("--by-duration", "P10D"), [2, 0, None]),
    ],
)
def test_where_a_group_can_be_sent(
    group_command: Klamm,
    bootstrap: str,
    filled: str,
    group: str,
    target: tuple[str, ...],
    expected: list[int | None],
) -> None:
    """The first partition begins at 2; the third was never read, so that --all-topics leaves it alone."""
    _delete_records(bootstrap, filled, 0, before=2)
    commit(bootstrap, group, filled, {0: 4, 1: 9})
    code, _, _ = group_command("reset-offsets", group, "--all-topics", *target, "--execute")
    assert code == 0
    assert committed(bootstrap, group, filled, PARTITIONS) == expected


def test_a_time_finds_the_first_record_at_it_or_later(
    group_command: Klamm, bootstrap: str, topic: str, group: str
) -> None:
    create_topic(bootstrap, topic, PARTITIONS)
    noon = datetime(2026, 1, 2, 12, tzinfo=UTC)
    noon_ms = int(noon.timestamp() * 1000)
    produce(bootstrap, topic, {0: [noon_ms - 1, noon_ms, noon_ms + 1], 1: [noon_ms - 2]})
    for text in ("2026-01-02T12:00", "2026-01-02T12:00:00.000Z", "2026-01-02T14:00+02:00"):
        words = ("reset-offsets", group, "--topic", topic, "--to-datetime", text)
        rows = json.loads(group_command(*words, "--json")[1])["partitions"]
        assert [row["to"] for row in rows] == [1, 1, 0], "no record is so young: the end"


def test_what_is_out_of_range_is_brought_into_it(group_command: Klamm, bootstrap: str, filled: str, group: str) -> None:
    _delete_records(bootstrap, filled, 0, before=2)
    code, out, err = group_command("reset-offsets", group, "--topic", filled, "--to-offset", "1", "--json")
    assert code == 0 and f"{filled}-0: offset 1 is before the beginning of the log, 2 is taken instead" in err
    assert [(row["to"], row["wanted"]) for row in json.loads(out)["partitions"]] == [(2, 1), (1, 1), (1, 1)]
    code, out, err = group_command("reset-offsets", group, "--topic", f"{filled}:1", "--to-offset", "99", "--json")
    assert code == 0 and f"{filled}-1: offset 99 is beyond the end of the log, 10 is taken instead" in err
    assert [row["to"] for row in json.loads(out)["partitions"]] == [10]


def test_offsets_are_kept_in_a_file_and_brought_back(
    group_command: Klamm, bootstrap: str, filled: str, group: str, tmp_path: Path
) -> None:
    commit(bootstrap, group, filled, {0: 4, 2: 7})
    code, kept, _ = group_command("reset-offsets", group, "--all-topics", "--to-current", "--export")
    assert (code, kept) == (0, f"{filled},0,4\n{filled},2,7\n")
    (tmp_path / "kept.csv").write_text(kept)
    assert group_command("reset-offsets", group, "--all-topics", "--to-latest", "--execute")[0] == 0
    assert committed(bootstrap, group, filled, PARTITIONS) == [10, None, 10]
    assert group_command("reset-offsets", group, "--from-file", str(tmp_path / "kept.csv"), "--execute")[0] == 0
    assert committed(bootstrap, group, filled, PARTITIONS) == [4, None, 7]


def test_a_group_that_is_not_there_yet_is_made(group_command: Klamm, bootstrap: str, filled: str, group: str) -> None:
    words = ("reset-offsets", group, "--topic", filled, "--to-latest")
    code, _, err = group_command(*words)
    assert code == 0 and f"there is no group '{group}' yet" in err
    assert group_command("describe", group)[0] == 1, "to look at it has not made it"
    assert group_command(*words, "--execute")[0] == 0
    assert described(group_command, group)["lag"] == 0


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_group_with_members_is_not_reset(
    group_command: Klamm, bootstrap: str, filled: str, group: str, protocol: str
) -> None:
    commit(bootstrap, group, filled, {0: 4})
    words = ("reset-offsets", group, "--topic", filled, "--to-earliest", "--execute")
    with members(bootstrap, group, filled, PARTITIONS, {"group.protocol": protocol, "client.id": "billing"}):
        code, out, err = group_command(*words)
        assert (code, out) == (1, "") and "is in use: 1 member (billing at " in err
    assert group_command(*words)[0] == 0
    assert committed(bootstrap, group, filled, PARTITIONS) == [0, 0, 0]


def test_offsets_are_deleted(group_command: Klamm, bootstrap: str, filled: str, group: str) -> None:
    commit(bootstrap, group, filled, {0: 4, 1: 5, 2: 6})
    code, out, _ = group_command("delete-offsets", group, "--topic", f"{filled}:1")
    assert code == 0 and out.splitlines()[1].split() == [filled, "1", "5"]
    assert committed(bootstrap, group, filled, PARTITIONS) == [4, None, 6]
    code, _, err = group_command("delete-offsets", group, "--topic", f"{filled}:0,1")
    assert code == 1 and f"no offsets of {filled}-1" in err and "nothing was deleted" in err
    code, out, _ = group_command("delete-offsets", group, "--topic", filled, "--json")
    assert code == 0 and [each["committed"] for each in json.loads(out)["deleted"]] == [4, 6]
    assert committed(bootstrap, group, filled, PARTITIONS) == [None, None, None]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_offsets_of_a_topic_that_is_read_are_not_deleted(
    group_command: Klamm, bootstrap: str, filled: str, group: str, protocol: str
) -> None:
    commit(bootstrap, group, filled, {0: 4})
    with members(bootstrap, group, filled, PARTITIONS, {"group.protocol": protocol, "client.id": "billing"}):
        code, out, err = group_command("delete-offsets", group, "--topic", filled)
    assert (code, out) == (1, "") and "billing at " in err
    assert committed(bootstrap, group, filled, PARTITIONS) == [4, None, None]


def test_what_the_cluster_does_not_have_is_said_in_words(
    group_command: Klamm, bootstrap: str, filled: str, group: str
) -> None:
    commit(bootstrap, group, filled, {0: 4})
    for words, said in [
        (("describe", "not-there"), "there is no consumer group 'not-there'"),
        (("delete-offsets", "not-there", "--topic", filled), "there is no consumer group 'not-there'"),
        (("delete-offsets", group, "--topic", "no-topic"), "no offsets of topic no-topic"),
        (("reset-offsets", group, "--topic", "no-topic", "--to-latest"), "there is no topic no-topic"),
        (("reset-offsets", group, "--topic", f"{filled}:7", "--to-latest"), f"there is no partition {filled}-7"),
        (("reset-offsets", "not-there", "--all-topics", "--to-latest"), "no offsets yet"),
        (("reset-offsets", group, "--topic", filled, "--shift-by", "1"), f"{filled}-1, {filled}-2"),
    ]:
        code, out, err = group_command(*words)
        assert (code, out) == (1, "") and said in err, (words, err)


def _delete_records(bootstrap: str, topic: str, partition: int, before: int) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    asked = admin.delete_records([TopicPartition(topic, partition, before)])
    for future in asked.values():
        assert future.result(timeout=30).low_watermark == before
