"""Text that somebody else chose, shown where it may do harm: a terminal, a log.

A group's id, a header's key, an error message may be anything. What would move the cursor, change colours, or turn the
direction of what follows is shown as an escape (`\\x1b`); in a name, which is part of a line, line ends and tabs as
well, and a name is cut where it gets longer than names are.
"""

import re

CONTROLS = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 but for tab and line feed, DEL, C1.
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # Direction.
    "\u2028\u2029\ufeff"  # Line ends that are none, and a mark of no width.
    "\ud800-\udfff"  # Halves of pairs, which have no bytes.
)
_in_text = re.compile(f"[{CONTROLS}]")
_in_names = re.compile(f"[{CONTROLS}\t\n]")
NAMES = {"\t": "\\t", "\n": "\\n", "\r": "\\r"}
LONGEST = 250
"""A topic's name, which has 249 letters at most, is never cut."""
CUT = "…"


def escaped(text: str) -> str:
    """Of several lines, perhaps."""
    return text if text.isprintable() else _in_text.sub(_escape, text)


def one_line(text: str, most: int = LONGEST) -> str:
    """A name, or what else has to stay in its line. Cut before it is looked at: it may have millions of letters."""
    short = text[: most + 1]
    shown = short if short.isprintable() else _in_names.sub(_escape, short)
    return shown if len(shown) <= most else f"{shown[: most - len(CUT)]}{CUT}"


def escaped_json(line: str) -> str:
    """A line of JSON, which means the same afterwards."""
    return line if line.isprintable() else _in_text.sub(lambda found: f"\\u{ord(found[0]):04x}", line)


def _escape(found: "re.Match[str]") -> str:
    code = ord(found[0])
    return NAMES.get(found[0]) or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")
