"""A broker as a process that may refuse to start, and what such tests say about one that runs."""

import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from klamm.errors import ErrorCode
from klamm.records.batch import batches, intact
from klamm.records.builder import BatchBuilder
from klamm.records.record import records_of
from tests.crash.client import EARLIEST, Client
from tests.harness.node import Node

STARTED_WITHIN_SECONDS = 30.0
CANNOT_START = "klamm broker: cannot start: "


class Refusal(NamedTuple):
    code: int
    said: str

    @property
    def reason(self) -> str:
        """The one line for the person who called."""
        *before, last = self.said.rstrip("\n").split("\n")
        assert last.startswith(CANNOT_START), self.said
        assert all("[broker" in line for line in before), f"more than log lines and one sentence:\n{self.said}"
        return last.removeprefix(CANNOT_START)


def refused(directory: Path, *options: str, node_id: int = 0, listen: str = "127.0.0.1:0") -> Refusal:
    """Start a broker that is expected to end by itself, at once, with a reason and without a stack trace."""
    command = [sys.executable, "-m", "klamm", "broker", "--id", str(node_id), "--listen", listen]
    command += ["--dir", str(directory), *options]
    ended = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=STARTED_WITHIN_SECONDS, check=False
    )
    assert "takes connections" not in ended.stdout
    assert "Traceback" not in ended.stderr, ended.stderr
    return Refusal(ended.returncode, ended.stderr)


def check_no_stack_trace(node: Node) -> None:
    assert "Traceback" not in node.log and "bug in Klamm" not in node.log, node.log[-5_000:]


def batch_of(*values: bytes) -> bytearray:
    builder = BatchBuilder()
    for value in values:
        builder.append(None, value, -1)
    return builder.build()


def write(client: Client, topic: str, *values: bytes) -> None:
    """One batch each, acknowledged."""
    for value in values:
        answer = client.produce(topic, batch_of(value))
        assert answer.error_code == ErrorCode.NONE, ErrorCode(answer.error_code).name


def read(client: Client, topic: str) -> list[bytes]:
    """All values; every batch is whole and offsets are dense."""
    offset, end = client.end_offset(topic, which=EARLIEST), client.end_offset(topic)
    values = []
    while offset < end:
        answer = client.fetch(topic, offset)
        assert answer.error_code == ErrorCode.NONE, ErrorCode(answer.error_code).name
        data = memoryview(bytes(answer.records))
        for position, batch in batches(data):
            view = data[position : position + batch.size_bytes]
            intact(view)
            assert batch.base_offset == offset
            offset = batch.next_offset
            values += [record.value or b"" for record in records_of(view)]
    return values
