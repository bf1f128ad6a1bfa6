"""`server.properties` is a Java properties file. `tests/compat` compares the same with Java itself."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klamm.config import ConfigError, parse_properties


def test_keys_values_and_the_lines_they_begin_on() -> None:
    text = "# a comment\n\nnode.id=1\n! another\n  log.dirs : /data  \nnum.partitions 3\nbroker.rack\n"
    assert parse_properties(text) == [
        ("node.id", "1", 3),
        ("log.dirs", "/data  ", 5),
        ("num.partitions", "3", 6),
        ("broker.rack", "", 7),
    ]


def test_a_backslash_joins_lines_and_the_leading_blanks_of_the_next_do_not_count() -> None:
    text = "listeners=PLAINTEXT://:9092,\\\n          CONTROLLER://:9093\nnode.id=1"
    assert parse_properties(text) == [("listeners", "PLAINTEXT://:9092,CONTROLLER://:9093", 1), ("node.id", "1", 3)]


def test_two_backslashes_are_one_and_join_nothing() -> None:
    assert parse_properties("log.dirs=C:\\\\data\\\\\nnode.id=1") == [
        ("log.dirs", "C:\\data\\", 1),
        ("node.id", "1", 2),
    ]


def test_escapes_in_keys_and_values() -> None:
    assert parse_properties("a\\ key\\=x=\\u00e4\\t\\q\\ud83d\\ude00") == [("a key=x", "ä\tq😀", 1)]


def test_a_broken_unicode_escape_names_its_line() -> None:
    with pytest.raises(ConfigError, match=r"line 2: \\u must be followed by four hexadecimal digits"):
        parse_properties("node.id=1\nbroker.rack=\\u12x4")


def test_lines_of_every_system_and_no_others() -> None:
    assert [key for key, _, _ in parse_properties("a=1\r\nb=2\rc=3\u2028d=4\ne=5")] == ["a", "b", "c", "e"]


CHARACTERS = st.characters(codec="utf-8")


@given(st.lists(st.tuples(st.text(CHARACTERS, min_size=1), st.text(CHARACTERS))))
def test_what_is_written_with_escapes_is_read_back(pairs: list[tuple[str, str]]) -> None:
    text = "".join(f"{escaped(key)}={escaped(value)}\n" for key, value in pairs)
    assert [(key, value) for key, value, _ in parse_properties(text)] == pairs


def escaped(text: str) -> str:
    """Every character as its escape: what nobody would write, and everybody must be able to read."""
    units = text.encode("utf-16-be")
    return "".join(f"\\u{units[index]:02x}{units[index + 1]:02X}" for index in range(0, len(units), 2))
