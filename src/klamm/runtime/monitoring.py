"""What a node shows of itself over HTTP: /metrics for Prometheus, /healthz and /readyz for whoever keeps it running.

It lives on the node's own loop, so that an answer to /healthz means that the loop turns. The pages are imported when
somebody asks for them: a start pays for none of it.
"""

from klamm.exposition import CONTENT_TYPE
from klamm.facts import Tell
from klamm.runtime.driver import Driver, now
from klamm.runtime.facts import MetricsNotServed, MetricsServed
from klamm.runtime.http import HttpServer, Page
from klamm.runtime.loop import NEVER, monotonic_ms
from klamm.runtime.observe import FactCounts
from klamm.runtime.shared_pages import SHARED_MS, RecentPages

RETRY_AFTER_SECONDS = 2
INDEX = "/metrics  for Prometheus\n/healthz  whether this node answers\n/readyz   whether it is counted on\n"


class Monitoring:
    def __init__(self, driver: Driver, facts: FactCounts) -> None:
        self._driver = driver
        self._facts = facts
        self._pages = RecentPages()
        self._forget = driver.loop.alarm(self._forget_pages)
        self._http = HttpServer(driver.loop, self._page, facts.tell)

    def listen(self, host: str, port: int, tell: Tell) -> None:
        """If that can be: a node that cannot be watched goes on all the same."""
        try:
            taken = self._http.listen(host, port)
        except OSError as error:
            tell(MetricsNotServed(f"{host}:{port}", error.strerror or str(error)))
        else:
            shown = f"[{host}]" if ":" in host else host
            tell(MetricsServed(f"http://{shown}:{taken}/metrics"))

    def close(self) -> None:
        self._http.close()
        self._driver.loop.drop_alarm(self._forget)

    def _page(self, path: str, query: str) -> Page | None:
        if path == "/metrics":
            return self._metrics(query)
        if path == "/healthz":
            return Page(200, iter(("ok\n",)))
        if path == "/readyz":
            return self._readiness()
        return Page(200, iter((INDEX,))) if path == "/" else None

    def _metrics(self, query: str) -> Page:
        from klamm.runtime.metrics.page import metrics_page

        now_ms = monotonic_ms()
        reader = self._pages.reader(query, lambda: metrics_page(self._driver, self._facts, query), now_ms)
        if reader is None:
            busy = "too many pages are being read: ask for the same one, or again in a moment\n"
            return Page(503, iter((busy,)), retry_after_seconds=RETRY_AFTER_SECONDS)
        if self._forget.at_ms == NEVER:
            self._forget.at_ms = now_ms + SHARED_MS
        return Page(200, reader, CONTENT_TYPE)

    def _forget_pages(self) -> None:
        """Nobody is given them any more, and they are large."""
        now_ms = monotonic_ms()
        self._pages.forget_before(now_ms - SHARED_MS)
        if not self._pages.is_empty:
            self._forget.at_ms = now_ms + SHARED_MS

    def _readiness(self) -> Page:
        from klamm.runtime.health import why_not_ready

        reasons = why_not_ready(self._driver.node, now())
        return Page(503, iter(f"{reason}\n" for reason in reasons)) if reasons else Page(200, iter(("ready\n",)))
