"""The demo's end: what was sent against what is there. Every invoice has a number; each has to be found exactly once.

With Spark, found means in its tables: as a row, or in quarantine if it was malformed. Without, a client reads the topic
from its beginning.
"""

import json
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from klamm.pipeline.invoice.ledger import Ledger
from klamm.pipeline.invoice.reckoning import late_and_counted, reckoning, rows_of

READ_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Store:
    """What one store took."""

    store_id: str
    invoices: int
    cents: int


@dataclass(frozen=True, slots=True)
class Outcome:
    sent: int
    acknowledged: int
    found: int
    """Rows in the tables, quarantine's among them; or records read back."""
    lost: int
    doubled: int
    stores: tuple[Store, ...]
    differences: tuple[str, ...] = ()
    """Everything else that is not as the ledger says: sums, lines, windows, points."""
    copies: int = 0
    """Sent twice by their tills, on purpose: kept once."""
    quarantined: int = 0
    late: int = 0
    """In no window, because they came hours after it was closed."""
    with_spark: bool = True
    problems: tuple[str, ...] = field(default=())
    """Of the sender."""

    @property
    def is_right(self) -> bool:
        return not (self.lost or self.doubled or self.differences or self.problems) and self.sent == self.acknowledged


def from_tables(ledger: Ledger, acknowledged: int, tables: Path, problems: list[str]) -> Outcome:
    invoices = Counter(rows_of(tables / "invoices", ["invoice_number"])["invoice_number"])
    quarantined = len(rows_of(tables / "invoice_quarantine", ["offset"])["offset"])
    expected = {f"{ledger.seed:04d}-{number:08d}" for number in range(ledger.issued) if number not in ledger.malformed}
    malformed = len(ledger.malformed)
    late, counted = late_and_counted(ledger, tables)
    return Outcome(
        sent=ledger.records,
        acknowledged=acknowledged,
        found=invoices.total() + quarantined,
        lost=len(expected - invoices.keys()) + max(0, malformed - quarantined),
        doubled=invoices.total() - len(expected & invoices.keys()) + max(0, quarantined - malformed),
        stores=_stores(rows_of(tables / "store_revenue", ["store_id", "invoices", "revenue"])),
        differences=tuple(reckoning(ledger, tables)),
        copies=ledger.copies,
        quarantined=quarantined,
        late=late - counted,
        problems=tuple(problems),
    )


def from_topic(ledger: Ledger, acknowledged: int, servers: str, topic: str, problems: list[str]) -> Outcome:
    """For invoices none of which is malformed, and none copied."""
    found: Counter[str] = Counter()
    rows: dict[str, list[Any]] = {"store_id": [], "invoices": [], "revenue": []}
    for value in _read_back(servers, topic):
        invoice = json.loads(value)
        found[invoice["invoice_number"]] += 1
        rows["store_id"].append(invoice["store_id"])
        rows["invoices"].append(1)
        rows["revenue"].append(round(invoice["total"] * 100))
    expected = {f"{ledger.seed:04d}-{number:08d}" for number in range(ledger.issued)}
    cents = sum(rows["revenue"])
    return Outcome(
        sent=ledger.records,
        acknowledged=acknowledged,
        found=found.total(),
        lost=len(expected - found.keys()),
        doubled=found.total() - len(expected & found.keys()),
        stores=_stores(rows),
        differences=() if cents == ledger.cents else (f"revenue: {cents:,} cents, expected {ledger.cents:,}",),
        with_spark=False,
        problems=tuple(problems),
    )


def _stores(rows: dict[str, list[Any]]) -> tuple[Store, ...]:
    """The one that took most first."""
    invoices: Counter[str] = Counter()
    cents: Counter[str] = Counter()
    for store, count, taken in zip(rows["store_id"], rows["invoices"], rows["revenue"], strict=True):
        invoices[store] += count
        cents[store] += taken
    return tuple(Store(store, invoices[store], taken) for store, taken in cents.most_common())


def _read_back(servers: str, topic: str) -> list[bytes]:
    """The whole topic, by a client of its own, to the ends that its leaders tell."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer(
        {"bootstrap.servers": servers, "group.id": "klamm-demo", "enable.auto.commit": False, "log_level": 2}
    )
    try:
        partitions = sorted(consumer.list_topics(topic, READ_SECONDS).topics[topic].partitions)
        ends = [consumer.get_watermark_offsets(TopicPartition(topic, each), READ_SECONDS)[1] for each in partitions]
        consumer.assign([TopicPartition(topic, each, 0) for each in partitions])
        found: list[bytes] = []
        deadline = time.monotonic() + READ_SECONDS
        while len(found) < sum(ends) and time.monotonic() < deadline:
            found += [message.value() or b"" for message in consumer.consume(10_000, 1.0) if message.error() is None]
        return found
    finally:
        consumer.close()
