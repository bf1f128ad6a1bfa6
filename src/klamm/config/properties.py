r"""Java's `.properties` files, as far as `java.util.Properties` reads them.

A line is a key and a value, with `=`, `:` or blanks between. `#` and `!` begin comments. A backslash at the end of a
line joins the next one, whose leading blanks do not count. `\t \n \r \f \uXXXX` are characters; a backslash before
anything else stands for that character. Blanks at the end of a value belong to the value; settings ignore them.
"""

import re
from collections.abc import Iterator

from klamm.config.problems import ConfigError

_BLANKS = " \t\f"
_LINE_END = r"\r\n|\r|\n"
_ESCAPE = r"(?s)\\(u[0-9a-fA-F]{4}|.)"
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def parse_properties(text: str) -> list[tuple[str, str, int]]:
    """Each key with its value and the number of the line it begins on, in the order of the file."""
    pairs = []
    for line, number in _logical_lines(text):
        key, value = _divided(line)
        pairs.append((_unescaped(key, number), _unescaped(value, number), number))
    return pairs


def _logical_lines(text: str) -> Iterator[tuple[str, int]]:
    joined = ""
    started = 0
    for number, natural in enumerate(re.split(_LINE_END, text), start=1):
        line = natural.lstrip(_BLANKS)
        if not started and (not line or line[0] in "#!"):
            continue
        started = started or number
        goes_on = (len(line) - len(line.rstrip("\\"))) % 2 == 1
        joined += line[:-1] if goes_on else line
        if not goes_on:
            yield joined, started
            joined, started = "", 0
    if started:
        yield joined, started


def _divided(line: str) -> tuple[str, str]:
    position = 0
    while position < len(line) and line[position] not in "=: \t\f":
        position += 2 if line[position] == "\\" else 1
    rest = line[position:].lstrip(_BLANKS)
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(_BLANKS)
    return line[:position], rest


def _unescaped(text: str, number: int) -> str:
    if "\\" not in text:
        return text
    plain = re.sub(_ESCAPE, lambda match: _character(match[1], number), text)
    # Two escapes may be the halves of one character.
    return plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _character(escape: str, number: int) -> str:
    if escape == "u":
        raise ConfigError([f"line {number}: \\u must be followed by four hexadecimal digits"])
    if len(escape) > 1:
        return chr(int(escape[1:], 16))
    return _CONTROLS.get(escape, escape)
