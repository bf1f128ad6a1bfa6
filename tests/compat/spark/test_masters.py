"""The same pipeline file on a Spark cluster, by `--master` alone: executors that are processes of their own, and a real
Master with two Workers."""

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import klamm
from klamm.pipeline.java import java_home
from tests.compat.spark.test_runs import cluster as cluster  # a fixture
from tests.compat.spark.test_runs import ended, start
from tests.pipeline.runner.shop import FILE
from tests.pipeline.runner.world import check_tables, produce, rows

pytestmark = pytest.mark.long

COUNT = 900
LONG_SECONDS = 120.0
SMALL = {
    "spark.sql.shuffle.partitions": "2",
    "spark.executor.memory": "640m",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}


def run_once(cluster: klamm.Cluster, directory: Path, master: str) -> dict[str, Any]:
    file, data = directory / "shop.py", directory / "data"
    file.write_text(FILE)
    produce(cluster.bootstrap_servers, 0, COUNT)
    conf = [word for key, value in SMALL.items() for word in ("--conf", f"{key}={value}")]
    code, last, err = ended(start(file, data, cluster.bootstrap_servers, "--once", "--master", master, *conf))
    assert code == 0, err
    check_tables(data, COUNT)
    assert sum(row["orders"] for row in rows(data, "revenue")) == COUNT - len(rows(data, "orders_quarantine"))
    return last


def test_executors_that_are_processes(cluster: klamm.Cluster, tmp_path: Path) -> None:
    assert run_once(cluster, tmp_path, "local-cluster[2,1,1024]")["records"] == COUNT


def test_a_master_with_two_workers(cluster: klamm.Cluster, tmp_path: Path) -> None:
    with standalone(tmp_path, workers=2) as master:
        assert run_once(cluster, tmp_path, master)["records"] == COUNT
    executors = [path for path in (tmp_path / "workers").glob("*/app-*/*") if path.is_dir()]
    assert len({path.parent.parent for path in executors}) == 2, "both Workers had an executor"


@contextmanager
def standalone(directory: Path, workers: int) -> Iterator[str]:
    """Spark's own Master and Workers, as an operator starts them."""
    running = []
    try:
        master = _started("master.Master", directory / "master.log", "--host", "127.0.0.1", "--port", "0")
        running.append(master)
        url = _said(master, directory / "master.log", r"Starting Spark master at (spark://\S+)")
        for number in range(workers):
            log, place = directory / f"worker-{number}.log", directory / "workers" / str(number)
            words = ("--cores", "1", "--memory", "1g", "--host", "127.0.0.1", "--work-dir", str(place), url)
            running.append(_started("worker.Worker", log, *words))
            _said(running[-1], log, r"(Successfully registered with master)")
        yield url
    finally:
        for process in reversed(running):
            process.terminate()
        for process in running:
            process.wait(30)


def _started(which: str, log: Path, *words: str) -> "subprocess.Popen[bytes]":
    import pyspark

    home = Path(pyspark.__file__).parent
    command = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{which}", "--webui-port", "0", *words]
    java = java_home(Path(tempfile.gettempdir()) / f"klamm-java-{os.getuid()}")
    more = {"JAVA_HOME": str(java), "SPARK_HOME": str(home), "PYSPARK_PYTHON": sys.executable}
    settings = log.with_suffix(".properties")
    settings.write_text(
        "rootLogger.level = info\nrootLogger.appenderRef.out.ref = out\n"
        "appender.out.type = Console\nappender.out.name = out\nappender.out.target = SYSTEM_ERR\n"
        "appender.out.layout.type = PatternLayout\nappender.out.layout.pattern = %m%n\n"
    )
    more["SPARK_DAEMON_JAVA_OPTS"] = f"-Dlog4j2.configurationFile=file:{settings}"
    with log.open("wb") as output:
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env={**os.environ, **more}
        )


def _said(process: "subprocess.Popen[bytes]", log: Path, words: str) -> str:
    until = time.monotonic() + LONG_SECONDS
    while time.monotonic() < until and process.poll() is None:
        found = re.search(words, log.read_text(errors="replace"))
        if found:
            return found.group(1)
        time.sleep(0.1)
    raise AssertionError(f"{words} was not said:\n{log.read_text(errors='replace')}")
