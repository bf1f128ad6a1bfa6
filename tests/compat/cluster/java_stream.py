"""Kafka's producer and consumer at work (`Stream.java`), in a process of their own, while a test does what it likes."""

import subprocess
import threading
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

from tests.compat.cluster.clusters import Cluster
from tests.harness.kafka_node import JVM, jar_directory
from tests.harness.waiting import wait_until

ENDS_WITHIN_SECONDS = 90.0


class Place(NamedTuple):
    partition: int
    offset: int


class JavaStream:
    """Numbers 0, 1, 2, …, sent at a steady pace and read at once. What became of them is here as it happens."""

    def __init__(
        self, cluster: Cluster, topic: str, partitions: int, count: int, a_second: int, *settings: str
    ) -> None:
        self.sent: dict[int, Place] = {}
        self.read: dict[int, list[Place]] = defaultdict(list)
        self.failed: dict[int, str] = {}
        self.problems: list[str] = []
        self.bytes_from: dict[int, int] = {}
        source = str(Path(__file__).with_name("Stream.java"))
        what = [cluster.bootstrap, topic, str(partitions), str(count), str(a_second), *settings]
        command = [*JVM, "-cp", f"{jar_directory()}/*", source, *what]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def __enter__(self) -> "JavaStream":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        self._listener.join()

    def wait_sent(self, count: int) -> None:
        wait_until(lambda: len(self.sent) >= count, f"{count} are acknowledged", within_seconds=60)

    def wait_end(self) -> None:
        assert self._process.wait(ENDS_WITHIN_SECONDS) == 0
        self._listener.join()
        assert not self.problems, self.problems

    def _listen(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                self._heard(*line.split(maxsplit=2))

    def _heard(self, kind: str, subject: str, rest: str = "") -> None:
        match kind:
            case "sent":
                self.sent[int(subject)] = _place(rest)
            case "read":
                self.read[int(subject)].append(_place(rest))
            case "failed":
                self.failed[int(subject)] = rest
            case "from":
                self.bytes_from[int(subject)] = int(rest)
            case _:
                self.problems.append(f"{kind} {subject} {rest}")


def _place(text: str) -> Place:
    partition, offset = text.split()
    return Place(int(partition), int(offset))
