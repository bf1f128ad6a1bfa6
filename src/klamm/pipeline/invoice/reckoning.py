"""The tables held against the ledger: what is missing, what is too much, what is wrong. No difference is the goal.

The tables are read with `deltalake`, not with Spark, so that one does not vouch for itself. Windows have to hold every
invoice that came in time. Of the late ones each may be in its window or not, which nobody but Spark decides; but what
is beyond the invoices in time has to be the sum of some of them.
"""

from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from itertools import combinations
from pathlib import Path
from typing import Any

from klamm.pipeline.invoice.ledger import Ledger, Window, digest

MOST_NAMED = 5
MOST_TRIED = 16
"""Of more late invoices in a window nobody tries all selections."""


def reckoning(ledger: Ledger, tables: Path) -> list[str]:
    """The differences, one a line."""
    return [
        *_invoices(ledger, rows_of(tables / "invoices", ["invoice_number", "total", "lines"])),
        *_line_items(ledger, rows_of(tables / "line_items", ["invoice_number", "line_number", "amount"])),
        *_quarantine(ledger, rows_of(tables / "invoice_quarantine", ["topic", "partition", "offset", "value"])),
        *_store_revenue(ledger, rows_of(tables / "store_revenue", ["store_id", "window_start", "revenue", "invoices"])),
        *_loyalty(ledger, rows_of(tables / "loyalty", ["customer_id", "points", "invoices"])),
    ]


def late_and_counted(ledger: Ledger, tables: Path) -> tuple[int, int]:
    """How many invoices were late, and how many of those their windows counted nevertheless: for reports."""
    late = sum(len(window.late_cents) for window in ledger.windows.values())
    counted = sum(rows_of(tables / "store_revenue", ["invoices"])["invoices"])
    return late, counted - (ledger.invoices - late)


def rows_of(path: Path, columns: list[str]) -> dict[str, list[Any]]:
    """No table, no rows. Money comes as cents."""
    import pyarrow as pa
    import pyarrow.compute as pc
    from deltalake import DeltaTable

    if not DeltaTable.is_deltatable(str(path)):
        return {name: [] for name in columns}
    table = DeltaTable(str(path)).to_pyarrow_table(columns=columns)
    hundred = pa.scalar(Decimal(100), pa.decimal128(3, 0))
    return {
        name: pc.cast(pc.multiply(column, hundred), pa.int64()).to_pylist()
        if pa.types.is_decimal(column.type)
        else column.to_pylist()
        for name, column in zip(columns, table.select(columns).columns, strict=True)
    }


def _invoices(ledger: Ledger, rows: dict[str, list[Any]]) -> Iterator[str]:
    expected = {f"{ledger.seed:04d}-{number:08d}" for number in range(ledger.issued) if number not in ledger.malformed}
    yield from _sets("invoices", expected, rows["invoice_number"])
    yield from _equal("invoices: sum of totals in cents", ledger.cents, sum(rows["total"]))
    weighted = sum(
        int(number[-8:]) * cents for number, cents in zip(rows["invoice_number"], rows["total"], strict=True)
    )
    yield from _equal("invoices: sum of number times total", ledger.weighted_cents, weighted)
    yield from _equal("invoices: sum of lines", ledger.lines, sum(rows["lines"]))


def _line_items(ledger: Ledger, rows: dict[str, list[Any]]) -> Iterator[str]:
    yield from _equal("line_items: rows", ledger.lines, len(rows["amount"]))
    yield from _equal("line_items: sum of amounts in cents", ledger.cents, sum(rows["amount"]))
    keys = zip(rows["invoice_number"], rows["line_number"], strict=True)
    yield from _equal("line_items: different keys", ledger.lines, len(set(keys)))
    yield from _equal("line_items: different invoices", ledger.invoices, len(set(rows["invoice_number"])))


def _quarantine(ledger: Ledger, rows: dict[str, list[Any]]) -> Iterator[str]:
    expected, found = Counter(ledger.malformed.values()), Counter(digest(value or b"") for value in rows["value"])
    yield from _listed("invoice_quarantine lacks malformed records", (expected - found).elements())
    by_digest = {digest(value or b""): value for value in rows["value"]}
    too_many = ((by_digest[each] or b"")[:80] for each in (found - expected).elements())
    yield from _listed("invoice_quarantine has what is not malformed, or twice", too_many)
    places = list(zip(rows["topic"], rows["partition"], rows["offset"], strict=True))
    yield from _equal("invoice_quarantine: different places", len(places), len(set(places)))


def _store_revenue(ledger: Ledger, rows: dict[str, list[Any]]) -> Iterator[str]:
    begins = [int(each.timestamp() * 1_000) for each in rows["window_start"]]
    keys = list(zip(rows["store_id"], begins, strict=True))
    found = dict(zip(keys, zip(rows["revenue"], rows["invoices"], strict=True), strict=True))
    yield from _equal("store_revenue: different windows", len(keys), len(found))
    yield from _listed("store_revenue has windows nobody had invoices in", found.keys() - ledger.windows.keys())
    wrong = (
        f"{store} {begins_ms}: {cents} cents of {invoices}, in time were {window.cents} of {window.invoices}, "
        f"late {window.late_cents}"
        for (store, begins_ms), window in ledger.windows.items()
        for cents, invoices in [found.get((store, begins_ms), (0, 0))]
        if not _is_explained(window, cents, invoices)
    )
    yield from _listed("store_revenue has windows that are wrong", wrong)


def _is_explained(window: Window, cents: int, invoices: int) -> bool:
    """What is there beyond the invoices in time is the sum of as many late ones."""
    counted, beyond = invoices - window.invoices, cents - window.cents
    if not 0 <= counted <= len(window.late_cents):
        return False
    if len(window.late_cents) > MOST_TRIED:
        return 0 <= beyond <= sum(window.late_cents)
    return any(sum(some) == beyond for some in combinations(window.late_cents, counted))


def _loyalty(ledger: Ledger, rows: dict[str, list[Any]]) -> Iterator[str]:
    expected = {customer: (ledger.points[customer], count) for customer, count in ledger.customers.items()}
    accounts = list(zip(rows["points"], rows["invoices"], strict=True))
    found = dict(zip(rows["customer_id"], accounts, strict=True))
    yield from _sets("loyalty", set(expected), rows["customer_id"])
    wrong = (f"{each}: {found[each]} not {expected[each]}" for each in found if found[each] != expected.get(each))
    yield from _listed("loyalty has other points or invoices", wrong)


def _sets(what: str, expected: set[str], found: list[str]) -> Iterator[str]:
    yield from _listed(f"{what} lacks", sorted(expected - set(found)))
    yield from _listed(f"{what} has too many", sorted(set(found) - expected))
    yield from _listed(f"{what} has twice", (each for each, times in Counter(found).items() if times > 1))


def _equal(what: str, expected: int, found: int) -> Iterator[str]:
    if expected != found:
        yield f"{what}: {found:,}, expected {expected:,}"


def _listed(what: str, things: Any) -> Iterator[str]:
    named = [str(each) for each in things]
    if named:
        yield f"{what}: {len(named):,}, as {'; '.join(named[:MOST_NAMED])}"
