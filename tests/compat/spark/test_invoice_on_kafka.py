"""Who outgrows Klamm changes one line: the example, unchanged, makes the same tables of the same invoices on Kafka.

The runs are what a user types, two on each, and each reads a half in one batch: so late invoices find their windows
closed in the second, copies come after their originals were counted, and both clusters agree on which. Only the times
that a broker saw may differ.
"""

import subprocess
import sys
from collections import Counter
from itertools import islice
from pathlib import Path

import pytest
from deltalake import DeltaTable

import klamm
from klamm.pipeline.invoice.generator import Recipe, generated
from klamm.pipeline.invoice.ledger import Ledger
from klamm.pipeline.invoice.reckoning import late_and_counted, reckoning
from klamm.pipeline.invoice.sending import create_topic, send
from tests.harness.kafka_node import KafkaNode

pytestmark = pytest.mark.long

EXAMPLE = Path(__file__).parents[3] / "examples" / "invoice.py"
COUNT = 2_000
RECIPE = Recipe(seed=23, count=COUNT, malformed=0.05, late=0.05, copied=0.05, huge=0.001)
TABLES = ("invoices", "line_items", "store_revenue", "loyalty", "invoice_quarantine")
ALONE = {
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
}
PATIENCE_SECONDS = 400


@pytest.fixture(scope="module")
def ledger() -> Ledger:
    ledger = Ledger.of(RECIPE)
    for invoice in generated(RECIPE):
        ledger.note(invoice)
    return ledger


def test_same_invoices_same_tables(ledger: Ledger, tmp_path: Path) -> None:
    on_kafka = KafkaNode(tmp_path / "kafka", ALONE)
    on_kafka.start()
    try:
        ours, theirs = tmp_path / "data-klamm", tmp_path / "data-kafka"
        _run_both_halves(on_kafka.bootstrap, theirs)
    finally:
        on_kafka.discard()
    with klamm.Cluster(brokers=1) as cluster:
        _run_both_halves(cluster.bootstrap_servers, ours)
    for tables in (theirs / "tables", ours / "tables"):
        assert reckoning(ledger, tables) == []
        late, counted = late_and_counted(ledger, tables)
        assert 0 < counted < late
    for name in TABLES:
        assert _rows(ours / "tables" / name) == _rows(theirs / "tables" / name), name


def _run_both_halves(servers: str, data: Path) -> None:
    create_topic(servers, "invoice")
    invoices = generated(RECIPE)
    for some in (islice(invoices, COUNT // 2), invoices):
        sent = send(some, servers, "invoice", on_sent=lambda _: None)
        assert sent.acknowledged == sent.records and not sent.errors
        _run_once(servers, data)


def _run_once(servers: str, data: Path) -> None:
    command = [sys.executable, "-m", "klamm", "pipeline", "run", str(EXAMPLE), "--once", "--master", "local[2]"]
    ran = subprocess.run(
        [*command, "--bootstrap", servers, "--data", str(data)],
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


def _rows(path: Path) -> Counter[str]:
    table = DeltaTable(str(path)).to_pyarrow_table()
    columns = sorted(set(table.column_names) - {"timestamp"})
    return Counter(map(str, table.select(columns).to_pylist()))
