"""The reckoning finds nothing where the tables are right, and finds what is wrong where they are not."""

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest
from deltalake import write_deltalake

from klamm.pipeline.invoice.generator import COPY, LATE, Invoice, Recipe, generated
from klamm.pipeline.invoice.ledger import Ledger
from klamm.pipeline.invoice.reckoning import late_and_counted, reckoning
from tests.pipeline.invoice.naive import Books, Row, books_of, window_start

RECIPE = Recipe(seed=3, count=400, malformed=0.1, late=0.1, copied=0.1, huge=0.01)
SENT = list(generated(RECIPE))


@pytest.fixture
def ledger() -> Ledger:
    ledger = Ledger.of(RECIPE)
    for each in SENT:
        ledger.note(each)
    return ledger


@pytest.fixture
def books() -> Books:
    return books_of([each.value for each in SENT])


def written(books: Books, tables: Path) -> Path:
    for name in books.tables:
        write_deltalake(str(tables / name), books.arrow(name))
    return tables


def test_the_books_of_a_beginner_agree(ledger: Ledger, books: Books, tmp_path: Path) -> None:
    tables = written(books, tmp_path)
    assert reckoning(ledger, tables) == []
    late, counted = late_and_counted(ledger, tables)
    assert late == counted == sum(each.fate == LATE for each in SENT) > 0


def test_a_ledger_is_the_same_after_it_was_saved(ledger: Ledger, tmp_path: Path) -> None:
    ledger.save(tmp_path / "ledger.json")
    assert Ledger.load(tmp_path / "ledger.json") == ledger


def test_late_invoices_may_miss_their_windows(ledger: Ledger, books: Books, tmp_path: Path) -> None:
    for each in SENT:
        if each.fate == LATE:
            _take_out_of_window(books, each)
    assert reckoning(ledger, written(books, tmp_path)) == []


def test_no_tables_are_many_differences(ledger: Ledger, tmp_path: Path) -> None:
    assert len(reckoning(ledger, tmp_path)) >= 8


def lost(name: str) -> Callable[[Books], object]:
    return lambda books: books.tables[name].pop(5)


def doubled(name: str) -> Callable[[Books], object]:
    return lambda books: books.tables[name].append(books.tables[name][5])


def a_cent_more(name: str, column: str) -> Callable[[Books], object]:
    def change(books: Books) -> None:
        row = books.tables[name][5]
        row[column] += Decimal("0.01") if isinstance(row[column], Decimal) else 1

    return change


def totals_swapped(books: Books) -> None:
    first, second = books.tables["invoices"][:2]
    first["total"], second["total"] = second["total"], first["total"]


def wrong_one_quarantined(books: Books) -> None:
    books.tables["invoice_quarantine"][0]["value"] += b"?"


def invoice_in_time_missing_in_its_window(books: Books) -> None:
    _take_out_of_window(books, SENT[0])


CHANGES: dict[str, tuple[Callable[[Books], object], str]] = {
    "lost invoice": (lost("invoices"), "invoices lacks: 1"),
    "doubled invoice": (doubled("invoices"), "invoices has twice: 1"),
    "wrong total": (a_cent_more("invoices", "total"), "sum of totals"),
    "swapped totals": (totals_swapped, "number times total"),
    "lost line": (lost("line_items"), "line_items: rows"),
    "doubled line": (doubled("line_items"), "line_items: rows"),
    "wrong amount": (a_cent_more("line_items", "amount"), "sum of amounts"),
    "malformed lost": (lost("invoice_quarantine"), "lacks malformed records: 1"),
    "malformed doubled": (doubled("invoice_quarantine"), "or twice: 1"),
    "other bytes": (wrong_one_quarantined, "lacks malformed records: 1"),
    "window lost": (lost("store_revenue"), "windows that are wrong: 1"),
    "window doubled": (doubled("store_revenue"), "different windows"),
    "window a cent more": (a_cent_more("store_revenue", "revenue"), "windows that are wrong: 1"),
    "window one invoice less": (invoice_in_time_missing_in_its_window, "windows that are wrong: 1"),
    "customer lost": (lost("loyalty"), "loyalty lacks: 1"),
    "points too many": (a_cent_more("loyalty", "points"), "other points or invoices: 1"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_is_wrong_is_found(name: str, ledger: Ledger, books: Books, tmp_path: Path) -> None:
    change, said = CHANGES[name]
    change(books)
    differences = reckoning(ledger, written(books, tmp_path))
    assert any(said in each for each in differences), differences


def test_fixture_has_what_the_changes_need() -> None:
    assert SENT[0].fate not in (LATE, COPY)


def _take_out_of_window(books: Books, invoice: Invoice) -> None:
    from datetime import UTC, datetime

    begins = window_start(datetime.fromtimestamp(invoice.issued_ms / 1_000, UTC))
    row: Row = next(
        row
        for row in books.tables["store_revenue"]
        if row["store_id"] == invoice.store_id and row["window_start"] == begins
    )
    row["revenue"] -= Decimal(invoice.cents) / 100
    row["invoices"] -= 1
    if not row["invoices"]:
        books.tables["store_revenue"].remove(row)
