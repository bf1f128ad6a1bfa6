"""Kafka's Java tools and client, kept warm in one JVM that `Tools.java` turns into a server of calls."""

import base64
import queue
import subprocess
import threading
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote_from_bytes

from tests.harness.kafka_node import jar_directory

CALL_WITHIN_SECONDS = 150.0


class Ran(NamedTuple):
    """What one call of a tool came to."""

    code: int
    out: str
    err: str

    def checked(self) -> str:
        """The output of a call that has to succeed."""
        assert self.code == 0, f"exit code {self.code}\n{self.out}\n{self.err}"
        return self.out


class JavaTools:
    """`run("org.apache.kafka.tools.TopicCommand", "--list", …)`, in the order of the calls."""

    def __init__(self) -> None:
        source = Path(__file__).with_name("Tools.java")
        self._process = subprocess.Popen(
            ["java", "-Xmx512m", "-XX:+UseSerialGC", "-cp", f"{jar_directory()}/*", str(source)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._answers: queue.Queue[str | None] = queue.Queue()
        threading.Thread(target=self._listen, daemon=True).start()

    def run(self, tool: str, *arguments: str, stdin: Path | None = None) -> Ran:
        fields = [str(stdin) if stdin else "-", tool, *arguments]
        assert self._process.stdin is not None
        self._process.stdin.write("\t".join(quote_from_bytes(field.encode()) for field in fields) + "\n")
        self._process.stdin.flush()
        answer = self._answers.get(timeout=CALL_WITHIN_SECONDS)
        assert answer is not None, "the JVM has ended"
        code, out, err = answer.split("\t")
        return Ran(int(code), base64.b64decode(out).decode(), base64.b64decode(err).decode())

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(10)

    def _listen(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                self._answers.put(line.rstrip("\n"))
        self._answers.put(None)
