"""The ways in which an invoice arrives that is none. Each takes the bytes of a good one, and a number for what chance
decides, and gives bytes that no careful reader may take for an invoice."""

import re
from collections.abc import Callable


def broken(value: bytes, chance: int) -> bytes:
    which, chance = chance % len(WAYS), chance // len(WAYS)
    return WAYS[which](value, chance)


def cut(value: bytes, chance: int) -> bytes:
    """The connection broke. The last brace is missing at least."""
    return value[: 1 + chance % (len(value) - 1)]


def empty(value: bytes, chance: int) -> bytes:
    return b""


def not_utf8(value: bytes, chance: int) -> bytes:
    """A till that writes Latin-1: JSON to the eye, and no text at all."""
    return value.replace(b'"product":"', b'"product":"\xe4\xff', 1)


def not_json(value: bytes, chance: int) -> bytes:
    return (b"<invoice/>", b"total=12.30", b'"invoice"', b"{'total': 12.30}")[chance % 4]


def wrong_type(value: bytes, chance: int) -> bytes:
    name, wrong = WRONG_TYPES[chance % len(WRONG_TYPES)]
    return _with_field(value, name, wrong)


def missing(value: bytes, chance: int) -> bytes:
    return _without_field(value, REQUIRED[chance % len(REQUIRED)])


def wrong_total(value: bytes, chance: int) -> bytes:
    """Well-formed in every way, and a cent to a hundred thousand wrong. The till's total has always two decimals."""
    before, total = value[:-1].rsplit(b":", 1)
    cents = int(total.replace(b".", b"")) + 1 + chance % 100_000
    return b"%s:%d.%02d}" % (before, cents // 100, cents % 100)


def wrong_line(value: bytes, chance: int) -> bytes:
    """A line without its quantity."""
    return re.sub(rb'"quantity":\d+,', b"", value, count=1)


WAYS: tuple[Callable[[bytes, int], bytes], ...] = (
    cut,
    empty,
    not_utf8,
    not_json,
    wrong_type,
    missing,
    wrong_total,
    wrong_line,
)
REQUIRED = ("invoice_number", "store_id", "issued_at", "line_items", "total")
WRONG_TYPES = (
    ("total", b'"a lot"'),
    ("total", b'{"euro":12,"cent":30}'),
    ("quantity", b'"three"'),
    ("quantity", b"1.5"),
    ("unit_price", b"[]"),
    ("issued_at", b'"yesterday"'),
    ("line_items", b'"none"'),
    ("line_items", b"[1,2,3]"),
    ("line_items", b"[]"),
)

_VALUES = {
    "invoice_number": rb'"[^"]*"',
    "store_id": rb'"[^"]*"',
    "issued_at": rb'"[^"]*"',
    "line_items": rb"\[.*\]",
    "total": rb"[\d.]+(?=\}$)",
    "quantity": rb"\d+",
    "unit_price": rb"[\d.]+",
}
_FIELDS = {name: re.compile(b'"%s":(?:%s)' % (name.encode(), values)) for name, values in _VALUES.items()}


def _with_field(value: bytes, name: str, wrong: bytes) -> bytes:
    return _FIELDS[name].sub(lambda _: b'"%s":%s' % (name.encode(), wrong), value, count=1)


def _without_field(value: bytes, name: str) -> bytes:
    """With the comma that parted it from its neighbour; `total` is the last, and has it before."""
    found = _FIELDS[name].search(value)
    assert found is not None, f"every invoice has {name}"
    before, after = value[: found.start()], value[found.end() :]
    return before + after[1:] if after.startswith(b",") else before.removesuffix(b",") + after
