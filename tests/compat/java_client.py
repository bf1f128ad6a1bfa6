"""The Java client as one more driver: records travel to it and back through files."""

import struct
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.compat.java_tools import JavaTools
from tests.harness.workload import FIRST_TIMESTAMP_MS, Headers, Received, Sent

THE_CLIENT_CHOOSES = -1


class JavaClient:
    name = "java"

    def __init__(self, tools: JavaTools, scratch: Path) -> None:
        self._tools = tools
        self._scratch = scratch

    def produce(
        self, bootstrap: str, topic: str, records: Sequence[Sent], codec: str = "none", *, idempotent: bool = False
    ) -> list[int]:
        settings = [f"compression.type={codec}", f"enable.idempotence={str(idempotent).lower()}", "linger.ms=20"]
        return [offset for _, offset in self.produce_with(bootstrap, topic, records, "acks=all", *settings)]

    def produce_unplaced(
        self, bootstrap: str, topic: str, keys_and_values: Sequence[tuple[bytes | None, bytes]], partitioner: str
    ) -> list[int]:
        assert partitioner == "murmur2", "the Java client's own"
        records = [Sent(THE_CLIENT_CHOOSES, key, value, (), FIRST_TIMESTAMP_MS) for key, value in keys_and_values]
        # Small batches, because keyless records change their partition with every batch.
        return [partition for partition, _ in self.produce_with(bootstrap, topic, records, "batch.size=512")]

    def produce_with(
        self, bootstrap: str, topic: str, records: Sequence[Sent], *settings: str
    ) -> list[tuple[int, int]]:
        """Sends with these client settings; partition and offset of each record."""
        content = self._scratch / "to-send"
        content.write_bytes(b"".join(map(_encoded, records)))
        printed = self._tools.run("Produce", bootstrap, topic, str(content), *settings).checked()
        places = [line.split() for line in printed.splitlines()]
        assert len(places) == len(records)
        return [(int(partition), int(offset)) for partition, offset in places]

    def consume(
        self, bootstrap: str, topic: str, partitions: Sequence[int], start: int | None = None
    ) -> dict[int, list[Received]]:
        content = self._scratch / "received"
        first = str(-1 if start is None else start)
        numbers = ",".join(map(str, partitions))
        self._tools.run("Consume", bootstrap, topic, numbers, first, str(content)).checked()
        found: dict[int, list[Received]] = {partition: [] for partition in partitions}
        for record in _decoded(content.read_bytes()):
            found[record.partition].append(record)
        return found

    def offset_for_time(self, bootstrap: str, topic: str, partition: int, timestamp_ms: int) -> int | None:
        place = ["--topic-partitions", f"{topic}:{partition}"]
        asked = ["--bootstrap-server", bootstrap, *place, "--time", str(timestamp_ms)]
        answer = self._tools.run("org.apache.kafka.tools.GetOffsetShell", *asked).checked().strip()
        return int(answer.rpartition(":")[2]) if answer else None  # It leaves out what it found nothing for.


def _encoded(record: Sent) -> bytes:
    headers = b"".join(_nullable(name.encode()) + _nullable(value) for name, value in record.headers)
    head = struct.pack(">iq", record.partition, record.timestamp_ms)
    return head + _nullable(record.key) + _nullable(record.value) + struct.pack(">i", len(record.headers)) + headers


def _nullable(data: bytes | None) -> bytes:
    return struct.pack(">i", -1) if data is None else struct.pack(">i", len(data)) + data


def _decoded(content: bytes) -> Iterator[Received]:
    position = 0

    def taken() -> bytes | None:
        nonlocal position
        (length,) = struct.unpack_from(">i", content, position)
        position += 4 + max(length, 0)
        return None if length < 0 else content[position - length : position]

    while position < len(content):
        partition, offset, timestamp_ms = struct.unpack_from(">iqq", content, position)
        position += 20
        key, value = taken(), taken()
        (count,) = struct.unpack_from(">i", content, position)
        position += 4
        headers: Headers = tuple(((taken() or b"").decode(), taken()) for _ in range(count))
        yield Received(partition, offset, key, value, headers, timestamp_ms)
