"""Invoices as the tills of some shops would send them: made from a seed, the same every time.

Each has a number, one higher than the last, and is issued a little later than the last. Some meet a fate: they are late
(issued hours before they arrive), huge (thousands of lines), or malformed (`malformed.py`). Of those that are not
malformed, some come once more, byte for byte, a while later. An invoice is keyed by its store.

A million should take seconds, so lines are written in advance and chance is drawn for a thousand invoices at a time.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from random import Random
from struct import Struct

from klamm.pipeline.invoice.catalogue import AMOUNTS, CUSTOMERS, LINES, STORES, money
from klamm.pipeline.invoice.malformed import broken

ON_TIME, LATE, HUGE, MALFORMED, COPY = "on time", "late", "huge", "malformed", "copy"

HOUR_MS = 3_600_000
LATE_MS = 6 * HOUR_MS
"""At least so late, up to eight times as much: far beyond the watermark of the example, an hour."""
LINES_OF_MOST = (1, 1, 2, 2, 3, 3, 4, 8)
LINES_OF_HUGE = 4_000
LONGEST_WAY_OF_A_COPY = 2_000
"""So many invoices later, at most, it comes again."""

_AT_A_TIME = 1_024
_DRAW = Struct("<3I3H8H2x")


@dataclass(frozen=True, slots=True)
class Recipe:
    """Everything that decides which invoices are made."""

    seed: int
    count: int | None = None
    """How many, copies not counted; None is without end."""
    start_ms: int = 1_767_225_600_000
    """When the first is issued: the beginning of 2026."""
    step_ms: int = 36
    """Between one and the next: a million are a day of ten hours."""
    late: float = 0.02
    huge: float = 0.0001
    malformed: float = 0.01
    copied: float = 0.01


@dataclass(slots=True)
class Invoice:
    """A record to send, and what is known of it without reading its bytes."""

    number: int
    fate: str
    key: bytes
    value: bytes
    invoice_number: str
    store_id: str
    customer_id: str | None
    issued_ms: int
    cents: int
    lines: int


def generated(recipe: Recipe) -> Iterator[Invoice]:
    """In the order in which they are sent."""
    copies: dict[int, list[Invoice]] = {}
    for invoice, copy_comes_at in _originals(recipe):
        yield invoice
        if copy_comes_at is not None:
            copies.setdefault(copy_comes_at, []).append(invoice)
        for again in copies.pop(invoice.number, ()):
            yield _copy(again)
    for comes_at in sorted(copies):
        yield from map(_copy, copies[comes_at])


def _originals(recipe: Recipe) -> Iterator[tuple[Invoice, int | None]]:
    """Each with the number behind which it comes again, if it does."""
    clock, number = _Clock(), 0
    below_malformed = int(recipe.malformed * 2**32)
    below_late = below_malformed + int(recipe.late * 2**32)
    below_huge = below_late + int(recipe.huge * 2**32)
    below_copied = int(recipe.copied * 2**32)
    while True:
        draws = Random(f"invoices {recipe.seed} from {number}").randbytes(_DRAW.size * _AT_A_TIME)
        for fate_drawn, copy_drawn, detail, store, card, size, *picks in _DRAW.iter_unpack(draws):
            if number == recipe.count:
                return
            fate, issued_ms = ON_TIME, recipe.start_ms + number * recipe.step_ms
            if fate_drawn < below_huge:
                if fate_drawn < below_malformed:
                    fate = MALFORMED
                elif fate_drawn < below_late:
                    fate, issued_ms = LATE, issued_ms - LATE_MS - detail % (7 * LATE_MS)
                else:
                    fate, picks = HUGE, Random(detail).choices(range(1 << 12), k=LINES_OF_HUGE)
            if fate is not HUGE:
                picks = picks[: LINES_OF_MOST[size & 7]]
            invoice = _written(recipe, number, fate, clock.at(issued_ms), STORES[store & 63], card, picks)
            invoice.issued_ms = issued_ms
            if fate is MALFORMED:
                invoice.value = broken(invoice.value, detail)
            is_copied = copy_drawn < below_copied and fate is not MALFORMED
            yield invoice, number + 1 + detail % LONGEST_WAY_OF_A_COPY if is_copied else None
            number += 1


def _written(
    recipe: Recipe, number: int, fate: str, issued_at: str, store: str, card: int, picks: list[int]
) -> Invoice:
    invoice_number = f"{recipe.seed:04d}-{number:08d}"
    # The two lowest bits: every fourth customer pays without a card.
    customer = CUSTOMERS[card >> 2] if card & 3 else None
    bearer = f'"customer_id":"{customer}",' if customer else ""
    cents = sum([AMOUNTS[pick & 4095] for pick in picks])
    lines = ",".join([LINES[pick & 4095] for pick in picks])
    value = (
        f'{{"invoice_number":"{invoice_number}","store_id":"{store}",{bearer}"issued_at":"{issued_at}",'
        f'"line_items":[{lines}],"total":{money(cents)}}}'
    ).encode()
    return Invoice(number, fate, store.encode(), value, invoice_number, store, customer, 0, cents, len(picks))


def _copy(invoice: Invoice) -> Invoice:
    return Invoice(
        invoice.number,
        COPY,
        invoice.key,
        invoice.value,
        invoice.invoice_number,
        invoice.store_id,
        invoice.customer_id,
        invoice.issued_ms,
        invoice.cents,
        invoice.lines,
    )


class _Clock:
    """Times as text. Most invoices share their second with the one before."""

    def __init__(self) -> None:
        self._second, self._text = -1, ""

    def at(self, time_ms: int) -> str:
        second, left_ms = divmod(time_ms, 1_000)
        if second != self._second:
            self._second, self._text = second, datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%S")
        return f"{self._text}.{left_ms:03d}Z"
