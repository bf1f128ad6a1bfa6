"""The demo's pipeline on Spark: `klamm pipeline run` as a process of its own, and how far it says it is."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from klamm.pipeline import invoice
from klamm.pipeline.java import NoJava, java_home
from klamm.pipeline.keeping import Directory
from klamm.pipeline.problems import PipelineError
from klamm.pipeline.spark import check_installed

END_SECONDS = 15.0
LAST_WORDS = 12
QUICK = "spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Two minutes are too short for Java's better compiler to be worth its work."""


def what_is_missing() -> str | None:
    """For Spark to run here, in a sentence; None if nothing is."""
    try:
        check_installed()
        java_home(Path(tempfile.gettempdir()) / f"klamm-java-{os.getuid()}")
    except (PipelineError, NoJava) as problem:
        return str(problem)
    return None


class SparkRun:
    """Reads from the beginning of the topic, and goes on until it is stopped."""

    def __init__(self, directory: Path, servers: str) -> None:
        self.file = directory / "invoice.py"
        self.data = directory / "pipeline"
        self._said, self._reports = directory / "pipeline.log", directory / "pipeline.jsonl"
        shutil.copy(Path(invoice.__file__).with_name("example.py"), self.file)
        self._command = [sys.executable, "-P", "-m", "klamm", "pipeline", "run", str(self.file)]
        self._command += ["--bootstrap", servers, "--data", str(self.data), "--json", "--conf", QUICK]
        self._read = 0
        self._records: dict[str, int] = {}
        self._rows = 0
        self._process = self._started()

    @property
    def tables(self) -> Path:
        return self.data / "tables"

    @property
    def is_over(self) -> bool:
        return self._process.poll() is not None

    @property
    def code(self) -> int | None:
        return self._process.poll()

    @property
    def records(self) -> int:
        """That every one of its queries has written, in this run."""
        self._catch_up()
        # A report tells of those queries that have something new: who is not in any has not written anything.
        queries = Directory(self.data).checkpoints
        return min((self._records.get(query, 0) for query in queries), default=0)

    @property
    def rows(self) -> int:
        """In all tables."""
        self._catch_up()
        return self._rows

    @property
    def how_far(self) -> str:
        if self.rows:
            return f"Spark: {self.rows:,} rows in the tables"
        return "Spark reads" if "making topic" in self.last_words else "Spark starts"

    @property
    def last_words(self) -> str:
        return "\n".join(self._said.read_text(errors="replace").splitlines()[-LAST_WORDS:])

    def drain(self) -> None:
        """Once more, after it died: what is there, then its end."""
        assert self.is_over, "one at a time"
        self._process = self._started("--once")

    def ask_to_stop(self) -> None:
        """After the batch that it is at."""
        if not self.is_over:
            self._process.send_signal(signal.SIGTERM)

    def wait_ended(self, seconds: float = END_SECONDS) -> None:
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.end()

    def end(self) -> None:
        """At once. Java ends when its parent does."""
        self.ask_to_stop()
        try:
            self._process.wait(0.2)
        except subprocess.TimeoutExpired:
            self.ask_to_stop()
            try:
                self._process.wait(END_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def _started(self, *more: str) -> "subprocess.Popen[bytes]":
        with self._said.open("ab") as said, self._reports.open("ab") as reports:
            # A session of its own: Ctrl-C is for us, and we tell it.
            return subprocess.Popen(
                [*self._command, *more], stdin=subprocess.DEVNULL, stdout=reports, stderr=said, start_new_session=True
            )

    def _catch_up(self) -> None:
        with self._reports.open("rb") as reports:
            reports.seek(self._read)
            new = reports.read()
        whole, newline, _ = new.rpartition(b"\n")
        self._read += len(whole) + len(newline)
        for line in whole.splitlines():
            report = json.loads(line)
            self._records |= {name: query["records"] for name, query in report["queries"].items()}
            self._rows = sum(each["added"] for label, each in report["outputs"].items() if label.startswith("table "))
