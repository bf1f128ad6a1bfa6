"""Kafka's own Java client: ProducerPerformance from the jars, and `java/BenchClient.java` for what its tools cannot do.

Heap and collector options are those of Kafka's perf-test scripts.
"""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

from bench.systems import JVM_OPTIONS, ROOT, Node, NotAvailableError, Watchable, class_path
from bench.worker import Work, watched

CLIENT_OPTIONS = ("-Xmx512M", *JVM_OPTIONS)
SOURCE = Path(__file__).resolve().parent / "java" / "BenchClient.java"
CLASSES = ROOT / ".cache" / "bench-classes"
STEADY_BEGINS = "In steady state."
STEADY_ENDED = re.compile(r"(\d+) steady state records sent, ([\d.]+) records/sec")


def compile_client() -> None:
    if shutil.which("javac") is None:
        raise NotAvailableError("the benchmark compiles a small Java client: it needs javac (a JDK) in the PATH")
    CLASSES.mkdir(parents=True, exist_ok=True)
    subprocess.run(["javac", "-cp", class_path(), "-d", str(CLASSES), str(SOURCE)], check=True)


def consume(system: Watchable, topic: str, warmup_seconds: float, seconds: float) -> Work:
    return watched([*_client("consume"), system.address, topic, str(warmup_seconds), str(seconds)], system, topic)


def latency(node: Node, topic: str, warmup: int, messages: int, message_bytes: int) -> Work:
    arguments = [node.address, topic, str(warmup), str(messages), str(message_bytes)]
    return watched([*_client("latency"), *arguments], node, topic)


def paced(system: Watchable, topic: str, rate: int, warmup_seconds: float, seconds: float, message_bytes: int) -> Work:
    """Latency at a fixed rate, counted from the moment each record should have been sent; acks=all."""
    arguments = [system.address, topic, *map(str, (rate, warmup_seconds, seconds, message_bytes))]
    return watched([*_client("paced"), *arguments], system, topic)


def produce(node: Node, topic: str, record_bytes: int, warmup_records: int, records: int) -> Work:
    """kafka-producer-perf-test, unthrottled, acks=1, otherwise the producer's defaults."""
    command = perf_test(node.address, topic, record_bytes, warmup_records + records, acks="1")
    command += ["--warmup-records", str(warmup_records)]

    def hear(line: str) -> dict[str, Any] | None:
        if line.startswith(STEADY_BEGINS):
            return {"event": "begin"}
        if ended := STEADY_ENDED.match(line):
            sent, rate = int(ended.group(1)), float(ended.group(2))
            return {"event": "end", "seconds": sent / rate, "records": sent, "bytes": sent * record_bytes}
        return None

    return watched(command, node, topic, hear)


def perf_test(address: str, topic: str, record_bytes: int, records: int, acks: str) -> list[str]:
    return [
        "java", *CLIENT_OPTIONS, "-cp", class_path(), "org.apache.kafka.tools.ProducerPerformance",
        "--bootstrap-server", address, "--topic", topic, "--record-size", str(record_bytes),
        # The tool says that its steady state has begun at the next report only, so it reports often.
        "--num-records", str(records), "--throughput", "-1", "--reporting-interval", "100",
        "--command-property", f"acks={acks}",
    ]  # fmt: skip


def _client(mode: str) -> list[str]:
    return ["java", *CLIENT_OPTIONS, "-cp", f"{CLASSES}:{class_path()}", "BenchClient", mode]
