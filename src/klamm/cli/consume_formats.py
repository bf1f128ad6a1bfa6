"""How `klamm consume` shows records: values, lines of JSON, or a pattern of one's own, a whole batch at a time.

On a terminal, what would move the cursor or change colours is shown as an escape where a record holds it; a pattern's
own escapes are its writer's wish. In a file, or for another program, all bytes are as they were.

%t topic   %p partition   %o offset   %T timestamp in ms   %d the same as 2026-11-16T06:30:00.000Z
%k key     %v value (%s, too, as in kcat)   %K %S their sizes in bytes, -1 for null   %h headers, as a=1,b=2
%% %       \\n \\t \\r \\0 \\\\ \\x1f   a line's end, a tab and so on; nothing is added to a pattern
"""

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from klamm.cli.json_records import json_of
from klamm.cli.options import Misused
from klamm.escaping import escaped, escaped_json

if TYPE_CHECKING:
    from confluent_kafka import Message

T = TypeVar("T")
Format = Callable[[Sequence[Any]], bytes]
"""Of messages, not one of them an error."""

ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|.)", re.DOTALL)
ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "\\": "\\"}
TOKEN = re.compile(r"%(.?)", re.DOTALL)
OF_KCAT = "s"
"""Taken for %v, as kcat's users type it, and not advertised."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def format_of(
    text: str, topic: str, null: bytes, prefix: Sequence[str], separator: str, *, for_terminal: bool = False
) -> Format:
    """`value` with the prefixes that were asked for, `json`, or a pattern."""
    if text == "json":
        return _json_format(topic, escaped_json if for_terminal else _as_it_is)
    clean = _cleaned if for_terminal else _as_it_is
    if text == "value" and not prefix:
        return _value_format(null, clean)
    if text == "value":
        between = separator.replace("%", "%%")
        return pattern_format(f"{between.join([*prefix, '%v'])}\\n", topic, null, clean)
    if "%" not in text:
        raise Misused(f"--format {text}: expected value, json, or a pattern as '%o %k %v\\n'")
    return pattern_format(text, topic, null, clean)


def _as_it_is(it: T) -> T:
    return it


def _cleaned(data: bytes) -> bytes:
    """For a terminal. What is no UTF-8 may be control characters of eight bits to it."""
    return escaped(data.decode(errors="backslashreplace")).encode()


def _value_format(null: bytes, clean: Callable[[bytes], bytes]) -> Format:
    def lines(messages: "Sequence[Message]") -> bytes:
        values: list[Any] = [message.value() for message in messages]
        try:
            text = b"\n".join(values)
        except TypeError:
            text = b"\n".join([null if value is None else value for value in values])
        return clean(text) + b"\n"

    return lines


def _json_format(topic: str, clean: Callable[[str], str]) -> Format:
    line = json_of(topic)

    def lines(messages: "Sequence[Message]") -> bytes:
        return (clean("\n".join([line(message) for message in messages])) + "\n").encode()

    return lines


def pattern_format(pattern: str, topic: str, null: bytes, clean: Callable[[bytes], bytes]) -> Format:
    parts = _parts(topic, null, clean)
    used: list[Callable[[Message], object]] = []

    def token(found: "re.Match[str]") -> str:
        letter = found[1]
        if letter == "%":
            return "%%"
        if letter not in parts:
            known = " ".join(f"%{each}" for each in parts if each not in OF_KCAT)
            raise Misused(f"--format: there is no %{letter}; there are {known} and %%")
        kind, part = parts[letter]
        used.append(part)
        return kind

    template = TOKEN.sub(token, unescaped(pattern)).encode(errors="surrogateescape")

    def shown(messages: "Sequence[Message]") -> bytes:
        return b"".join([template % tuple([part(message) for part in used]) for message in messages])

    return shown


def unescaped(text: str) -> str:
    def character(found: "re.Match[str]") -> str:
        what = found[1]
        if what[0] == "x" and len(what) == 3:
            return bytes([int(what[1:], 16)]).decode(errors="surrogateescape")
        return ESCAPES.get(what, found[0])

    return ESCAPE.sub(character, text)


def _parts(
    topic: str, null: bytes, clean: Callable[[bytes], bytes]
) -> "dict[str, tuple[str, Callable[[Message], object]]]":
    """What each letter stands for: how bytes are formatted with it, and where it comes from."""

    def of(data: Any) -> bytes:
        return null if data is None else clean(data)

    def size(data: Any) -> int:
        return -1 if data is None else len(data)

    name = topic.encode()
    return {
        "t": ("%b", lambda message: name),
        "p": ("%d", lambda message: message.partition()),
        "o": ("%d", lambda message: message.offset()),
        "T": ("%d", lambda message: _time_ms(message)),
        "d": ("%b", lambda message: _date(_time_ms(message))),
        "k": ("%b", lambda message: of(message.key())),
        "v": ("%b", lambda message: of(message.value())),
        "s": ("%b", lambda message: of(message.value())),
        "K": ("%d", lambda message: size(message.key())),
        "S": ("%d", lambda message: size(message.value())),
        "h": ("%b", lambda message: clean(_headers(message.headers(), null))),
    }


def _time_ms(message: "Message") -> int:
    """-1 for a record that has none."""
    kind, time_ms = message.timestamp()
    return time_ms if kind else -1


def _date(time_ms: int) -> bytes:
    if time_ms < 0:
        return b"-"
    try:
        moment = EPOCH + timedelta(milliseconds=time_ms)
    except OverflowError:
        return b"%d" % time_ms
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z").encode()


def _headers(headers: Any, null: bytes) -> bytes:
    return b",".join(b"%b=%b" % (name.encode(), null if value is None else value) for name, value in headers or ())
