"""How a run stands, for Prometheus: a page of text on a port, as it was when the run last looked."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from klamm.exposition import CONTENT_TYPE, family_text
from klamm.pipeline.problems import PipelineError
from klamm.pipeline.progress import Standing


def exposition(standing: Standing) -> str:
    """In Prometheus' format. Counters are of this run; they start again with the next."""
    pipeline = {"pipeline": standing.pipeline}
    parts: list[str] = []

    def family(name: str, kind: str, what: str, samples: list[tuple[dict[str, str], float]]) -> None:
        of_this = [({**pipeline, **labels}, value) for labels, value in samples]
        parts.append(family_text(f"klamm_pipeline_{name}", kind, what, of_this))

    queries = list(standing.queries.values())
    family("seconds", "gauge", "Since the run began.", [({}, standing.seconds)])
    family("records_total", "counter", "Records read.", [({"query": each.name}, each.records) for each in queries])
    family("batches_total", "counter", "Batches written.", [({"query": each.name}, each.batches) for each in queries])
    family(
        "batch_seconds",
        "gauge",
        "How long the last batch took.",
        [({"query": q.name}, q.batch_seconds) for q in queries],
    )
    family(
        "records_per_second",
        "gauge",
        "In the last batch.",
        [({"query": q.name}, q.records_per_second) for q in queries],
    )
    family(
        "lag",
        "gauge",
        "Records that are written and not read yet.",
        [
            ({"query": query.name, "topic": topic, "partition": str(partition)}, lag)
            for query in queries
            for (topic, partition), lag in sorted(query.lag.items())
        ],
    )
    family("late_rows_total", "counter", "Dropped by a watermark.", [({"query": q.name}, q.late) for q in queries])
    family("state_rows", "gauge", "Rows of state.", [({"query": q.name}, q.state_rows) for q in queries])
    labels = (*standing.outputs, *standing.quarantines)
    added, replaced, left_out = standing.done.added, standing.done.replaced, standing.done.left_out
    family("rows_added_total", "counter", "Rows that are new.", [({"output": name}, added[name]) for name in labels])
    family(
        "rows_replaced_total", "counter", "Rows in place of older ones.", [({"output": n}, replaced[n]) for n in labels]
    )
    family(
        "rows_left_out_total", "counter", "Whose key is there already.", [({"output": n}, left_out[n]) for n in labels]
    )
    family(
        "quarantined_total",
        "counter",
        "Records that were refused.",
        [({"reason": reason}, count) for reason, count in sorted(standing.done.quarantined.items())],
    )
    return "".join(parts)


class Page:
    """The text that is served. Another thread reads it, so it is replaced whole."""

    def __init__(self) -> None:
        self.text = ""


@contextmanager
def served(host: str, port: int, page: Page) -> Iterator[int]:
    """While the context is open; gives the port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = page.text.encode()
            self.send_response(200)
            self.send_header("Content-Type", CONTENT_TYPE)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002
            """Nobody wants to read who asked."""

    try:
        server = ThreadingHTTPServer((host, port), Handler)
    except OSError as problem:
        raise PipelineError(
            f"metrics cannot be served at {host}:{port}: {problem.strerror}. Name another port with --metrics-port."
        ) from problem
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.2,), name="metrics", daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
