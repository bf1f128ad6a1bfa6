"""What quarantine takes for the same record."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql.types import StructType

from klamm.pipeline.tables import Written, job, open_table
from klamm.pipeline.writing import QUARANTINE_KEY
from tests.pipeline.tables.without_spark import rows_of, run, session

COLUMNS = (
    StructType().add("topic", "string").add("partition", "integer").add("offset", "long").add("timestamp", "timestamp")
)


def test_a_topic_that_was_created_again_has_other_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the same offsets. Read once more after --reset, those of the old one are known, and the new ones are not."""
    monkeypatch.setattr(job, "run", run)
    before, after = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 2, 1, tzinfo=UTC)

    def written(checkpoint: str, time: datetime) -> Written:
        table = open_table(session(2), str(tmp_path), key=QUARANTINE_KEY, application=checkpoint)
        return table.write(rows_of([("orders", 0, offset, time) for offset in range(3)], COLUMNS), 0)

    assert written("first", before) == Written(3)
    assert written("second", before) == Written(rows_left_out=3)
    assert written("third", after) == Written(3)
