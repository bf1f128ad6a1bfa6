"""Spark for a pipeline: started out of Ctrl-C's reach, quiet, with format `klamm` and the pipeline's module aboard."""

import importlib.util
import logging
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from signal import SIGKILL
from subprocess import Popen, TimeoutExpired
from typing import TYPE_CHECKING

from klamm.pipeline.causes import paragraph
from klamm.pipeline.java import NoJava
from klamm.pipeline.loading import Loaded
from klamm.pipeline.problems import INSTALL, PipelineError
from klamm.pipeline.session import new_session
from klamm.pipeline.starting import end, interruptible

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GOES_ON = "What it had written before that stays; the next run goes on from there."
ENDING_SECONDS = 2.0
SAID_BETTER = (
    "Exception while sending command.",
    "KeyboardInterrupt while sending command.",
    "Exception occurred while shutting down connection",
)
NEEDED = ("pyspark", "pyarrow", "pandas", "deltalake")


@contextmanager
def session(loaded: Loaded, master: str, settings: dict[str, str], log: Path | None) -> "Iterator[SparkSession]":
    """Java gets a session of its own: Ctrl-C is meant for us, and Java has to live as long as our last batch. Its log
    goes to `log`, or to the terminal if there is none."""
    check_installed()
    _be_quiet()
    with Path(os.devnull if log is None else log).open("ab") as file:
        where = {} if log is None else {"stderr": file, "stdout": file}
        try:
            with interruptible():
                spark = new_session(loaded.pipeline.name, master, settings, {"start_new_session": True, **where})
        except NoJava as problem:
            raise PipelineError(str(problem)) from problem
        except Exception as problem:
            raise PipelineError(
                f"Spark does not start on {master}: {paragraph(problem)}"
                + ("" if log is None else f" Its log is {log}; --verbose shows it here.")
            ) from problem
    gateway = spark.sparkContext._gateway
    assert gateway is not None
    java: Popen[bytes] = gateway.proc
    try:
        spark.sparkContext.setLogLevel("WARN" if log is None else "ERROR")
        from klamm.pipeline.registration import register

        register(spark)
        loaded.send_by_value()
        yield spark
    except Exception as problem:
        if not _has_ended(java):
            raise
        hint = "" if log is None else f" Its log is {log}."
        raise PipelineError(f"{_how_it_ended(java.returncode)} {GOES_ON}{hint}") from problem
    except KeyboardInterrupt:
        end(java)
        raise
    finally:
        if java.poll() is None:
            spark.stop()


def _has_ended(java: "Popen[bytes]") -> bool:
    """A connection to it breaks a moment before its end can be seen."""
    try:
        java.wait(ENDING_SECONDS)
    except TimeoutExpired:
        return False
    return True


def _how_it_ended(code: int) -> str:
    if code == -SIGKILL:
        return "Spark's Java process was killed (kill -9; the system does that too, when memory runs out)."
    return f"Spark's Java process has ended by itself (exit code {code})."


def _be_quiet() -> None:
    """PySpark has things to say on standard error that we say better, or that concern nobody here."""
    from pyspark import accumulators
    from pyspark.logger import PySparkLogger

    warnings.filterwarnings("ignore", module="pyspark")
    # All speak in stack traces: when Java is gone, which `session` says in a sentence, and on Ctrl-C.
    for logger in (logging.getLogger(), logging.getLogger("py4j.clientserver")):
        logger.addFilter(lambda record: record.msg not in SAID_BETTER)
    for server in (accumulators.AccumulatorTCPServer, accumulators.AccumulatorUnixServer):
        server.handle_error = lambda *ignored: None  # type: ignore[method-assign]
    for name in ("DataFrameQueryContextLogger", "SQLQueryContextLogger"):
        PySparkLogger.getLogger(name).disabled = True


def check_installed() -> None:
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise PipelineError(f"pipelines need {', '.join(missing)}. To have it: {INSTALL}.")
