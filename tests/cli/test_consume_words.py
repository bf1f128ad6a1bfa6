"""The words of `klamm consume`: where it begins and ends, how a pattern reads. And what produce finds in a pipe."""

import io
import os
from typing import Any

import pytest

from klamm.cli.consume_bounds import BEGINNING, END, Bound, bound_of
from klamm.cli.consume_formats import format_of, unescaped
from klamm.cli.options import Misused
from klamm.cli.produce_records import lines_and_whether_few

NOW_MS = 1_800_000_000_000
HOUR_MS = 3_600_000


@pytest.mark.parametrize(
    ("text", "bound"),
    [
        ("beginning", BEGINNING),
        ("earliest", BEGINNING),
        ("end", END),
        ("0", Bound(offset=0)),
        ("42", Bound(offset=42)),
        ("-5", Bound(before_end=5)),
        ("now", Bound(time_ms=NOW_MS)),
        ("1h", Bound(time_ms=NOW_MS - HOUR_MS)),
        ("1h ago", Bound(time_ms=NOW_MS - HOUR_MS)),
        ("1h30m ago", Bound(time_ms=NOW_MS - HOUR_MS * 3 // 2)),
        ("1.5h", Bound(time_ms=NOW_MS - HOUR_MS * 3 // 2)),
        ("2d", Bound(time_ms=NOW_MS - 48 * HOUR_MS)),
        ("90 s ago", Bound(time_ms=NOW_MS - 90_000)),
        ("3000w ago", BEGINNING),
        ("9" * 400 + "w", BEGINNING),
        ("P" + "9" * 40 + "D", BEGINNING),
        ("1969-12-31T23:59:59.999", BEGINNING),
        ("PT1H", Bound(time_ms=NOW_MS - HOUR_MS)),
        ("1970-01-02", Bound(time_ms=24 * HOUR_MS)),
        ("1970-01-01T01:00:00.250", Bound(time_ms=HOUR_MS + 250)),
        ("1970-01-01T03:00+02:00", Bound(time_ms=HOUR_MS)),
    ],
)
def test_where(text: str, bound: Bound) -> None:
    assert bound_of("--from", text, NOW_MS) == bound


@pytest.mark.parametrize("text", ["", "yesterday", "1x", "--5", "ago", "P", "2026-13-01", "1e3", "9" * 30])
def test_where_nobody_knows(text: str) -> None:
    with pytest.raises(Misused, match="expected beginning, end, an offset"):
        bound_of("--from", text, NOW_MS)


class Message:
    def __init__(self, key: bytes | None, value: bytes | None, time_ms: int | None = 0) -> None:
        self.key, self.value = lambda: key, lambda: value
        self.headers = lambda: [("a", b"1"), ("b", None)]
        self.partition, self.offset = lambda: 3, lambda: 7
        self.timestamp = lambda: (0, 0) if time_ms is None else (1, time_ms)


def shown(pattern: str, *messages: Message, null: bytes = b"", **others: Any) -> bytes:
    return format_of(pattern, "t", null, others.get("prefix", ()), others.get("separator", "\t"))(messages)


def test_a_letter_that_means_nothing() -> None:
    """It offered %s, which --help does not know."""
    with pytest.raises(Misused, match="there is no %z; there are %t %p %o %T %d %k %v %K %S %h and %%"):
        shown("%z")


def test_patterns() -> None:
    assert shown("%t-%p@%o\n", Message(b"k", b"v"), Message(None, None)) == b"t-3@7\nt-3@7\n"
    assert shown("[%k|%v|%s|%K|%S]", Message(b"kk", None), null=b"~") == b"[kk|~|~|2|-1]"
    assert shown("%h %d %T", Message(b"k", b"v"), null=b"~") == b"a=1,b=~ 1970-01-01T00:00:00.000Z 0"
    assert shown("%d %T", Message(b"k", b"v", None)) == b"- -1"
    assert shown("%d", Message(b"k", b"v", 1 << 62)) == b"%d" % (1 << 62)
    assert shown("100%% \\x00\\xff\\\\%v", Message(b"k", b"\xfe")) == b"100% \x00\xff\\\xfe"


def test_values_with_what_stands_before_them() -> None:
    messages = Message(b"k", b"v"), Message(None, None)
    assert shown("value", *messages) == b"v\n\n"
    assert shown("value", *messages, null=b"~") == b"v\n~\n"
    assert shown("value", *messages, prefix=["%k"], separator="%") == b"k%v\n%\n"


def test_what_no_character_is_meant_by_stays() -> None:
    assert unescaped(r"\n\t\q\x4") == "\n\t\\q\\x4"


# What produce finds in a pipe.


@pytest.fixture
def pipe() -> Any:
    reading, writing = os.pipe()
    with open(reading, "rb") as reader, open(writing, "wb", buffering=0) as writer:  # noqa: PTH123
        yield reader, writer


def test_lines_of_somebody_who_has_ended_are_few(pipe: tuple[io.BufferedReader, io.FileIO]) -> None:
    reader, writer = pipe
    writer.write(b"one\n\ntwo")
    writer.close()
    lines, are_few = lines_and_whether_few(reader)
    assert (list(lines), are_few) == ([b"one\n", b"\n", b"two"], True)


def test_lines_of_somebody_who_still_writes_are_not_and_none_is_cut(pipe: tuple[io.BufferedReader, io.FileIO]) -> None:
    reader, writer = pipe
    writer.write(b"one\ntw")
    lines, are_few = lines_and_whether_few(reader)
    assert not are_few
    writer.write(b"o\nthree")
    writer.close()
    assert list(lines) == [b"one\n", b"two\n", b"three"]


def test_nothing_yet_is_not_waited_for(pipe: tuple[io.BufferedReader, io.FileIO]) -> None:
    reader, writer = pipe
    lines, are_few = lines_and_whether_few(reader)
    assert not are_few
    writer.close()
    assert list(lines) == []


def test_many_lines_are_not_few() -> None:
    with open("/dev/zero", "rb") as zeros:  # noqa: PTH123
        assert not lines_and_whether_few(zeros)[1]
