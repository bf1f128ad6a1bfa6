"""What the look at every record costs: `python -m bench.validation --against PATH`, PATH being an older source tree.

Four brokers run at once: the older tree's, another of the same beside it (what the machine's noise makes of nothing),
this tree's, and this tree's without the look (what else has changed since). In every round each gets the same prepared
requests for every shape, one in flight, in an order that changes from round to round. Counted is the processor time of
the broker's main thread, to the nanosecond, which others on the machine disturb less than the clock. Reported are the
medians over the rounds, of times and of rounds' ratios.

    git worktree add ../klamm-before 8ed87a5
    python -m bench.validation --against ../klamm-before --rounds 12
"""

import argparse
import json
import os
import platform
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from bench import raw
from bench.systems import free_ports
from klamm.records.builder import BatchBuilder
from klamm.records.compression import Codec

RESULTS = Path(__file__).parent / "results"
HERE = Path(__file__).resolve().parent.parent
NOW_MS = int(time.time() * 1000)
SIDES = ("older", "older again", "this", "this, not looking")
NOT_LOOKING = {"klamm.validate.records": "false"}
SECONDS = 0.12
"""Of processor time that a measurement takes, about."""
TARGET = 1.15
SETTINGS = {
    "log.retention.bytes": "1",
    "log.segment.bytes": str(32 << 20),
    "log.retention.check.interval.ms": "1000",
    "log.segment.delete.delay.ms": "0",
    "message.max.bytes": str(16 << 20),
}

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
    def __init__(self, source: Path, directory: Path, settings: dict[str, str]) -> None:
        (self.port,) = free_ports(1)
        command = [
            sys.executable,
            "-m",
            "klamm",
            "broker",
            "--dir",
            str(directory),
            "--listen",
            f"127.0.0.1:{self.port}",
        ]
        for name, value in settings.items():
            command += ["--set", f"{name}={value}"]
        environment = {**os.environ, "PYTHONPATH": str(source / "src")}
        self._process = subprocess.Popen(
            command, env=environment, cwd=directory, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        deadline = time.monotonic() + 60
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
                break
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)
        self.connection = raw.Connection(self.port)
        raw.create_topics(self.connection, [("t", 6)])
        raw.wait_until_served(self.connection, [("t", 6)])

    def cpu_ns(self) -> int:
        return int(Path(f"/proc/{self._process.pid}/schedstat").read_text().split()[0])

    def memory_kib(self) -> int:
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0])

    def stop(self) -> None:
        self.connection.close()
        self._process.terminate()
        self._process.wait(30)


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
        yield name, raw.produce_frame("t", range(several), batch), len(batch) * several


def measured(broker: Broker, frame: bytes, number: int) -> float:
    """Processor time of one request, in microseconds."""
    ask = broker.connection.ask
    raw.checked_produce(ask(frame))
    begin = broker.cpu_ns()
    for _ in range(number):
        ask(frame)
    return (broker.cpu_ns() - begin) / number / 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--only", help="shapes whose name contains this")
    wish = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        brokers = []
        older = wish.against.resolve()
        sides = [(older, SETTINGS), (older, SETTINGS), (HERE, SETTINGS), (HERE, SETTINGS | NOT_LOOKING)]
        for index, (source, settings) in enumerate(sides):
            directory = Path(scratch) / str(index)
            directory.mkdir()
            brokers.append(Broker(source, directory, settings))
        try:
            lines = list(rounds(brokers, wish.rounds, wish.only or ""))
            memory = [broker.memory_kib() for broker in brokers]
        finally:
            for broker in brokers:
                broker.stop()
    wish.results.mkdir(exist_ok=True)
    with (wish.results / "validation.jsonl").open("w") as file:
        for line in lines:
            file.write(json.dumps(line) + "\n")
    (wish.results / "validation.md").write_text(report(lines, memory, wish.rounds))
    print(report(lines, memory, wish.rounds))


def rounds(brokers: list[Broker], count: int, only: str) -> Iterator[dict[str, object]]:
    for name, frame, size in list(requests(SHAPES)):
        if only not in name:
            continue
        number = max(4, int(SECONDS * 1e6 / max(measured(broker, frame, 3) for broker in brokers)))
        for turn in range(count):
            order = [(turn + step) % len(SIDES) for step in range(len(SIDES))]
            figures = {SIDES[index]: measured(brokers[index], frame, number) for index in order}
            yield {"shape": name, "bytes": size, "round": turn, "requests": number, "us": figures}


def report(lines: list[dict[str, object]], memory: list[int], count: int) -> str:
    out = [
        "# What the look at every record costs\n",
        f"{count} alternating rounds, Python {platform.python_version()}; processor time of the broker, microseconds a"
        " request and seconds a GB; medians, ratios of the same round. Wanted: at most"
        f" {TARGET} times the older tree.\n",
        "| batches x records x size | bytes | older, us | this, us | older, s/GB | this, s/GB | this / older | spread |"
        " not looking / older | older again / older | reached |",
        "|---|--:|--:|--:|--:|--:|--:|---|--:|--:|---|",
    ]
    for shape in dict.fromkeys(line["shape"] for line in lines):
        mine = [line for line in lines if line["shape"] == shape]
        older, again, this, blind = (times_of(mine, side) for side in SIDES)
        size = mine[0]["bytes"]
        assert isinstance(size, int)
        ratios = sorted(new / old for new, old in zip(this, older, strict=True))
        noise = statistics.median(new / old for new, old in zip(again, older, strict=True))
        rest = statistics.median(new / old for new, old in zip(blind, older, strict=True))
        ratio = statistics.median(ratios)
        before, after = statistics.median(older), statistics.median(this)
        reached = "yes" if ratio <= TARGET else "no"
        out.append(
            f"| {shape} | {size:,} | {before:.1f} | {after:.1f} | {before / size * 1000:.2f} |"
            f" {after / size * 1000:.2f} | {ratio:.2f} | {ratios[0]:.2f}..{ratios[-1]:.2f} | {rest:.2f} | {noise:.2f} |"
            f" {reached} |"
        )
    out.append(f"\nHighest resident memory: older {memory[0] >> 10} MiB, this {memory[2] >> 10} MiB.\n")
    return "\n".join(out)


def times_of(lines: list[dict[str, object]], side: str) -> list[float]:
    """In the order of the rounds."""
    return [line["us"][side] for line in sorted(lines, key=lambda line: str(line["round"]))]  # type: ignore[index]


if __name__ == "__main__":
    main()
