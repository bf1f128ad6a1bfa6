"""`klamm produce` and `klamm consume`, against a cluster: what goes in comes out."""

import argparse
import json
import os
import signal
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from klamm.cli import main
from klamm.cli.carried_out import carried_out
from tests.cli.conftest import Klamm
from tests.cli.sending import LONG_SECONDS, begun, produce
from tests.harness.topics import create_topic
from tests.harness.waiting import wait_until


def records(klamm_command: Klamm, topic: str, *words: str) -> list[dict[str, Any]]:
    code, out, err = klamm_command("consume", topic, "--json", *words)
    assert code == 0, err
    return [json.loads(line) for line in out.splitlines()]


# In and out.


def test_every_line_is_a_record(klamm_command: Klamm, topic: str, tmp_path: Path) -> None:
    code, out, err = produce(klamm_command, topic, tmp_path, b"a\n\nb c\r\nlast")
    assert (code, out) == (0, b"")
    made, summary = err.splitlines()
    assert made == f"there was no topic {topic}: the cluster has made it, 1 partition, 3 replicas"
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
    # The leader alone has acknowledged them: they can be read when the others have them, too.
    wait_until(lambda: len(records(klamm_command, topic)) == 2, "both can be read")
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


@pytest.mark.parametrize(
    "line", ['{"headers": [["\\ud800", "x"]]}', '{"partition": 3000000000}', '{"timestamp": 99999999999999999999}']
)
def test_a_line_that_has_no_room_in_the_protocol_is_no_record(
    servers: str, topic: str, tmp_path: Path, line: str
) -> None:
    """In a process of its own: librdkafka died of some of them."""
    (tmp_path / "input").write_text(f'{{"value": "a"}}\n{line}\n')
    words = ("produce", topic, "--format", "json", "--file", str(tmp_path / "input"), "--bootstrap", servers)
    sending = begun(*words, stderr=subprocess.PIPE)
    err = sending.communicate(timeout=LONG_SECONDS)[1].decode()
    assert sending.returncode == 1 and "input, line 2 has " in err, err
    assert f"1 sent to {topic}, 1 acknowledged" in err and "Traceback" not in err


def test_input_that_cannot_be_read_any_more_ends_in_an_account(servers: str, topic: str) -> None:
    """A terminal that goes away gives what was typed, and then an error."""
    ours, theirs = os.openpty()
    sending = begun("produce", topic, "--bootstrap", servers, stdin=ours, stderr=subprocess.PIPE)
    assert sending.stderr is not None and b"the cluster has made it" in sending.stderr.readline()
    # Until then it looks whether it is a terminal that it reads.
    assert b"Ctrl-D ends" in sending.stderr.readline()
    os.write(theirs, b"a\n")
    os.close(theirs)
    err = sending.communicate(timeout=LONG_SECONDS)[1].decode()
    os.close(ours)
    assert sending.returncode == 1, err
    summary, problem = err.splitlines()
    assert summary.startswith(f"1 sent to {topic}, 1 acknowledged, 0 failed")
    assert problem == "klamm produce: Input/output error"


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
        (("--partition", "0", "--from", "99999999999999w ago"), "0 1 2 3 4 5 6 7 8 9"),
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


def test_an_offset_beyond_the_end_is_said_to_be(klamm_command: Klamm, counted: str) -> None:
    code, out, err = klamm_command("consume", counted, "--from", "9999", "--count", "1")
    assert (code, out) == (0, b"")
    assert f"offset 9999 is beyond the end of the log, {counted} ends at 10; that is taken instead" in err


