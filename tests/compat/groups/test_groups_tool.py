"""`kafka-consumer-groups` prints the same as against Apache Kafka, for the same situations, in all its forms."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.compat.groups.transcript import GROUPS, Transcript
from tests.compat.java_tools import JavaTools
from tests.groups.conftest import SETTINGS
from tests.harness.fixtures import StartNode
from tests.harness.groups import Member, assignment, commit, gathered, wait_coordinator
from tests.harness.node import Node
from tests.harness.raw import Raw
from tests.harness.requests import batch_of, create, metadata_of, produce
from tests.harness.waiting import wait_until
from tests.traps.groups.consuming import LEAVE, Consumer, described, wait_known

LONG = {"session_timeout_ms": 120_000, "rebalance_timeout_ms": 120_000}
NOW_MS = int(time.time() * 1000)
MINUTE_MS = 60_000
EACH_FORM = ("", "--offsets", "--offsets --verbose", "--members", "--members --verbose", "--state", "--state --verbose")


@pytest.fixture
def fresh(start_node: StartNode) -> Node:
    """A broker of its own for every test, so that a list is the same each time; its sessions outlast a slow tool."""
    settings = {**SETTINGS, "group.consumer.max.session.timeout.ms": "120000"}
    return start_node({**settings, "group.consumer.session.timeout.ms": "120000"})


@pytest.fixture
def raw(fresh: Node) -> Iterator[Raw]:
    """With a topic of three partitions and ten records in each, five an hour old and five ten minutes old."""
    with Raw(fresh.port) as connection:
        topic_id = create(connection, "numbers", partitions=3)
        for partition in range(3):
            for age in (60, 10):
                batch = batch_of(*[b"x"] * 5, timestamp=NOW_MS - age * MINUTE_MS)
                assert produce(connection, "numbers", batch, partition=partition).error_code == 0
        wait_coordinator(connection, "scouts-of-numbers")
        for group in ("a", "b", "c", "d"):
            wait_coordinator(connection, group)
        wait_known(connection, "numbers", topic_id)
        yield connection


@pytest.fixture
def transcript(tools: JavaTools, fresh: Node, tmp_path: Path) -> Transcript:
    half_an_hour_ago = datetime.fromtimestamp((NOW_MS - 30 * MINUTE_MS) / 1000, UTC)
    stamp = half_an_hour_ago.strftime("%Y-%m-%dT%H:%M:%S.000Z")
    offsets = tmp_path / "offsets.csv"
    offsets.write_text("numbers,0,7\nnumbers,2,1\n")
    return Transcript(tools, fresh.bootstrap, {"<half-an-hour-ago>": stamp, "<file>": str(offsets)})


def described_in_each_form(transcript: Transcript, *groups: str) -> None:
    for group in groups:
        for form in EACH_FORM:
            transcript.call(f"--describe --group {group} {form}".rstrip())


def test_classic_groups_are_described(fresh: Node, raw: Raw, transcript: Transcript) -> None:
    with (
        Member(fresh.port, "stable", topics=["numbers"]) as one,
        Member(fresh.port, "stable", topics=["numbers"], instance="static") as two,
        Member(fresh.port, "rebalancing", topics=["numbers"]) as waiting,
        Member(fresh.port, "rebalancing", topics=["numbers"]) as waited_for,
        Member(fresh.port, "completing", topics=["numbers"]) as completing,
        Member(fresh.port, "idle", topics=["numbers"]) as idle,
    ):
        gathered(one, two, wishes=[LONG, LONG])
        one.sync({one.member_id: assignment({"numbers": [0, 1]}), two.member_id: assignment({"numbers": [2]})})
        two.sync()
        assert one.commit("numbers", 4, leader_epoch=0) == two.commit("numbers", 10, partition=2) == 0
        waited_for.join(**LONG)
        waited_for.sync({waited_for.member_id: assignment({"numbers": [0, 1, 2]})})
        waiting.send_join(**LONG)
        wait_until(lambda: waited_for.heartbeat() == 27, "the group rebalances")
        completing.join(**LONG)
        idle.join(**LONG)
        idle.sync({})
        described_in_each_form(transcript, "stable", "rebalancing", "completing", "idle")
        transcript.compare("classic-groups-described")


def test_groups_without_members_are_described(fresh: Node, raw: Raw, transcript: Transcript) -> None:
    """One that has only offsets, one whose members have left, one that is not there."""
    assert commit(raw, "only-offsets", "numbers", 3) == commit(raw, "only-offsets", "numbers", 10, partition=2) == 0
    with Member(fresh.port, "left", topics=["numbers"]) as member:
        member.join(**LONG)
        member.sync({member.member_id: assignment({"numbers": [0]})})
        assert member.commit("numbers", 5) == member.leave() == 0
    described_in_each_form(transcript, "only-offsets", "left", "no-such-group")
    for form in EACH_FORM:
        transcript.call(f"--describe --all-groups {form}".rstrip())
    transcript.compare("groups-without-members-described")


def test_groups_of_the_newer_protocol_are_described(fresh: Node, raw: Raw, transcript: Transcript) -> None:
    topic_id = raw_topic_id(raw)
    one, two = (Consumer(raw, "newer", name, "numbers", topic_id) for name in ("one", "two"))
    two.instance = "static"
    one.join(rack_id="R1")
    one.heartbeat(0, 1, 2)
    assert commit(raw, "newer", "numbers", 4, generation=one.epoch, member_id="one") == 0
    transcript.remark("one member")
    described_in_each_form(transcript, "newer")
    two.join()
    wait_until(lambda: described(raw, "newer").group_state == "Reconciling" or not two.heartbeat(), "it is assigned")
    transcript.remark("another joins, and the first has not let go yet")
    described_in_each_form(transcript, "newer")
    one.heartbeat(0, 1, 2)
    one.heartbeat(*one.assigned)
    two.heartbeat()
    two.heartbeat(*two.assigned)
    transcript.remark("it has")
    described_in_each_form(transcript, "newer")
    for each in (one, two):
        each.heartbeat(epoch=LEAVE)
    transcript.remark("both have left")
    described_in_each_form(transcript, "newer")
    transcript.compare("newer-groups-described")


def test_groups_are_listed(fresh: Node, raw: Raw, transcript: Transcript) -> None:
    topic_id = raw_topic_id(raw)
    assert commit(raw, "only-offsets", "numbers", 3) == 0
    Consumer(raw, "newer", "one", "numbers", topic_id).join()
    with (
        Member(fresh.port, "stable") as stable,
        Member(fresh.port, "completing") as completing,
        Member(fresh.port, "workers") as worker,
    ):
        stable.join(**LONG)
        stable.sync({})
        completing.join(**LONG)
        worker.join(protocol_type="connect", protocols={"sessioned": b"x"}, **LONG)
        for call in (
            "--list",
            "--list --state",
            "--list --state Empty",
            "--list --state stable,completingrebalance",
            "--list --state Dead",
            "--list --type",
            "--list --type classic",
            "--list --type consumer",
            "--list --state --type",
            "--list --state Stable --type Consumer",
        ):
            transcript.call(call)
        for call in ("--list", "--list --consumer", "--list --group-type classic", "--list --protocol connect"):
            transcript.call(call, GROUPS)
        transcript.compare("groups-listed")


def test_offsets_are_reset(fresh: Node, raw: Raw, transcript: Transcript) -> None:
    for partition, offset in enumerate((3, 6)):
        assert commit(raw, "idle", "numbers", offset, partition=partition) == 0
    for form in (
        "--to-earliest",
        "--to-latest",
        "--to-current",
        "--to-offset 5",
        "--to-offset 99",
        "--to-offset -1",
        "--shift-by 2",
        "--shift-by -2",
        "--shift-by 99",
        "--shift-by -99",
        "--by-duration PT30M",
        "--by-duration PT5M",
        "--to-datetime <half-an-hour-ago>",
        "--from-file <file>",
    ):
        where = "" if "file" in form else "--topic numbers:0,1 " if "shift" in form else "--topic numbers "
        transcript.call(f"--reset-offsets --group idle {where}{form} --dry-run")
    transcript.call("--reset-offsets --group idle --topic numbers --shift-by 1 --dry-run")
    for where in ("--all-topics", "--topic numbers:0", "--topic numbers:0,2", "--topic no-such-topic"):
        transcript.call(f"--reset-offsets --group idle {where} --to-earliest --dry-run")
    transcript.call("--reset-offsets --group idle --topic numbers --to-latest")
    transcript.call("--reset-offsets --group idle --topic numbers --to-latest --export")
    transcript.call("--reset-offsets --group no-such-group --topic numbers --to-latest --dry-run")
    transcript.remark("nothing has changed so far")
    transcript.call("--describe --group idle")
    for form in ("--topic numbers --to-offset 5", "--topic numbers:1 --shift-by -2", "--from-file <file>"):
        transcript.call(f"--reset-offsets --group idle {form} --execute")
        transcript.call("--describe --group idle")
    transcript.call("--reset-offsets --group new-group --topic numbers --to-datetime <half-an-hour-ago> --execute")
    transcript.call("--describe --group new-group")
    transcript.call("--reset-offsets --all-groups --all-topics --to-earliest --execute")
    transcript.call("--describe --all-groups")
    transcript.compare("offsets-reset")


def test_offsets_of_a_group_at_work_are_not_reset(fresh: Node, raw: Raw, transcript: Transcript) -> None:
    topic_id = raw_topic_id(raw)
    one = Consumer(raw, "newer", "one", "numbers", topic_id)
    one.join()
    with Member(fresh.port, "stable", topics=["numbers"]) as member:
        member.join(**LONG)
        member.sync({member.member_id: assignment({"numbers": [0]})})
        assert member.commit("numbers", 5) == 0
        for group in ("stable", "newer"):
            for how in ("--dry-run", "--execute"):
                transcript.call(f"--reset-offsets --group {group} --topic numbers --to-earliest {how}")
            transcript.call(f"--describe --group {group} --offsets")
        transcript.compare("offsets-at-work-not-reset")


def test_groups_and_offsets_are_deleted(fresh: Node, raw: Raw, transcript: Transcript) -> None:
    topic_id = raw_topic_id(raw)
    one = Consumer(raw, "newer", "one", "numbers", topic_id)
    one.join()
    for group in ("idle", "another", "third"):
        for partition in range(2):
            assert commit(raw, group, "numbers", 3, partition=partition) == 0
    with Member(fresh.port, "stable", topics=["numbers"]) as member:
        member.join(**LONG)
        member.sync({member.member_id: assignment({"numbers": [0]})})
        assert member.commit("numbers", 5) == 0
        for group in ("stable", "newer", "no-such-group"):
            transcript.call(f"--delete-offsets --group {group} --topic numbers")
            transcript.call(f"--delete --group {group}")
        transcript.call("--delete-offsets --group idle --topic numbers:1")
        transcript.call("--describe --group idle")
        transcript.call("--delete-offsets --group idle --topic no-such-topic")
        transcript.call("--delete-offsets --group idle --topic numbers")
        transcript.call("--describe --group idle")
        transcript.call("--delete --group another --group no-such-group")
        transcript.call("--delete --group third")
        transcript.call("--list")
        transcript.call("--delete --all-groups")
        transcript.call("--list")
        one.heartbeat(epoch=LEAVE)
        transcript.call("--delete --group newer")
        transcript.call("--list")
        transcript.compare("groups-and-offsets-deleted")


def raw_topic_id(raw: Raw) -> bytes:
    return metadata_of(raw, "numbers").topic_id
