"""Making the source and sink known to a Spark session: `register(spark)`, then `format("klamm")`.

Spark looks a Python data source up by its name in the session; workers import it from this package, which therefore
has to be installed where they run.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(spark: "SparkSession", name: str = "klamm") -> None:
    """`register(spark, "kafka")` takes the connector's name, where its jar is not there: queries stay as they are."""
    from klamm.pipeline.source.klamm_source import KlammAsKafka, KlammSource

    sources = {source.name(): source for source in (KlammSource, KlammAsKafka)}
    if name not in sources:
        raise ValueError(f"The source can be registered as {' or '.join(sources)}, not as '{name}'.")
    spark.dataSource.register(sources[name])
