"""What a table knows of its files: readers leave out those that cannot hold what they look for, and no others."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyspark.sql.types import StructType

from klamm.pipeline.tables import Written, job, open_table
from klamm.pipeline.tables.writing import statistics
from tests.pipeline.tables.without_spark import rows_of, run, session

COLUMNS = StructType().add("id", "string").add("at", "timestamp").add("day", "date")
YEAR_10000_US, YEAR_0_US, YEAR_800_US = 253_402_300_800_000_000, -62_150_000_000_000_000, -36_900_000_000_000_000
DAY_US = 86_400_000_000


def stats_of(path: Path, *micros: int) -> dict[str, Any]:
    schema = pa.schema([("at", pa.timestamp("us", "UTC")), ("day", pa.date32()), ("n", pa.int64())])
    days = pa.array([each // DAY_US for each in micros], pa.int32()).cast(pa.date32())
    pq.write_table(pa.table([pa.array(micros, schema.types[0]), days, pa.array(micros)], schema=schema), path)
    return statistics(pq.read_metadata(path), schema)


@pytest.mark.parametrize("micros", [YEAR_10000_US, YEAR_0_US])
def test_a_time_that_python_has_no_value_for(tmp_path: Path, micros: int) -> None:
    """Spark has. Such a column has no range, and the others have theirs."""
    found = stats_of(tmp_path / "file", 0, micros)
    assert found["minValues"] == {"n": min(0, micros)} and found["maxValues"] == {"n": max(0, micros)}
    assert found["nullCount"] == {"at": 0, "day": 0, "n": 0}


def test_a_year_has_four_digits(tmp_path: Path) -> None:
    found = stats_of(tmp_path / "file", YEAR_800_US, 1)
    assert found["minValues"]["at"] == "0800-09-07T16:00:00.000000Z" and found["minValues"]["day"] == "0800-09-07"
    assert found["maxValues"]["at"] == "1970-01-01T00:00:00.000001Z"


def test_rows_of_any_time_are_written_and_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job, "run", run)
    table = open_table(session(1), str(tmp_path), key=("id",), application="app")
    for batch, micros in enumerate([YEAR_10000_US, YEAR_0_US, YEAR_800_US, 0]):
        rows = rows_of([(f"{batch}", micros, micros // DAY_US)], COLUMNS)
        assert table.write(rows, batch) == Written(1)
    delta = DeltaTable(tmp_path)
    at = pa.scalar(YEAR_800_US, pa.timestamp("us", "UTC"))
    assert delta.to_pyarrow_dataset().to_table(filter=pc.field("at") == at).num_rows == 1
