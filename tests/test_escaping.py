"""What others chose is shown and does nothing."""

import json

import pytest

from klamm.escaping import CUT, LONGEST, escaped, escaped_json, one_line
from klamm.runtime.observe import LONGEST_LINE, printable


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("orders", "orders"),
        ("Grüße, 注文 🎉", "Grüße, 注文 🎉"),
        ("a\u00a0b", "a\u00a0b"),
        ("\x1b[31m", "\\x1b[31m"),
        ("\x9b2J\x7f", "\\x9b2J\\x7f"),
        ("exe.\u202egnp", "exe.\\u202egnp"),
        ("\ud83d", "\\ud83d"),
        ("a\rb\0", "a\\rb\\x00"),
    ],
)
def test_control_characters_are_shown_and_letters_are_left_alone(text: str, shown: str) -> None:
    assert escaped(text) == one_line(text) == shown


def test_lines_stay_lines_and_a_name_stays_in_its_line() -> None:
    assert escaped("one\n\ttwo") == "one\n\ttwo"
    assert one_line("one\n\ttwo") == "one\\n\\ttwo"


def test_a_name_is_cut_and_a_topics_never() -> None:
    assert one_line("x" * 249) == "x" * 249
    assert len(one_line("x" * 32_000)) == LONGEST and one_line("x" * 32_000).endswith(CUT)
    assert len(one_line("\x1b" * 32_000)) == LONGEST, "escapes count, too"


def test_json_means_the_same_afterwards() -> None:
    line = json.dumps({"value": "\x9b\u202e\x1b é"}, ensure_ascii=False)
    assert json.loads(escaped_json(line)) == json.loads(line)
    assert escaped_json(line).isprintable()


def test_a_line_of_the_log_is_cut_and_cannot_be_forged() -> None:
    shown = printable("a client\n2026-11-19 ERROR [broker 0] all is lost\x1b[2J" + "x" * 32_000)
    first, second = shown.split("\n")
    assert first == "a client" and second.startswith("    2026-11-19") and "\\x1b[2J" in second
    assert len(second) <= LONGEST_LINE + 4
