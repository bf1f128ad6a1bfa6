"""Who outgrows Klamm changes one line: the example, unchanged, makes the same tables of the same invoices on Kafka.

Both runs are what a user types. The invoices come from one seed, and all of them are in one batch, so that no window
closes before a late one. Only the broker's own times may differ.
"""

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from deltalake import DeltaTable

import klamm
from klamm.pipeline.invoice.generator import Recipe, generated
from klamm.pipeline.invoice.ledger import Ledger
from klamm.pipeline.invoice.reckoning import reckoning
from klamm.pipeline.invoice.sending import create_topic, send
from tests.harness.kafka_node import KafkaNode

EXAMPLE = Path(__file__).parents[3] / "examples" / "invoice.py"
RECIPE = Recipe(seed=23, count=2_000, malformed=0.05, late=0.05, copied=0.05, huge=0.001)
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
        _run(on_kafka.bootstrap, theirs)
    finally:
        on_kafka.discard()
    with klamm.Cluster(brokers=1) as cluster:
        _run(cluster.bootstrap_servers, ours)
    assert reckoning(ledger, theirs / "tables") == []
    assert reckoning(ledger, ours / "tables") == []
    for name in TABLES:
        assert _rows(ours / "tables" / name) == _rows(theirs / "tables" / name), name


def _run(servers: str, data: Path) -> None:
    create_topic(servers, "invoice")
    sent = send(generated(RECIPE), servers, "invoice", on_sent=lambda _: None)
    assert sent.acknowledged == sent.records and not sent.errors
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
