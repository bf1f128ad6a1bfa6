"""What a beginner would write: every record read with `json`, checked field by field, and counted with dictionaries.

It shares nothing with the generator, the ledger or the example but the words of the records.
"""

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

Row = dict[str, Any]
MONEY = pa.decimal128(12, 2)
TIME = pa.timestamp("us", "UTC")
SCHEMAS = {
    "invoices": pa.schema([("invoice_number", pa.string()), ("total", MONEY), ("lines", pa.int32())]),
    "line_items": pa.schema([("invoice_number", pa.string()), ("line_number", pa.int32()), ("amount", MONEY)]),
    "store_revenue": pa.schema(
        [("store_id", pa.string()), ("window_start", TIME), ("revenue", pa.decimal128(22, 2)), ("invoices", pa.int64())]
    ),
    "loyalty": pa.schema([("customer_id", pa.string()), ("points", pa.int64()), ("invoices", pa.int64())]),
    "invoice_quarantine": pa.schema(
        [("topic", pa.string()), ("partition", pa.int32()), ("offset", pa.int64()), ("value", pa.binary())]
    ),
}


@dataclass
class Books:
    """The tables, as rows."""

    tables: dict[str, list[Row]] = field(default_factory=lambda: {name: [] for name in SCHEMAS})

    def arrow(self, name: str) -> pa.Table:
        return pa.Table.from_pylist(self.tables[name], SCHEMAS[name])


def books_of(values: list[bytes]) -> Books:
    """Everything that was sent, as if no window ever closed."""
    books, seen = Books(), set()
    windows: dict[tuple[str, datetime], Row] = {}
    accounts: dict[str, Row] = {}
    for offset, value in enumerate(values):
        invoice = invoice_of(value)
        if invoice is None:
            place = {"topic": "invoice", "partition": 0, "offset": offset}
            books.tables["invoice_quarantine"].append({**place, "value": value})
            continue
        if invoice["invoice_number"] in seen:
            continue
        seen.add(invoice["invoice_number"])
        lines = invoice["line_items"]
        books.tables["invoices"].append({**_some(invoice, "invoice_number", "total"), "lines": len(lines)})
        for number, line in enumerate(lines, 1):
            row = {"invoice_number": invoice["invoice_number"], "line_number": number, "amount": line["amount"]}
            books.tables["line_items"].append(row)
        begins = window_start(invoice["issued_at"])
        window = windows.setdefault(
            (invoice["store_id"], begins),
            {"store_id": invoice["store_id"], "window_start": begins, "revenue": Decimal(0), "invoices": 0},
        )
        window["revenue"] += invoice["total"]
        window["invoices"] += 1
        if "customer_id" in invoice:
            customer = invoice["customer_id"]
            account = accounts.setdefault(customer, {"customer_id": customer, "points": 0, "invoices": 0})
            account["points"] += int(invoice["total"])
            account["invoices"] += 1
    books.tables["store_revenue"] = list(windows.values())
    books.tables["loyalty"] = list(accounts.values())
    return books


def invoice_of(value: bytes) -> Row | None:
    """Or None, if it is none."""
    try:
        invoice = json.loads(value.decode(), parse_float=Decimal)
        lines = invoice["line_items"]
        good = (
            isinstance(invoice["invoice_number"], str)
            and isinstance(invoice["store_id"], str)
            and isinstance(invoice["total"], Decimal)
            and bool(lines)
            and all(type(line["quantity"]) is int and isinstance(line["unit_price"], Decimal) for line in lines)
            and all(line["amount"] == line["quantity"] * line["unit_price"] for line in lines)
            and sum(line["amount"] for line in lines) == invoice["total"]
        )
        invoice["issued_at"] = datetime.fromisoformat(invoice["issued_at"])
    except (ValueError, LookupError, TypeError):
        return None
    return invoice if good else None


def window_start(issued_at: datetime) -> datetime:
    day = issued_at.replace(hour=0, minute=0, second=0, microsecond=0)
    return (day + (issued_at - day) // timedelta(minutes=10) * timedelta(minutes=10)).astimezone(UTC)


def _some(row: Row, *names: str) -> Row:
    return {name: row[name] for name in names}
