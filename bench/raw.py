"""A Kafka client of sockets and structs: four requests, each in one old version without tagged fields.

It costs almost nothing beside the broker, connects the moment somebody listens, and hides nothing: what a library
would retry or batch, it does once. It measures the start, one produce among many partitions, and the broker's own
limit; it is no client for anybody's data.
"""

import socket
import struct
import time
from collections.abc import Iterable
from dataclasses import dataclass

CLIENT_ID = b"bench"
PRODUCE, FETCH, API_VERSIONS, CREATE_TOPICS = 0, 1, 18, 19
VERSION = {PRODUCE: 7, FETCH: 4, API_VERSIONS: 0, CREATE_TOPICS: 4}
TIMEOUT_MS = 60_000
TOPIC_ALREADY_EXISTS = 36

Buffer = bytes | bytearray | memoryview


class RefusedError(Exception):
    """The broker answered with an error code."""

    def __init__(self, what: str, code: int) -> None:
        super().__init__(f"{what}: error code {code}")
        self.code = code


class Connection:
    """One socket; requests leave with `send`, answers come in the same order with `receive`."""

    def __init__(self, port: int, timeout_seconds: float = 120.0) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout_seconds)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, frame: Buffer) -> None:
        self.socket.sendall(frame)

    def receive(self) -> memoryview:
        """The next answer without its size and correlation id."""
        (size,) = struct.unpack(">i", self._exactly(4))
        return self._exactly(size)[4:]

    def receive_into(self, buffer: memoryview) -> int:
        """Read one whole answer into a buffer of the caller's and return its size."""
        (size,) = struct.unpack(">i", self._exactly(4))
        self._fill(buffer[:size])
        return int(size)

    def ask(self, frame: Buffer) -> memoryview:
        self.send(frame)
        return self.receive()

    def close(self) -> None:
        self.socket.close()

    def _exactly(self, size: int) -> memoryview:
        buffer = memoryview(bytearray(size))
        self._fill(buffer)
        return buffer

    def _fill(self, buffer: memoryview) -> None:
        filled = 0
        while filled < len(buffer):
            count = self.socket.recv_into(buffer[filled:])
            if count == 0:
                raise ConnectionError("the broker closed the connection")
            filled += count


def frame(api: int, body: bytes) -> bytes:
    header = struct.pack(">hhih", api, VERSION[api], 0, len(CLIENT_ID)) + CLIENT_ID
    return struct.pack(">i", len(header) + len(body)) + header + body


def produce_frame(topic: str, partitions: Iterable[int], batch: bytes, acks: int = 1) -> bytes:
    """One request that appends the same batch to each of these partitions."""
    parts = [struct.pack(">ii", partition, len(batch)) + batch for partition in partitions]
    body = struct.pack(">hhii", -1, acks, TIMEOUT_MS, 1) + _text(topic) + struct.pack(">i", len(parts))
    return frame(PRODUCE, body + b"".join(parts))


def checked_produce(answer: memoryview) -> int:
    """The base offset the broker gave in the first partition, or `RefusedError` if it refused any."""
    position = 4 + 2 + struct.unpack_from(">h", answer, 4)[0]
    (partitions,) = struct.unpack_from(">i", answer, position)
    first_offset = -1
    for index in range(partitions):
        _, code, base_offset = struct.unpack_from(">ihq", answer, position + 4 + 30 * index)
        if code != 0:
            raise RefusedError("produce", code)
        first_offset = base_offset if index == 0 else first_offset
    return int(first_offset)


def fetch_frame(topic: str, offsets: dict[int, int], *, partition_bytes: int, wait_ms: int = 500) -> bytes:
    body = struct.pack(">iiiibi", -1, wait_ms, 1, 50 * 1024 * 1024, 0, 1) + _text(topic)
    body += struct.pack(">i", len(offsets))
    for partition, offset in offsets.items():
        body += struct.pack(">iqi", partition, offset, partition_bytes)
    return frame(FETCH, body)


@dataclass(frozen=True, slots=True)
class Fetched:
    """Where one partition's batches lie in an answer, and the offset after the last whole one."""

    partition: int
    size: int
    next_offset: int


def fetched(answer: memoryview) -> list[Fetched]:
    found = []
    position = 4 + 4 + 2 + struct.unpack_from(">h", answer, 8)[0]
    (partitions,) = struct.unpack_from(">i", answer, position)
    position += 4
    for _ in range(partitions):
        partition, code, _, _, aborted = struct.unpack_from(">ihqqi", answer, position)
        if code != 0:
            raise RefusedError("fetch", code)
        position += 26 + 16 * max(aborted, 0)
        (size,) = struct.unpack_from(">i", answer, position)
        position += 4
        found.append(Fetched(partition, max(size, 0), _next_offset(answer, position, position + size)))
        position += max(size, 0)
    return found


def create_topics(
    connection: Connection,
    topics: Iterable[tuple[str, int]],
    replication: int = 1,
    settings: tuple[tuple[str, str], ...] = (),
) -> None:
    """Topics as (name, partitions), one replica each unless told."""
    wanted = list(topics)
    configs = struct.pack(">i", len(settings)) + b"".join(_text(key) + _text(value) for key, value in settings)
    body = struct.pack(">i", len(wanted))
    for name, partitions in wanted:
        body += _text(name) + struct.pack(">ihi", partitions, replication, 0) + configs
    answer = connection.ask(frame(CREATE_TOPICS, body + struct.pack(">ib", TIMEOUT_MS, 0)))
    position = 8
    for _ in wanted:
        position += 2 + struct.unpack_from(">h", answer, position)[0]
        code, message_length = struct.unpack_from(">hh", answer, position)
        position += 4 + max(message_length, 0)
        if code != 0:
            raise RefusedError("create topics", code)


def wait_until_served(connection: Connection, topics: Iterable[tuple[str, int]], timeout_seconds: float = 300) -> None:
    """Wait until the broker serves every partition. A leader in the metadata may not have taken up its work yet."""
    deadline = time.monotonic() + timeout_seconds
    for name, partitions in topics:
        request = fetch_frame(name, dict.fromkeys(range(partitions), 0), partition_bytes=1, wait_ms=0)
        while True:
            try:
                fetched(connection.ask(request))
                break
            except RefusedError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.002)


def _next_offset(answer: memoryview, position: int, end: int) -> int:
    """The offset after the last whole batch; a fetch may end in a torn one."""
    next_offset = -1
    while position + 61 <= end:
        base_offset, length = struct.unpack_from(">qi", answer, position)
        if position + 12 + length > end:
            break
        next_offset = base_offset + struct.unpack_from(">i", answer, position + 23)[0] + 1
        position += 12 + length
    return next_offset


def _text(value: str) -> bytes:
    encoded = value.encode()
    return struct.pack(">h", len(encoded)) + encoded
