"""Making the source and sink known to a Spark session: `register(spark)`, then `format("klamm")`.

Spark looks a Python data source up by its name in the session; workers import it from this package, which therefore
has to be installed where they run. The connector's name, `kafka`, is not to be had: Spark keeps it even where the jar
is missing. Otherwise the two formats are interchangeable.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(spark: "SparkSession") -> None:
    from klamm.pipeline.source.klamm_source import KlammSource

    spark.dataSource.register(KlammSource)
