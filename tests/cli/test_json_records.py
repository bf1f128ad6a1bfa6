"""Records as lines of JSON: what is written is read as it was."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klamm.cli.json_records import ANY_PARTITION, NOW_MS, NotARecord, json_of, record_of

maybe_bytes = st.one_of(st.none(), st.binary(max_size=20), st.text(max_size=10).map(lambda text: text.encode()))
names = st.text(max_size=5)


class Message:
    """What librdkafka hands out, as far as it is looked at."""

    def __init__(self, key: bytes | None, value: bytes | None, headers: list[tuple[str, bytes | None]]) -> None:
        self.key, self.value, self.headers = lambda: key, lambda: value, lambda: headers or None
        self.partition, self.offset, self.timestamp = lambda: 3, lambda: 7, lambda: (1, 1_700_000_000_000)


@given(maybe_bytes, maybe_bytes, st.lists(st.tuples(names, maybe_bytes), max_size=3))
def test_it_goes_round(key: bytes | None, value: bytes | None, headers: list[tuple[str, bytes | None]]) -> None:
    line = json_of("a topic")(Message(key, value, headers))
    assert "\n" not in line
    assert json.loads(line)["topic"] == "a topic"
    assert record_of(line.encode()) == (value, key, 3, None, None, 1_700_000_000_000, headers or None)


def test_everything_may_be_missing() -> None:
    assert record_of(b"{}") == (None, None, ANY_PARTITION, None, None, NOW_MS, None)
    assert record_of(b'{"headers": {"a": "1"}, "value": ""}')[0] == b""
    assert record_of(b'{"headers": {"a": "1"}}')[-1] == [("a", b"1")]


def test_text_is_text_and_bytes_are_base64() -> None:
    line: dict[str, Any] = json.loads(json_of("t")(Message("Grüße".encode(), b"\xff", [])))
    assert (line["key"], line["value"]) == ("Grüße", {"base64": "/w=="})


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"hello", "is no JSON"),
        (b"\xff", "is no JSON"),
        (b"[]", "is no JSON object"),
        (b'{"vlaue": "x"}', "has a field 'vlaue'"),
        (
            b'{"value": {"a": 1}}',
            r"""a document goes into a string, as "value": "{\"a\":1}" (`jq -c '.value |= tojson'`""",
        ),
        (b'{"value": 3}', 'as "value": "3"'),
        (b'{"value": {"a": "' + b"x" * 100 + b'"}}', r'as "value": "{\"a\":1}"'),
        (b'{"headers": {"h": 3}}', 'as "header": "3"'),
        (b'{"value": {"base64": "?"}}', "is no base64"),
        (b'{"value": "\\ud800"}', "half a character"),
        (b'{"partition": -1}', "partition that is no number"),
        (b'{"partition": true}', "partition that is no number"),
        (b'{"timestamp": 1.5}', "timestamp that is no number"),
        (b'{"partition": 3000000000}', "partition that is no number from 0 to 2147483647"),
        (b'{"timestamp": 99999999999999999999}', "timestamp that is no number"),
        (b'{"headers": [["\\ud800", "x"]]}', "half a character in the name of a header"),
        (b'{"headers": {"a\\udfff": "x"}}', "half a character in the name of a header"),
        (b'{"headers": [["a", "\\ud800"]]}', "half a character in its header"),
        (b"[" * 100_000, "is no JSON"),
        (b'{"headers": [["a"]]}', "no list of [name, value]"),
        (b'{"headers": 3}', "no list of [name, value]"),
    ],
)
def test_what_is_no_record_is_said(line: bytes, said: str) -> None:
    with pytest.raises(NotARecord) as problem:
        record_of(line)
    assert said in str(problem.value)
