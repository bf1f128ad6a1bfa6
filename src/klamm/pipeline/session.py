"""A Spark session with settings that suit streams of records on one machine, and do no harm on a cluster.

Two hundred shuffle partitions are Spark's default; on two cores a trigger would spend its time on empty tasks. State is
kept in RocksDB, which `transformWithState` needs. Workers run the Python that the driver runs.
"""

import os
import re
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from klamm.pipeline.java import java_home
from klamm.pipeline.spark_home import spark_home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCAL = "local[*]"
LOCAL_THREADS = re.compile(r"local\[(\d+|\*)\]")
FAILURES = 4
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.numRecentProgressUpdates": "20",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "20000",
    # On a busy machine a Python worker may take longer to start than the 15 s that Spark gives it.
    "spark.python.authenticate.socketTimeout": "120s",
}


def new_session(
    name: str,
    master: str = LOCAL,
    settings: dict[str, str] | None = None,
    java_process: dict[str, Any] | None = None,
) -> "SparkSession":
    """`settings` win over ours. One at a time in a process, as ever with Spark. `java_process` is how the process that
    Java runs in is started, as in `subprocess.Popen`; Java stays for later sessions."""
    os.environ["JAVA_HOME"] = str(java_home(Path(tempfile.gettempdir()) / f"klamm-java-{os.getuid()}"))
    home = spark_home() if LOCAL_THREADS.fullmatch(master) else None
    if home is not None:
        os.environ["SPARK_HOME"] = str(home)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)

    from pyspark.sql import SparkSession

    master = forgiving(master)
    chosen = {**SETTINGS, **_on_one_machine(master), **(settings or {})}
    if java_process is not None:
        _start_java({"spark.master": master, "spark.app.name": name, **chosen}, java_process)
    builder = SparkSession.builder.appName(name).master(master)
    for key, value in chosen.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def forgiving(master: str) -> str:
    """In local mode Spark gives up after the first failure of a task, unless told how many it takes. On a cluster it
    takes four; a Python worker that did not start in time should not end a stream here either."""
    return f"{master[:-1]},{FAILURES}]" if LOCAL_THREADS.fullmatch(master) else master


def _start_java(settings: dict[str, str], java_process: dict[str, Any]) -> None:
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway

    if SparkContext._gateway is None:
        conf = SparkConf(loadDefaults=False).setAll(list(settings.items()))
        SparkContext._ensure_initialized(gateway=launch_gateway(conf, dict(java_process)))  # type: ignore[no-untyped-call]


def _on_one_machine(master: str) -> dict[str, str]:
    """On a cluster nobody here knows how many cores there are, nor how long the paths of its temporary directories,
    in which sockets have to fit: Spark's own defaults stay."""
    if not master.startswith("local"):
        return {}
    cores = os.cpu_count() or 1
    return {
        "spark.sql.shuffle.partitions": str(cores),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        # Between Java and its Python workers; half as quick again as TCP where records are large (decision 0010).
        "spark.python.unix.domain.socket.enabled": "true",
    }
