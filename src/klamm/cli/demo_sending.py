"""The demo's invoices on their way: sent by a thread, at a steady pace, with an account of each."""

import threading

from klamm.pipeline.invoice.generator import Recipe, generated
from klamm.pipeline.invoice.ledger import Ledger
from klamm.pipeline.invoice.sending import Sent, send


class Sending:
    def __init__(self, servers: str, topic: str, recipe: Recipe, per_second: float) -> None:
        assert recipe.count is not None, "a demo ends"
        self.count = recipe.count
        self.ledger = Ledger.of(recipe)
        self._now = Sent()
        self._is_stopped = False
        self._problem: BaseException | None = None
        # A daemon: who is interrupted does not wait for brokers that are gone.
        self._thread = threading.Thread(
            target=self._send, args=(servers, topic, recipe, per_second), name="invoices", daemon=True
        )
        self._thread.start()

    @property
    def acknowledged(self) -> int:
        return self._now.acknowledged

    @property
    def records(self) -> int:
        return self._now.records

    @property
    def share(self) -> float:
        """Of the invoices, those that are on their way. Some of them come twice."""
        return self.ledger.issued / self.count

    @property
    def how_far(self) -> str:
        copies = f" and {self.ledger.copies:,} copies" if self.ledger.copies else ""
        return f"{self.share:.0%}{copies} sent, {self.acknowledged:,} acknowledged"

    @property
    def is_over(self) -> bool:
        return not self._thread.is_alive()

    @property
    def problems(self) -> list[str]:
        return [*self._now.errors, *([] if self._problem is None else [str(self._problem)])]

    def stop(self) -> None:
        """After the invoice that it is at."""
        self._is_stopped = True

    def _send(self, servers: str, topic: str, recipe: Recipe, per_second: float) -> None:
        try:
            self._now = send(
                generated(recipe),
                servers,
                topic,
                per_second=per_second,
                on_sent=self.ledger.note,
                on_progress=self._note,
                stops=lambda: self._is_stopped,
            )
        except Exception as problem:
            self._problem = problem

    def _note(self, sent: Sent) -> None:
        self._now = sent
