"""Making the source and sink known to a Spark session: `register(spark)`, then `format("klamm")`.

Spark looks a Python data source up by its name in the session; workers import it from this package, which therefore
has to be installed where they run.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAME = "klamm"


def register(spark: "SparkSession", name: str = NAME) -> None:
    """Under another name too, for instance `register(spark, "kafka")` where the connector's jar is not there."""
    from klamm.pipeline.source.klamm_source import KlammSource

    spark.dataSource.register(KlammSource if name == NAME else _named(KlammSource, name))


def _named(source: type, name: str) -> type:
    return type(source.__name__, (source,), {"name": classmethod(lambda cls: name), "__module__": source.__module__})
