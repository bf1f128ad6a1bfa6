"""docs/metrics.md says what is there: its table is that of the code, and it names nothing that no broker serves."""

import re

from tools.metrics_table import BEGIN, PAGE, with_table

from klamm.local.agreeing import METRICS_ABOVE
from klamm.runtime.metrics.family import FAMILIES

NAME = re.compile(r"\b(?:kafka|klamm|process)_[a-z0-9_]+[a-z0-9]")


def test_the_table_is_up_to_date() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert BEGIN in page
    assert with_table(page) == page, "run: python tools/metrics_table.py"


def test_every_metric_that_is_named_is_there() -> None:
    """Also in queries and alerts."""
    known = {each.name for each in FAMILIES}
    known |= {f"{each.name}{ending}" for each in FAMILIES if each.kind == "histogram" for ending in ENDINGS}
    text = (
        PAGE.read_text(encoding="utf-8").replace("kafka_exporter", "").replace("kafka_server_brokertopicmetrics_…", "")
    )
    named = set(NAME.findall(text))
    assert len(named) >= len(FAMILIES) and not named - known


def test_the_ports_that_are_named_are_those_of_a_cluster() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert f"{METRICS_ABOVE} above its own port ({9092 + METRICS_ABOVE} for 9092" in text
    assert all(f"127.0.0.1:{port + METRICS_ABOVE}" in text for port in (9092, 9093, 9094))


ENDINGS = ("_bucket", "_sum", "_count")
