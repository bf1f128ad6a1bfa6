"""The example's transforms give what a beginner would write, and quarantine takes exactly what is no invoice."""

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from klamm.pipeline.invoice.example import pipeline
from klamm.pipeline.invoice.generator import Recipe, generated
from tests.pipeline.invoice.naive import SCHEMAS, books_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

RECIPE = Recipe(seed=11, count=300, malformed=0.4, late=0.1, copied=0.2, huge=0.004)


@pytest.mark.long
def test_transforms_give_what_a_beginner_would_write(spark: "SparkSession") -> None:
    values = [each.value for each in generated(RECIPE)]
    frames = pipeline.apply(spark, {"invoice": values})
    books = books_of(values)
    # The table of invoices drops copies by its key; the transform itself lets them pass.
    frames["invoices"] = frames["invoices"].distinct()
    frames["line_items"] = frames["line_items"].distinct()
    for name in SCHEMAS:
        expected = Counter(tuple(row.values()) for row in books.arrow(name).to_pylist())
        assert rows_of(frames[name], SCHEMAS[name].names) == expected, name


def rows_of(frame: "DataFrame", columns: list[str]) -> Counter[tuple[object, ...]]:
    return Counter(tuple(row.values()) for row in frame.select(columns).toArrow().to_pylist())
