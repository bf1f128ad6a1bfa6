"""What Spark asks the format for, before anything is read or written."""

import pytest
from pyspark.sql.types import BinaryType, StructField, StructType

from klamm.pipeline.source.klamm_source import KlammSource

ROWS = StructType([StructField("key", BinaryType()), StructField("value", BinaryType())])


def test_a_topic_is_not_overwritten() -> None:
    """The connector refuses mode("overwrite") as well. To append instead would surprise."""
    source = KlammSource({"kafka.bootstrap.servers": "127.0.0.1:1", "topic": "orders"})
    source.writer(ROWS, overwrite=False)
    with pytest.raises(Exception, match="append"):
        source.writer(ROWS, overwrite=True)
