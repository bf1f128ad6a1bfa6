"""Records as lines of JSON, the same in both directions: what `klamm consume` prints, `klamm produce` takes.

    {"topic": "t", "partition": 0, "offset": 7, "timestamp": 1700000000000, "key": "a", "value": "x", "headers": []}

One rule for keys, values and the values of headers: a string is UTF-8 text, {"base64": "…"} is any other bytes, null is
null. Headers are a list of [name, value], because names may repeat and their order counts; a plain object will do, too.
`produce` leaves topic and offset aside, and everything but the value may be missing; a missing value is null.
"""

import json
from base64 import b64decode, b64encode
from collections.abc import Callable, Sequence
from json.encoder import encode_basestring
from typing import Any

ANY_PARTITION = -1
NOW_MS = 0
"""What librdkafka takes for "you choose" and "the time it is"."""
LAST_PARTITION, LAST_MS = (1 << 31) - 1, (1 << 63) - 1
"""What the protocol has room for."""

Headers = Sequence[tuple[str, bytes | None]]
Record = tuple[bytes | None, bytes | None, int, None, None, int, Headers | None]
"""Value, key, partition, no callback, timestamp, headers: as `Producer.produce` takes them after the topic."""

LONGEST_SHOWN = 60

FIELDS = {"topic", "partition", "offset", "timestamp", "key", "value", "headers"}


class NotARecord(Exception):  # noqa: N818
    """A line that says no record, and why not."""


def json_of(topic: str) -> Callable[[Any], str]:
    """Writes messages of one topic, a line each, without the line's end."""
    start = f'{{"topic": {encode_basestring(topic)}, "partition": '

    def line(message: Any) -> str:
        headers = message.headers()
        kind, time_ms = message.timestamp()
        return (
            f'{start}{message.partition()}, "offset": {message.offset()}, "timestamp": {time_ms if kind else "null"}, '
            f'"key": {_text(message.key())}, "value": {_text(message.value())}, '
            f'"headers": {_headers_text(headers) if headers else "[]"}}}'
        )

    return line


def record_of(line: bytes) -> Record:
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError) as problem:
        raise NotARecord(f"is no JSON: {problem}") from None
    if not isinstance(fields, dict):
        raise NotARecord('is no JSON object, as {"key": "a", "value": "x"}')
    if unknown := sorted(fields.keys() - FIELDS):
        raise NotARecord(f"has a field {unknown[0]!r}; a record has {', '.join(sorted(FIELDS))}")
    headers = fields.get("headers")
    return (
        _bytes("value", fields.get("value")),
        _bytes("key", fields.get("key")),
        _whole("partition", fields.get("partition"), LAST_PARTITION, ANY_PARTITION),
        None,
        None,
        _whole("timestamp", fields.get("timestamp"), LAST_MS, NOW_MS),
        _headers(headers) if headers else None,
    )


def is_text(text: str) -> bool:
    """UTF-8 has bytes for it. Half a surrogate pair is a str in Python, and librdkafka dies of it."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _text(data: "bytes | str | None") -> str:
    if data is None:
        return "null"
    try:
        return encode_basestring(data if isinstance(data, str) else data.decode())
    except UnicodeDecodeError:
        assert isinstance(data, bytes)
        return f'{{"base64": "{b64encode(data).decode()}"}}'


def _headers_text(headers: "Sequence[tuple[str, bytes | str | None]]") -> str:
    return "[" + ", ".join(f"[{encode_basestring(name)}, {_text(value)}]" for name, value in headers) + "]"


def _bytes(field: str, said: Any) -> bytes | None:
    if said is None:
        return None
    if isinstance(said, str):
        if not is_text(said):
            raise NotARecord(f"has half a character in its {field}; bytes are written as base64")
        return said.encode()
    if isinstance(said, dict) and said.keys() == {"base64"} and isinstance(said["base64"], str):
        try:
            return b64decode(said["base64"], validate=True)
        except ValueError as problem:
            raise NotARecord(f"has a {field} that is no base64: {problem}") from None
    raise NotARecord(f'has a {field} that is no string, {{"base64": "…"}} or null; {_in_a_string(field, said)}')


def _in_a_string(field: str, said: Any) -> str:
    """How a document would be sent. Not as it stands: {"base64": "…"} may be one, or bytes."""
    written = json.dumps(json.dumps(said, separators=(",", ":"), ensure_ascii=False), ensure_ascii=False)
    shown = written if len(written) <= LONGEST_SHOWN else r'"{\"a\":1}"'
    how = f" (`jq -c '.{field} |= tojson'` writes it so)" if field in FIELDS else ""
    return f'a document goes into a string, as "{field}": {shown}{how}'


def _whole(field: str, said: Any, most: int, otherwise: int) -> int:
    if said is None:
        return otherwise
    if type(said) is not int or not 0 <= said <= most:
        raise NotARecord(f"has a {field} that is no number from 0 to {most}")
    return said


def _headers(said: Any) -> Headers:
    pairs = list(said.items()) if isinstance(said, dict) else said
    if not isinstance(pairs, list) or not all(_is_pair(pair) for pair in pairs):
        raise NotARecord('has headers that are no list of [name, value], as [["source", "till-3"]]')
    if not all(is_text(name) for name, _ in pairs):
        raise NotARecord("has half a character in the name of a header; names are text")
    return [(name, _bytes("header", value)) for name, value in pairs]


def _is_pair(said: Any) -> bool:
    return isinstance(said, list | tuple) and len(said) == 2 and isinstance(said[0], str)
