"""Where the connector's jars are, and a session that has them.

A JVM has one classpath, and Spark one JVM in a process: a session that another test began without the jars cannot get
them later. So these tests have a session of their own, and are left out where somebody else's runs already.
"""

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def jar_directory() -> Path:
    """KLAMM_SPARK_JARS, else `.jars/spark`, filled by `tools/spark/fetch.sh`."""
    given = os.environ.get("KLAMM_SPARK_JARS")
    return Path(given) if given else Path(__file__).parents[3] / ".jars" / "spark"


def connected_session(settings: dict[str, str]) -> "SparkSession":
    """With `format("kafka")` and `format("klamm")`."""
    from pyspark import SparkContext

    from klamm.pipeline.registration import register
    from klamm.pipeline.session import new_session

    if shutil.which("java") is None:
        pytest.skip("needs Java 17 or later (`java` is not on the PATH)")
    jars = sorted(map(str, jar_directory().glob("*.jar")))
    if not any("spark-sql-kafka" in jar for jar in jars):
        pytest.skip("needs Spark's connector: run tools/spark/fetch.sh or set KLAMM_SPARK_JARS")
    if SparkContext._active_spark_context is not None:
        pytest.skip("Spark runs in this process already, without the connector: run these tests alone")
    session = new_session("compat", "local[2]", {"spark.jars": ",".join(jars), **settings})
    register(session)
    return session
