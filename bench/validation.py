"""What looking at every record costs the broker: `python -m bench.validation`, with and without, in alternating rounds.

One broker for each side, started once, the same prepared requests to both over a socket, one in flight. Counted is the
processor time of the broker's whole process (user and system), which others on the machine disturb less than the clock.
A round is each side once for every shape, in an order that alternates; reported are the medians and the median
of the rounds' ratios. `--against PATH` takes another source tree (`git worktree add /tmp/old 8ed87a5`) for the side
without, `--same` compares the present tree with itself without the look, `--noise` that other tree with itself.
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from bench import raw
from klamm.records.builder import BatchBuilder
from klamm.records.compression import Codec

RESULTS = Path(__file__).parent / "results" / "validation.jsonl"
HERE = Path(__file__).resolve().parent.parent
NOW_MS = int(time.time() * 1000)

# Records a batch, bytes a record, codec, whether their sizes vary, batches a request.
SHAPES: list[tuple[int, int, str, bool, int]] = [
    (1, 10, "none", False, 1),
    (1, 100, "none", False, 1),
    (1, 1024, "none", False, 1),
    (10, 100, "none", False, 1),
    (10, 1024, "none", False, 1),
    (150, 100, "none", False, 6),
    (150, 100, "none", True, 6),
    (15, 1024, "none", False, 6),
    (15, 1024, "none", True, 6),
    (1000, 100, "none", False, 1),
    (1000, 100, "none", True, 1),
    (1000, 1000, "none", False, 1),
    (10_000, 10, "none", False, 1),
    (10_000, 100, "none", False, 1),
    (10_000, 100, "none", True, 1),
    *((150, 100, codec, True, 6) for codec in ("gzip", "snappy", "lz4", "zstd")),
    *((1000, 1000, codec, True, 1) for codec in ("gzip", "snappy", "lz4", "zstd")),
]


class Broker:
    def __init__(self, source: Path, directory: Path, settings: list[str]) -> None:
        environment = {**os.environ, "PYTHONPATH": str(source / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, "-m", "klamm", "broker", "--dir", str(directory), "--listen", "127.0.0.1:0"]
        for setting in settings:
            command += ["--set", setting]
        self.process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
        self.port = 0
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if "127.0.0.1:" in line:
                self.port = int(line.split("127.0.0.1:")[1].split()[0].rstrip(".,;"))
                break

    def cpu_seconds(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(30)


def batch_of(count: int, size: int, codec: str, varies: bool) -> bytes:
    chance = random.Random(1)
    builder = BatchBuilder(Codec[codec.upper()])
    words = [chance.randbytes(8) for _ in range(64)]
    for index in range(count):
        length = chance.randrange(size // 2, size + size // 2) if varies else size
        value = b"".join(chance.choices(words, k=length // 8 + 1))[:length]
        builder.append(None, value, NOW_MS + index * 40 // count)
    return bytes(builder.build())


def requests(shapes: list[tuple[int, int, str, bool, int]]) -> Iterator[tuple[str, bytes, int]]:
    for count, size, codec, varies, several in shapes:
        batch = batch_of(count, size, codec, varies)
        name = f"{several} x {count} x {size} B{' varying' if varies else ''}, {codec}"
        yield name, raw.produce_frame("t", {index: batch for index in range(several)}), len(batch) * several


def measured(broker: Broker, frame: bytes, seconds: float) -> tuple[float, int]:
    """Processor time a request, over about so many seconds of it."""
    connection = raw.Connection(broker.port)
    try:
        for _ in range(20):
            connection.ask(frame)
        number, begin = 0, broker.cpu_seconds()
        while (spent := broker.cpu_seconds() - begin) < seconds:
            for _ in range(20):
                connection.ask(frame)
            number += 20
        return spent / number, number
    finally:
        connection.close()
