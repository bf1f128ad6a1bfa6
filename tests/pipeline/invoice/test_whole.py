"""The whole way: generated into a topic, through the example, into tables that the ledger agrees with. In two runs, so
that late invoices find their windows closed, and copies come after their originals were counted."""

from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import klamm
import klamm.pipeline.invoice
from klamm.pipeline import loaded, register
from klamm.pipeline.invoice.generator import Recipe, generated
from klamm.pipeline.invoice.ledger import Ledger
from klamm.pipeline.invoice.reckoning import late_and_counted, reckoning
from klamm.pipeline.invoice.sending import create_topic, send
from tests.pipeline.runner.test_queries import run_once

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXAMPLE = Path(klamm.pipeline.invoice.__file__).with_name("example.py")
RECIPE = Recipe(seed=2, count=2_000, malformed=0.05, late=0.1, copied=0.1, huge=0.001)
FIRST = 1_000


def test_tables_are_what_the_ledger_says(spark: "SparkSession", tmp_path: Path) -> None:
    register(spark)
    file, ledger, data = loaded(EXAMPLE), Ledger.of(RECIPE), tmp_path / "data"
    file.send_by_value()
    invoices = generated(RECIPE)
    with klamm.Cluster(brokers=1) as cluster:
        servers = cluster.bootstrap_servers
        create_topic(servers, "invoice")
        for some in (islice(invoices, FIRST), invoices):
            sent = send(some, servers, "invoice", on_sent=ledger.note)
            assert sent.acknowledged == sent.records and not sent.errors
            run_once(spark, file, data, servers)
    assert reckoning(ledger, data / "tables") == []
    late, counted = late_and_counted(ledger, data / "tables")
    assert 0 < counted < late
