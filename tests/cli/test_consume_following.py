"""`klamm consume --follow` and `--group`, against a cluster: records yet to come, readers and members that go."""

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from argparse import Namespace
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka import KafkaError, TopicPartition

from klamm.cli import consume, consume_membership, consume_reading
from klamm.cli.consume_bounds import Extent, NoLeader
from klamm.cli.consume_membership import Membership
from klamm.cli.consume_reading import Reading
from klamm.local.asking import NoAnswer
from tests.cli.conftest import Klamm
from tests.cli.grouping import committed
from tests.cli.sending import LONG_SECONDS, begun, line_of, produce, soon_line_of
from tests.harness.topics import create_topic
from tests.harness.waiting import wait_until

# Whoever follows.


@pytest.fixture
def following(servers: str, counted: str) -> "Iterator[subprocess.Popen[bytes]]":
    process = begun(
        "consume", counted, "--follow", "--from", "9", "--bootstrap", servers,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    yield process
    process.kill()
    process.communicate()


def test_what_comes_is_shown_until_ctrl_c(
    klamm_command: Klamm, counted: str, following: "subprocess.Popen[bytes]"
) -> None:
    assert {line_of(following.stdout), line_of(following.stdout)} == {b"9\n", b"19\n"}
    klamm_command("produce", counted, "--value", "more", "--partition", "1")
    assert line_of(following.stdout) == b"more\n"
    following.send_signal(signal.SIGINT)
    _, err = following.communicate(timeout=LONG_SECONDS)
    assert (following.returncode, err) == (130, b"")


def test_whoever_reads_our_output_may_go(following: "subprocess.Popen[bytes]") -> None:
    """As `| head -2` does; nothing more is written that would tell us."""
    line_of(following.stdout), line_of(following.stdout)
    assert following.stdout is not None and following.stderr is not None
    following.stdout.close()
    assert following.wait(LONG_SECONDS) == 141
    assert following.stderr.read() == b""


def test_a_full_pipe_that_is_closed_is_no_trouble(
    servers: str, klamm_command: Klamm, topic: str, tmp_path: Path
) -> None:
    produce(klamm_command, topic, tmp_path, b"a long line, again and again\n" * 50_000)
    command = f"{sys.executable} -m klamm consume {topic} --bootstrap {servers} | head -1; echo ${{PIPESTATUS[0]}}"
    ended = subprocess.run(["bash", "-c", command], capture_output=True, timeout=LONG_SECONDS, check=False)
    assert (ended.stdout, ended.stderr) == (b"a long line, again and again\n141\n", b"")


def test_following_up_to_an_offset_and_a_time(klamm_command: Klamm, servers: str, counted: str) -> None:
    words = ("consume", counted, "--partition", "0", "--from", "9", "--follow")
    until_offset = begun(*words, "--until", "11", "--bootstrap", servers, stdout=subprocess.PIPE)
    assert line_of(until_offset.stdout) == b"9\n"
    klamm_command("produce", counted, "--partition", "0", "--value", "a", "--value", "b")
    assert until_offset.communicate(timeout=LONG_SECONDS)[0] == b"a\n" and until_offset.returncode == 0
    assert klamm_command(*words, "--until", soon(1.5))[:2] == (0, b"9\na\nb\n")


def extents(monkeypatch: pytest.MonkeyPatch, *first: Exception | int | None) -> None:
    """What is found out about the logs, question after question: nothing because of this problem, or ends that are so
    far behind the real ones; after these the truth."""
    answers, found_out = list(first), consume.extent_of

    def extent_of(*asked: Any) -> Extent:
        answer = answers.pop(0) if answers else None
        if isinstance(answer, Exception):
            raise answer
        found = found_out(*asked)
        return Extent(found.starts, {number: end + (answer or 0) for number, end in found.ends.items()})

    monkeypatch.setattr(consume, "extent_of", extent_of)


def soon(seconds: float) -> str:
    return datetime.fromtimestamp(time.time() + seconds, UTC).isoformat()


def test_a_leader_that_is_away_when_the_time_comes_is_waited_for(
    klamm_command: Klamm, counted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ended with exit code 1, though it had been told to follow."""
    monkeypatch.setattr(consume, "AGAIN_SECONDS", 0.1)
    extents(monkeypatch, None, NoLeader(counted, 0), NoAnswer("b:1"))
    code, out, err = klamm_command("consume", counted, "--from", "9", "--follow", "--until", soon(1))
    assert (code, sorted(out.split())) == (0, [b"19", b"9"])
    assert [line.partition("consume: ")[2].partition(" ")[0] for line in err.splitlines()] == ["partition", "no", "it"]
    assert err.endswith("klamm consume: it goes on\n")


@pytest.mark.parametrize("until", [1.0, -1.0])
def test_an_end_that_goes_back_when_the_time_has_come_is_followed_back(
    klamm_command: Klamm, counted: str, monkeypatch: pytest.MonkeyPatch, until: float
) -> None:
    """Two records were in no other replica when their leader died. It waited for them for ever."""
    monkeypatch.setattr(consume_reading, "QUIET_SECONDS", 0.2)
    extents(monkeypatch, *((None, 2) if until > 0 else (2,)))
    assert klamm_command("consume", counted, "--from", "9", "--follow", "--until", soon(until))[0] == 0


# As a member of a group.


def test_a_group_goes_on_where_it_was(klamm_command: Klamm, topic: str, tmp_path: Path) -> None:
    produce(klamm_command, topic, tmp_path, b"1\n2\n3\n4\n5\n")
    words = ("consume", topic, "--group", f"{topic}-group")
    assert klamm_command(*words, "--count", "2") == (0, b"1\n2\n", "")
    assert klamm_command(*words) == (0, b"3\n4\n5\n", "")
    nothing = f"nothing new for group {topic}-group in {topic}; --follow waits\n"
    assert klamm_command(*words) == (0, b"", nothing)
    goes_on = f"group {topic}-group goes on where it was: --from is for partitions in which it has never been\n"
    assert klamm_command(*words, "--from", "beginning") == (0, b"", goes_on + nothing)
    produce(klamm_command, topic, tmp_path, b"6\n")
    assert klamm_command(*words, "--from", "beginning") == (0, b"6\n", goes_on), "also where nobody looks"
    described = json.loads(klamm_command("group", "describe", f"{topic}-group", "--json")[1])
    (group,) = described if isinstance(described, list) else [described]
    assert group["lag"] == 0
    assert klamm_command("consume", topic, "--group", f"{topic}-new", "--from", "-2") == (0, b"5\n6\n", "")


def test_on_a_terminal_it_is_said_at_once_that_a_group_goes_on(
    servers: str, klamm_command: Klamm, topic: str, tmp_path: Path
) -> None:
    """Whoever follows would wait for what --from seemed to promise."""
    produce(klamm_command, topic, tmp_path, b"1\n")
    words = ("consume", topic, "--group", f"{topic}-group", "--from", "beginning", "--bootstrap", servers)
    assert klamm_command(*words[:4]) == (0, b"1\n", "")
    ours, theirs = pty.openpty()
    following = begun(*words, "--follow", stdout=theirs, stderr=subprocess.PIPE)
    try:
        assert soon_line_of(following.stderr).startswith(f"group {topic}-group goes on where it was: ".encode())
    finally:
        following.kill()
        following.communicate()
        os.close(ours)
        os.close(theirs)


def test_what_was_printed_is_committed_though_nothing_more_comes(
    servers: str, klamm_command: Klamm, topic: str, tmp_path: Path
) -> None:
    """It was when the next record came, so that `klamm group describe` told of a lag that was none."""
    create_topic(servers, topic, 1)
    produce(klamm_command, topic, tmp_path, b"1\n")
    words = ("consume", topic, "--group", f"{topic}-group", "--follow", "--bootstrap", servers)
    following = begun(*words, stdout=subprocess.PIPE)
    try:
        assert soon_line_of(following.stdout) == b"1\n"
        produce(klamm_command, topic, tmp_path, b"2\n")
        assert soon_line_of(following.stdout) == b"2\n"
        wait_until(lambda: committed(servers, f"{topic}-group", topic, 1) == [2], "it is committed", within_seconds=20)
    finally:
        following.kill()
        following.communicate()


class Committing:
    """A consumer that is told what to commit."""

    def __init__(self) -> None:
        self.commits: list[Any] = []

    def commit(self, offsets: Any, asynchronous: bool) -> None:
        assert asynchronous
        self.commits.append(offsets)


def test_it_is_committed_once_and_once_more_where_it_was_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consume_membership, "COMMIT_EVERY_SECONDS", -1.0)
    consumer, place = Committing(), TopicPartition("t", 0, 1)
    reading: Any = Namespace(positions=lambda: [place])
    member = Membership(consumer, reading, {})
    note = member.noting()
    member.maybe_commit()
    assert consumer.commits == [], "it is not printed yet"
    note()
    for _ in range(3):
        member.maybe_commit()
    member.answered(None, [place])
    member.maybe_commit()
    assert consumer.commits == [[place]]
    member.answered(KafkaError(KafkaError._TRANSPORT), [])
    for _ in range(3):
        member.maybe_commit()
    assert consumer.commits == [[place], [place]]


def test_members_come_and_go(servers: str, klamm_command: Klamm, counted: str) -> None:
    """Everything is taken from a member for a moment when another one comes: that is no end."""
    words = ("consume", counted, "--group", f"{counted}-group", "--follow", "--bootstrap", servers)
    first = begun(*words, stdout=subprocess.PIPE)
    assert sorted(int(line_of(first.stdout)) for _ in range(20)) == list(range(20))
    second = begun(*words, stdout=subprocess.PIPE)
    try:
        wait_until(lambda: len(members(klamm_command, counted)) == 2, "each has a partition", within_seconds=40)
        klamm_command("produce", counted, "--partition", "0", "--value", "20")
        klamm_command("produce", counted, "--partition", "1", "--value", "21")
        assert {line_of(first.stdout), line_of(second.stdout)} == {b"20\n", b"21\n"}
        second.send_signal(signal.SIGINT)
        assert second.wait(LONG_SECONDS) == 130
        # Who goes in the middle of a rebalance may be refused the last commit, and says so.
        wait_until(lambda: is_shared_by(klamm_command, f"{counted}-group", 1), "one is left", within_seconds=40)
        first.send_signal(signal.SIGINT)
        assert first.wait(LONG_SECONDS) == 130
    finally:
        for each in (first, second):
            each.kill()
            each.communicate()
    assert klamm_command("consume", counted, "--group", f"{counted}-group")[:2] == (0, b"")


def test_a_member_without_a_partition_waits_for_one(servers: str, klamm_command: Klamm, topic: str) -> None:
    create_topic(servers, topic, 1)
    group = f"{topic}-group"
    words = ("consume", topic, "--group", group, "--follow", "--bootstrap", servers)
    both = [begun(*words, stdout=subprocess.PIPE) for _ in range(2)]
    try:
        wait_until(lambda: is_shared_by(klamm_command, group, 2), "both are members", within_seconds=40)
        (owner,) = members(klamm_command, topic)
        klamm_command("produce", topic, "--value", "a")
        ready = select.select([each.stdout for each in both], [], [], LONG_SECONDS)[0]
        first, second = both if both[0].stdout in ready else reversed(both)
        assert line_of(first.stdout) == b"a\n"
        first.send_signal(signal.SIGINT)
        assert first.wait(LONG_SECONDS) == 130
        wait_until(lambda: members(klamm_command, topic) - {owner} != set(), "the other has it", within_seconds=40)
        klamm_command("produce", topic, "--value", "b")
        assert line_of(second.stdout) == b"b\n"
    finally:
        for each in both:
            each.kill()
            each.communicate()


def is_shared_by(klamm_command: Klamm, group: str, count: int) -> bool:
    """By so many members, who have all been told what is theirs."""
    code, out, _ = klamm_command("group", "list", "--json")
    assert code == 0
    return any((each["group"], each["state"], each["members"]) == (group, "Stable", count) for each in json.loads(out))


def test_what_is_not_committed_is_no_success(
    klamm_command: Klamm, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An offset of a partition that is not there: the broker refuses that one."""
    produce(klamm_command, topic, tmp_path, b"1\n")
    monkeypatch.setattr(Reading, "positions", lambda _: [TopicPartition(topic, 99, 1)])
    code, out, err = klamm_command("consume", topic, "--group", f"{topic}-group")
    assert (code, out) == (1, b"1\n")
    assert err.startswith("klamm consume: the group's offsets could not be committed: ") and len(err.splitlines()) == 1


def test_nobody_tells_where_the_group_was(
    klamm_command: Klamm, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    produce(klamm_command, topic, tmp_path, b"1\n")

    class Unanswered(confluent_kafka.Consumer):
        def committed(self, *_: object, **__: object) -> None:
            raise confluent_kafka.KafkaException(confluent_kafka.KafkaError(confluent_kafka.KafkaError._TIMED_OUT))

    monkeypatch.setattr(confluent_kafka, "Consumer", Unanswered)
    code, out, err = klamm_command("consume", topic, "--group", f"{topic}-group")
    assert (code, out) == (1, b"")
    assert err.startswith("klamm consume: where the group was is not known: ") and len(err.splitlines()) == 1


def test_ctrl_c_in_the_middle_of_a_callback_is_one() -> None:
    """As confluent-kafka has it: the call fails, and the interrupt is gone."""

    class Client:
        def consume(self, *_: object) -> None:
            raise SystemError("returned NULL without setting an exception")

    reading = Reading(Client(), "topic", {}, lambda _: None)
    with pytest.raises(KeyboardInterrupt):
        next(reading.batches(None))


def members(klamm_command: Klamm, topic: str) -> set[str]:
    """Those that own a partition."""
    described = json.loads(klamm_command("group", "describe", f"{topic}-group", "--json")[1])
    (group,) = described if isinstance(described, list) else [described]
    return {each["member"] for each in group["partitions"] if each["member"]}


def test_what_was_not_written_is_not_committed(servers: str, klamm_command: Klamm, topic: str, tmp_path: Path) -> None:
    """The reader goes after some lines, with the pipe full; whoever goes on gets at least all that was not in it."""
    lines = [b"a long line that is read once or twice, number %d" % number for number in range(50_000)]
    produce(klamm_command, topic, tmp_path, b"\n".join(lines))
    group = ("--group", f"{topic}-group")
    reading = begun("consume", topic, *group, "--bootstrap", servers, stdout=subprocess.PIPE)
    assert reading.stdout is not None
    read = [reading.stdout.readline().rstrip() for _ in range(3)]
    reading.stdout.close()
    assert reading.wait(LONG_SECONDS) == 141
    code, out, _ = klamm_command("consume", topic, *group)
    assert (code, read) == (0, lines[:3])
    rest = out.splitlines()
    assert rest == lines[len(lines) - len(rest) :]
    assert len(rest) > 47_000, "a pipe holds 64 KiB, a batch many times that"
