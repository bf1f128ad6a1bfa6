"""One Spark session for all tests of pipelines: it takes seconds to start."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[SparkSession]":
    from klamm.pipeline.session import new_session

    warehouse: Path = tmp_path_factory.mktemp("warehouse")
    session = new_session("tests", "local[2]", {"spark.sql.warehouse.dir": str(warehouse)})
    yield session
    session.stop()