def test_nothing_there_is_said(klamm_command: Klamm, servers: str, topic: str) -> None:
    create_topic(servers, topic, 2)
    code, out, err = klamm_command("consume", topic)
    assert (code, out) == (0, b"") and "nothing there in 2 partitions" in err
    assert klamm_command("consume", topic, "--count", "0") == (0, b"", ""), "nobody has looked"


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
        (("produce", "\udcff", "--value", "a"), 2, "is no UTF-8"),
        (("consume", "not-there"), 1, "there is no topic not-there"),
        (("consume", "x", "--from", "yesterday"), 2, "'1h ago'"),
        (("consume", "x", "--format", "jsn"), 2, "expected value, json, or a pattern"),
        (("consume", "x", "--format", "%q"), 2, "there is no %q"),
        (("consume", "x", "--group", "g", "--partition", "0"), 2, "say one of them"),
        (("produce", "x", "--value", "a", "--header", "\udcff=1"), 2, "its name is no UTF-8"),
    ],
)
def test_what_is_refused_is_said_in_words(klamm_command: Klamm, words: tuple[str, ...], code: int, said: str) -> None:
    ended, out, err = klamm_command(*words)
    assert (ended, out) == (code, b"") and said in err, err
    assert len(err.splitlines()) == 1


def test_a_topic_that_is_nearly_there(klamm_command: Klamm, counted: str) -> None:
    code, out, err = klamm_command("consume", f"{counted}s")
    assert (code, out) == (1, b"")
    assert err == f"klamm consume: there is no topic {counted}s. Did you mean {counted}?\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("produce", "x", "--timeout", "3000000"), "above 0 and at most 2147483"),
        (("produce", "x", "--timeout", "inf"), "above 0 and at most 2147483"),
        (("produce", "x", "--rate", "nan"), "expected a number above 0"),
        (("consume", "x", "--count", "9" * 30), "expected a number from 0 to"),
        (("bench", "--partitions", "99999999999"), "expected a number from 1 to 2147483647"),
        (("bench", "--size", "99999999999"), "expected a number from 0 to"),
        (("topic", "create", "x", "--partitions", "99999999999"), "expected a number from 1 to 2147483647"),
        (("topic", "create", "x", "--partitions", "0"), "0: expected a number from 1 to 2147483647"),
        (("topic", "create", "x", "--partitions", "-1"), "-1: expected a number from 1 to 2147483647"),
        (("topic", "create", "x", "--replication", "0"), "0: expected a number from 1 to 32767"),
        (("topic", "alter", "x", "--partitions", "0"), "0: expected a number from 1 to 2147483647"),
    ],
)
def test_numbers_that_there_is_no_room_for(
    words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2 and said in capsys.readouterr().err


@pytest.mark.parametrize("words", [(), ("--group", "g")])
def test_a_full_disk_is_said(servers: str, counted: str, words: tuple[str, ...]) -> None:
    with Path("/dev/full").open("wb") as full:
        reading = begun("consume", counted, *words, "--bootstrap", servers, stdout=full, stderr=subprocess.PIPE)
        err = reading.communicate(timeout=LONG_SECONDS)[1]
        assert (reading.returncode, err) == (1, b"klamm consume: No space left on device\n")
        listing = begun("topic", "list", "--bootstrap", servers, stdout=full, stderr=subprocess.PIPE)
        err = listing.communicate(timeout=LONG_SECONDS)[1]
    assert listing.returncode == 1 and err.endswith(b"No space left on device\n") and len(err.splitlines()) == 1


def test_what_the_client_library_refuses_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    def act() -> int:
        Producer({"bootstrap.servers": "x", "message.timeout.ms": -1})
        return 0

    assert carried_out("produce", argparse.Namespace(), act) == 1
    assert capsys.readouterr().err.startswith("klamm produce: Configuration property")


def test_a_partition_that_is_not_there(klamm_command: Klamm, counted: str) -> None:
    for words in (("produce", counted, "--value", "a"), ("consume", counted)):
        code, _, err = klamm_command(*words, "--partition", "2")
        assert code == 2 and f"there is no partition 2 of {counted}: it has 0 to 1" in err


@pytest.mark.parametrize("words", [("produce", "x", "--value", "a"), ("consume", "x"), ("bench",)])
def test_nobody_there_is_said_at_once(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*words, "--bootstrap", "127.0.0.1:1"]) == 1
    assert "no broker answers" in capsys.readouterr().err
