"""`klamm produce` and `klamm consume`, against a cluster: what goes in comes out."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

import pytest
from confluent_kafka import Producer

from klamm.cli import main
from tests.cli.conftest import Klamm
from tests.harness.topics import create_topic
from tests.harness.waiting import wait_until

LONG_SECONDS = 60.0
HOUR_MS = 3_600_000


def produce(klamm_command: Klamm, topic: str, tmp_path: Path, data: bytes, *words: str) -> tuple[int, bytes, str]:
    (tmp_path / "input").write_bytes(data)
    return klamm_command("produce", topic, "--file", str(tmp_path / "input"), *words)


def records(klamm_command: Klamm, topic: str, *words: str) -> list[dict[str, Any]]:
    code, out, err = klamm_command("consume", topic, "--json", *words)
    assert code == 0, err
    return [json.loads(line) for line in out.splitlines()]


def begun(*words: str, **others: Any) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, "-m", "klamm", *words], **others)


@pytest.fixture
def counted(servers: str, topic: str) -> str:
    """A topic of two partitions with ten records each, one an hour, the last one just now: 0 to 9 and 10 to 19."""
    create_topic(servers, topic, 2)
    now_ms = int(time.time() * 1_000)
    producer = Producer({"bootstrap.servers": servers})
    for number in range(20):
        age_ms = HOUR_MS * (9 - number % 10)
        producer.produce(topic, str(number), partition=number // 10, timestamp=now_ms - age_ms)
    assert producer.flush(LONG_SECONDS) == 0
    return topic


# In and out.


def test_every_line_is_a_record(klamm_command: Klamm, topic: str, tmp_path: Path) -> None:
    code, out, err = produce(klamm_command, topic, tmp_path, b"a\n\nb c\r\nlast")
    assert (code, out) == (0, b"")
    made, summary = err.splitlines()
    assert made == f"there was no topic {topic}: the cluster has made it, 1 partition"
    assert summary.startswith(f"4 sent to {topic}, 4 acknowledged, 0 failed in ")
    assert klamm_command("consume", topic) == (0, b"a\n\nb c\r\nlast\n", "")


def test_many_lines_stay_in_order(klamm_command: Klamm, topic: str, tmp_path: Path) -> None:
    data = b"".join(b"this is line %d\n" % number for number in range(50_000))
    assert produce(klamm_command, topic, tmp_path, data)[0] == 0
    assert klamm_command("consume", topic) == (0, data, "")


def test_keys_from_lines_are_shown_again(klamm_command: Klamm, topic: str, tmp_path: Path) -> None:
    data = b"ann\tone\nbob\ttwo\tand\nnobody\nann\tNULL\n"
    assert produce(klamm_command, topic, tmp_path, data, "--key-separator", "\\t", "--null", "NULL")[0] == 0
    code, out, _ = klamm_command("consume", topic, "--key", "--null", "NULL")
    assert (code, out) == (0, b"ann\tone\nbob\ttwo\tand\nNULL\tnobody\nann\tNULL\n")


def test_what_the_options_say_of_every_record(klamm_command: Klamm, servers: str, topic: str) -> None:
    create_topic(servers, topic, 3)
    words = ("--key", "k", "--header", "a=1", "--header", "a=", "--partition", "2", "--acks", "1")
    assert klamm_command("produce", topic, "--value", "x", "--value", "y", *words, "--compression", "zstd")[0] == 0
    first, second = records(klamm_command, topic)
    assert (first["value"], second["value"]) == ("x", "y")
    assert first["headers"] == [["a", "1"], ["a", ""]]
    assert (first["partition"], first["key"], first["offset"], second["offset"]) == (2, "k", 0, 1)
    code, out, _ = klamm_command("consume", topic, "--key", "--headers", "--key-separator", "|", "--count", "1")
    assert (code, out) == (0, b"a=1,a=|k|x\n")


def test_a_tombstone(klamm_command: Klamm, topic: str) -> None:
    assert klamm_command("produce", topic, "--key", "ann", "--tombstone")[0] == 0
    (record,) = records(klamm_command, topic)
    assert (record["key"], record["value"]) == ("ann", None)


def test_a_whole_file_is_one_record(klamm_command: Klamm, topic: str, tmp_path: Path) -> None:
    data = bytes(range(256)) * 10
    assert produce(klamm_command, topic, tmp_path, data, "--whole")[0] == 0
    assert klamm_command("consume", topic, "--format", "%v") == (0, data, "")


def test_json_goes_round(klamm_command: Klamm, servers: str, topic: str, tmp_path: Path) -> None:
    """Binary, null and empty, repeated headers, partitions and timestamps."""
    create_topic(servers, topic, 2)
    create_topic(servers, f"{topic}-copy", 2)
    producer = Producer({"bootstrap.servers": servers})
    values: list[bytes | None] = [b"\xff\x00", None, b"", 'Grüße\n\u2028"'.encode(), b'{"base64": "x"}']
    for number, value in enumerate(values):
        headers: list[tuple[str, Any]] = [("ä", b"\xfe"), ("ä", None), ("b", b"")] if number else []
        producer.produce(topic, value, value, number % 2, timestamp=1_000_000 + number, headers=headers)
    assert producer.flush(LONG_SECONDS) == 0
    code, out, _ = klamm_command("consume", topic, "--format", "json")
    assert code == 0
    assert produce(klamm_command, f"{topic}-copy", tmp_path, out, "--format", "json")[0] == 0
    before, after = records(klamm_command, topic), records(klamm_command, f"{topic}-copy")
    assert len(after) == len(values)
    key = lambda record: (record["partition"], record["offset"])  # noqa: E731
    assert [{**each, "topic": topic} for each in sorted(after, key=key)] == sorted(before, key=key)


def test_a_pattern(klamm_command: Klamm, topic: str) -> None:
    klamm_command("produce", topic, "--key", "k", "--value", "hello", "--header", "a=1")
    (record,) = records(klamm_command, topic)
    code, out, _ = klamm_command("consume", topic, "--format", r"%t %p %o %k %v %h %T %K %S %%\x21\t%s\n")
    assert (code, out.decode()) == (0, f"{topic} 0 0 k hello a=1 {record['timestamp']} 1 5 %!\thello\n")


def test_standard_input_and_output_are_pipes(servers: str, topic: str) -> None:
    where = ("--bootstrap", servers)
    sending = begun("produce", topic, *where, stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    _, err = sending.communicate(b"one\ntwo\n", timeout=LONG_SECONDS)
    assert sending.returncode == 0 and b"2 sent" in err
    reading = begun("consume", topic, *where, stdout=subprocess.PIPE)
    copying = begun("produce", f"{topic}-copy", *where, stdin=reading.stdout, stderr=subprocess.PIPE)
    assert copying.communicate(timeout=LONG_SECONDS)[1].endswith(b" a second)\n")
    assert (reading.wait(LONG_SECONDS), copying.returncode) == (0, 0)


def test_so_many_so_quickly(klamm_command: Klamm, topic: str, tmp_path: Path) -> None:
    began = time.monotonic()
    code, out, err = produce(klamm_command, topic, tmp_path, b"x\n" * 100, "--rate", "50", "--count", "26", "--json")
    assert code == 0 and time.monotonic() - began >= 0.5
    told = json.loads(out)
    assert (told["sent"], told["acknowledged"], told["failed"], told["problems"]) == (26, 26, 0, {})
    assert "sent" not in err


# What is not acknowledged.


def test_a_record_that_is_refused_is_counted_and_the_others_are_sent(
    klamm_command: Klamm, servers: str, topic: str, tmp_path: Path
) -> None:
    create_topic(servers, topic, 1, {"max.message.bytes": "1000"})
    # So few a second that each goes alone: the broker refuses whole batches.
    code, out, err = produce(klamm_command, topic, tmp_path, b"a\n" + b"x" * 5_000 + b"\nb\n", "--rate", "5")
    assert (code, out) == (1, b"")
    assert "1 record failed: " in err and "3 sent" in err and "2 acknowledged, 1 failed" in err
    assert klamm_command("consume", topic)[1] == b"a\nb\n"


def test_a_line_that_is_no_record_stops_it_there(klamm_command: Klamm, topic: str, tmp_path: Path) -> None:
    code, _, err = produce(klamm_command, topic, tmp_path, b'{"value": "a"}\n\n{"value": 3}\n{}\n', "--format", "json")
    assert code == 1 and "input, line 3 has a value that is no string" in err
    assert f"1 sent to {topic}, 1 acknowledged" in err
    assert klamm_command("consume", topic)[1] == b"a\n"


def test_ctrl_c_sends_what_was_read(servers: str, topic: str) -> None:
    sending = begun("produce", topic, "--bootstrap", servers, stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    assert sending.stdin is not None and sending.stderr is not None
    assert b"the cluster has made it" in sending.stderr.readline()
    sending.stdin.write(b"one\ntwo\n")
    sending.stdin.flush()
    reading = begun("consume", topic, "--follow", "--count", "2", "--bootstrap", servers, stdout=subprocess.PIPE)
    assert reading.communicate(timeout=LONG_SECONDS)[0] == b"one\ntwo\n"
    sending.send_signal(signal.SIGINT)
    assert sending.wait(LONG_SECONDS) == 130
    assert f"2 sent to {topic}, 2 acknowledged, 0 failed".encode() in sending.stderr.read()
    sending.stdin.close()


def test_standard_input_that_is_closed_is_said(servers: str) -> None:
    command = f"{sys.executable} -m klamm produce x --bootstrap {servers} <&-"
    ended = subprocess.run(["bash", "-c", command], capture_output=True, timeout=LONG_SECONDS, check=False)
    assert ended.returncode == 2 and ended.stderr.startswith(b"klamm produce: standard input is closed")


def test_progress_is_for_a_terminal_and_when_it_takes_long(servers: str, topic: str, tmp_path: Path) -> None:
    (tmp_path / "input").write_bytes(b"x\n" * 15)
    words = ("produce", topic, "--rate", "10", "--file", str(tmp_path / "input"), "--bootstrap", servers)
    terminal, its_end = os.openpty()
    assert begun(*words, stderr=its_end).wait(LONG_SECONDS) == 0
    os.close(its_end)
    said = os.read(terminal, 100_000).decode()
    os.close(terminal)
    assert " acknowledged, " in said.partition(f"15 sent to {topic}")[0]
    quiet = subprocess.run(
        [sys.executable, "-m", "klamm", *words], capture_output=True, timeout=LONG_SECONDS, check=True
    )
    assert len(quiet.stderr.splitlines()) == 1


# From where, and up to where.


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--partition", "0"), "0 1 2 3 4 5 6 7 8 9"),
        (("--partition", "0", "--from", "7"), "7 8 9"),
        (("--partition", "0", "--from", "-2"), "8 9"),
        (("--partition", "0", "--from", "2", "--until", "4"), "2 3"),
        (("--partition", "0", "--from", "2", "--count", "3"), "2 3 4"),
        (("--partition", "0", "--until", "-8"), "0 1"),
        (("--partition", "0", "--from", "99"), ""),
        (("--partition", "0", "--from", "end"), ""),
        (("--partition", "0", "--count", "0"), ""),
        (("--partition", "0", "--from", "150m ago"), "7 8 9"),
        (("--partition", "0", "--from", "PT2H30M", "--until", "30m"), "7 8"),
        (("--from", "-1"), "9 19"),
        (("--from", "8", "--partition", "0", "--partition", "1"), "8 9 18 19"),
    ],
)
def test_a_part_of_it(klamm_command: Klamm, counted: str, words: tuple[str, ...], expected: str) -> None:
    code, out, _ = klamm_command("consume", counted, *words)
    assert code == 0
    assert sorted(map(int, out.split())) == list(map(int, expected.split()))


def test_a_time_is_a_time_of_the_records(klamm_command: Klamm, counted: str) -> None:
    at = datetime.fromtimestamp(time.time() - 2.5 * 3_600, UTC)
    for text in (at.isoformat(), at.replace(tzinfo=None).isoformat(timespec="minutes")):
        code, out, _ = klamm_command("consume", counted, "--partition", "1", "--from", text)
        assert (code, out) == (0, b"17\n18\n19\n")


def test_it_ends_at_the_end_that_was_there(klamm_command: Klamm, servers: str, counted: str) -> None:
    """However quickly others write."""
    ends = threading.Event()

    def write() -> None:
        producer = Producer({"bootstrap.servers": servers})
        while not ends.is_set():
            producer.produce(counted, b"100", partition=0)
            producer.poll(0.0005)
        producer.flush(LONG_SECONDS)

    writing = threading.Thread(target=write)
    writing.start()
    try:
        code, out, _ = klamm_command("consume", counted)
    finally:
        ends.set()
        writing.join(LONG_SECONDS)
    assert code == 0
    assert sorted(number for number in map(int, out.split()) if number < 100) == list(range(20))


def test_nothing_there_is_said(klamm_command: Klamm, servers: str, topic: str) -> None:
    create_topic(servers, topic, 2)
    code, out, err = klamm_command("consume", topic)
    assert (code, out) == (0, b"") and "nothing there in 2 partitions" in err


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


def line_of(pipe: IO[bytes] | None) -> bytes:
    assert pipe is not None
    return pipe.readline()


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
    soon = datetime.fromtimestamp(time.time() + 1.5, UTC).isoformat()
    assert klamm_command(*words, "--until", soon)[:2] == (0, b"9\na\nb\n")


# As a member of a group.


def test_a_group_goes_on_where_it_was(klamm_command: Klamm, topic: str, tmp_path: Path) -> None:
    produce(klamm_command, topic, tmp_path, b"1\n2\n3\n4\n5\n")
    words = ("consume", topic, "--group", f"{topic}-group")
    assert klamm_command(*words, "--count", "2") == (0, b"1\n2\n", "")
    assert klamm_command(*words) == (0, b"3\n4\n5\n", "")
    assert klamm_command(*words) == (0, b"", "")
    produce(klamm_command, topic, tmp_path, b"6\n")
    assert klamm_command(*words, "--from", "beginning") == (0, b"6\n", "")
    described = json.loads(klamm_command("group", "describe", f"{topic}-group", "--json")[1])
    (group,) = described if isinstance(described, list) else [described]
    assert group["lag"] == 0
    assert klamm_command("consume", topic, "--group", f"{topic}-new", "--from", "-2") == (0, b"5\n6\n", "")


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
        for each in (second, first):
            each.send_signal(signal.SIGINT)
            assert each.wait(LONG_SECONDS) == 130
    finally:
        for each in (first, second):
            each.kill()
            each.communicate()
    assert klamm_command("consume", counted, "--group", f"{counted}-group") == (0, b"", "")


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


# What makes no sense.


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("produce", "x", "--key", "a", "--key-separator", ":"), 2, "say one of them"),
        (("produce", "x", "--tombstone"), 2, "--tombstone needs --key"),
        (("produce", "x", "--value", "a", "--file", "f"), 2, "say one of them"),
        (("produce", "x", "--file", "not-there"), 2, "cannot read not-there: No such file"),
        (("produce", "x", "--value", "a", "--header", "a"), 2, "NAME=VALUE"),
        (("produce", "x", "--value", "a", "--partition", "two"), 2, "or any"),
        (("produce", "not/a/name", "--value", "a"), 2, "Topic name is invalid"),
        (("consume", "not-there"), 1, "there is no topic not-there"),
        (("consume", "x", "--from", "yesterday"), 2, "'1h ago'"),
        (("consume", "x", "--format", "jsn"), 2, "expected value, json, or a pattern"),
        (("consume", "x", "--format", "%q"), 2, "there is no %q"),
        (("consume", "x", "--group", "g", "--partition", "0"), 2, "say one of them"),
    ],
)
def test_what_is_refused_is_said_in_words(klamm_command: Klamm, words: tuple[str, ...], code: int, said: str) -> None:
    ended, out, err = klamm_command(*words)
    assert (ended, out) == (code, b"") and said in err, err
    assert len(err.splitlines()) == 1


def test_a_partition_that_is_not_there(klamm_command: Klamm, counted: str) -> None:
    for words in (("produce", counted, "--value", "a"), ("consume", counted)):
        code, _, err = klamm_command(*words, "--partition", "2")
        assert code == 2 and f"there is no partition 2 of {counted}: it has 0 to 1" in err


@pytest.mark.parametrize("words", [("produce", "x", "--value", "a"), ("consume", "x"), ("bench",)])
def test_nobody_there_is_said_at_once(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*words, "--bootstrap", "127.0.0.1:1"]) == 1
    assert "no broker answers" in capsys.readouterr().err
