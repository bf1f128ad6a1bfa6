"""What an output is expected to be, and what it is."""

import time
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from klamm.pipeline import Table
from klamm.pipeline.trying import complaint, kept


def rows(orders: Any) -> Any:
    return orders


ROWS = [
    {"id": "a", "total": Decimal("3.60"), "at": datetime(2026, 1, 1, 10), "raw": bytearray(b"x"), "lines": [{"n": 1}]},
    {"id": "b", "total": None, "at": None, "raw": None, "lines": []},
]


def said(*expected: dict[str, object]) -> str:
    return complaint(Table("orders", rows, expect=expected), ROWS)


def test_as_expected_in_any_order_by_the_columns_named() -> None:
    assert said({"id": "b", "total": None}, {"id": "a", "total": 3.6}) == ""
    assert (
        said({"id": "a", "raw": "x", "at": "2026-01-01 10:00:00", "lines": [{"n": 1}]}, {"id": "b", "lines": []}) == ""
    )
    assert complaint(Table("orders", rows), ROWS) == ""
    assert complaint(Table("orders", rows, expect=[]), []) == ""


def test_not_as_expected() -> None:
    assert said({"id": "a"}) == "there is a row that is not expected: " + ", ".join(
        f"{n}={v}" for n, v in ROWS[1].items()
    )
    assert said({"id": "c"}, {"id": "a"}) == "there is no row id=c"
    assert said({"id": "a", "total": 3.7}, {"id": "b"}) == (
        "there is no row id=a, total=3.7; the row that is most like it has total=3.60"
    )
    assert said({"id": "a"}, {"id": "a"}) == "there is no row id=a"
    assert "Did you mean `total`?" in said({"totl": 3.6})
    assert complaint(Table("orders", rows, expect=[{"id": "a"}]), []) == "there is no row id=a"


def test_a_time_is_the_same_however_it_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark hands times out without a zone, in the machine's own: 10:00 in Vienna is 9:00 in UTC."""
    monkeypatch.setenv("TZ", "Europe/Vienna")
    time.tzset()
    try:
        same = ["2026-01-01T09:00:00Z", "2026-01-01T10:00:00+01:00", datetime(2026, 1, 1, 9, tzinfo=UTC)]
        for written in [*same, "2026-01-01 10:00:00", "2026-01-01T10:00", datetime(2026, 1, 1, 10)]:
            assert said({"id": "a", "at": written}, {"id": "b"}) == "", written
        for other in ["2026-01-01T10:00:00Z", datetime(2026, 1, 1, 10, tzinfo=UTC), "2026-01-01 09:00:00", "noon"]:
            assert "most like it has at=2026-01-01 10:00:00" in said({"id": "a", "at": other}, {"id": "b"}), other
    finally:
        monkeypatch.undo()
        time.tzset()


def test_a_row_that_is_there_twice_is_not_called_unexpected() -> None:
    twice = [{"id": "a"}, {"id": "a"}]
    assert (
        complaint(Table("orders", rows, expect=[{"id": "a"}]), twice) == "there is a row more often than expected: id=a"
    )


def test_a_table_with_a_key_holds_one_row_a_key() -> None:
    made = [{"id": "a", "n": 1}, {"id": "b", "n": 2}, {"id": "a", "n": 3}]
    assert kept(Table("orders", rows, key="id"), made) == made[:2]
    assert kept(Table("orders", rows, key="id", on_match="update"), made) == [made[2], made[1]]
    assert kept(Table("orders", rows), made) == made
