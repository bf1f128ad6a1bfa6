"""The generator's own account of what it sent, kept while it sends, knowing nothing of Spark. `reckoning.py` holds
the tables against it.

Numbers are consecutive, so the set of invoices is a range without the malformed. Revenue is kept for every store and
window twice: of the invoices that come in time, which every window has to count, and of each late one, which a window
counts only if it was still open. The malformed are kept as digests of their bytes.
"""

import json
from collections import Counter
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path

from klamm.pipeline.invoice.generator import COPY, LATE, MALFORMED, Invoice, Recipe

WINDOW_MS = 600_000
"""As long as those of the example."""


@dataclass(slots=True)
class Window:
    """The invoices of one store in one window."""

    cents: int = 0
    invoices: int = 0
    late_cents: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Ledger:
    seed: int
    records: int = 0
    """Everything that was sent."""
    issued: int = 0
    """Numbers that were given, to malformed ones too."""
    fates: Counter[str] = field(default_factory=Counter)
    cents: int = 0
    weighted_cents: int = 0
    """The sum of number times cents: two invoices whose totals changed places are found."""
    lines: int = 0
    malformed: dict[int, str] = field(default_factory=dict)
    """Number to digest."""
    windows: dict[tuple[str, int], Window] = field(default_factory=dict)
    """By store and beginning, of every invoice that is one."""
    points: Counter[str] = field(default_factory=Counter)
    """By customer: one for every whole euro of an invoice."""
    customers: Counter[str] = field(default_factory=Counter)
    """Invoices by customer."""

    @classmethod
    def of(cls, recipe: Recipe) -> "Ledger":
        return cls(recipe.seed)

    def note(self, invoice: Invoice) -> None:
        self.records += 1
        self.fates[invoice.fate] += 1
        if invoice.fate == COPY:
            return
        self.issued += 1
        if invoice.fate == MALFORMED:
            self.malformed[invoice.number] = digest(invoice.value)
            return
        cents = invoice.cents
        self.cents += cents
        self.weighted_cents += invoice.number * cents
        self.lines += invoice.lines
        self._note_window(invoice.store_id, invoice.issued_ms // WINDOW_MS * WINDOW_MS, cents, invoice.fate == LATE)
        if invoice.customer_id is not None:
            self.points[invoice.customer_id] += cents // 100
            self.customers[invoice.customer_id] += 1

    @property
    def invoices(self) -> int:
        """That are ones, each counted once."""
        return self.issued - len(self.malformed)

    @property
    def copies(self) -> int:
        return self.records - self.issued

    def _note_window(self, store_id: str, begins_ms: int, cents: int, is_late: bool) -> None:
        window = self.windows.get((store_id, begins_ms))
        if window is None:
            window = self.windows[store_id, begins_ms] = Window()
        if is_late:
            window.late_cents.append(cents)
        else:
            window.cents += cents
            window.invoices += 1

    def save(self, path: Path) -> None:
        values = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "windows"}
        windows = [[*key, *asdict(window).values()] for key, window in self.windows.items()]
        path.write_text(json.dumps({**values, "windows": windows}))

    @classmethod
    def load(cls, path: Path) -> "Ledger":
        values = json.loads(path.read_text())
        for name in ("fates", "points", "customers"):
            values[name] = Counter(values[name])
        values["malformed"] = {int(number): said for number, said in values["malformed"].items()}
        values["windows"] = {(store, begins): Window(*window) for store, begins, *window in values["windows"]}
        return cls(**values)


def digest(value: bytes) -> str:
    return sha256(value).hexdigest()[:16]
