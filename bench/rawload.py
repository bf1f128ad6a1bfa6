"""The broker's own limit: a client that sends prepared bytes and throws answers away.

Batches are built once, so the client costs a system call per request and the broker gets nearly the whole machine. It
also fills the topics that consumers read, with the same bytes in both systems.

    python -m bench.rawload produce PORT TOPIC PARTITIONS RECORD_BYTES BATCH_BYTES BATCHES_PER_REQUEST BYTES
    python -m bench.rawload consume PORT TOPIC PARTITIONS WARMUP_SECONDS SECONDS
    python -m bench.rawload latency PORT TOPIC RECORD_BYTES WARMUP_MESSAGES MESSAGES
"""

import sys
import time

from bench import raw
from bench.batch import record_batch, records_that_fit
from bench.worker import say

IN_FLIGHT = 5
PARTITION_FETCH_BYTES = 1024 * 1024


def produce(
    port: int, topic: str, partitions: int, record_bytes: int, batch_bytes: int, at_once: int, size: int
) -> None:
    """Batches as a producer with this `batch.size` fills them, `at_once` of them a request; no warm-up."""
    connection = raw.Connection(port)
    records = records_that_fit(record_bytes, batch_bytes)
    batch = record_batch(record_bytes, records, int(time.time() * 1000))
    groups = [range(first, min(first + at_once, partitions)) for first in range(0, partitions, at_once)]
    frames = [raw.produce_frame(topic, group, batch) for group in groups]
    requests = max(1, size // (len(batch) * at_once))
    say("begin")
    begin = time.perf_counter()
    _push(connection, frames, requests)
    elapsed = time.perf_counter() - begin
    sent = requests * at_once * records
    say("end", seconds=elapsed, records=sent, bytes=sent * record_bytes)


def _push(connection: raw.Connection, frames: list[bytes], requests: int) -> None:
    """As many requests, taking turns, five of them unanswered at any time."""
    for index in range(requests):
        connection.send(frames[index % len(frames)])
        if index >= IN_FLIGHT:
            raw.checked_produce(connection.receive())
    for _ in range(min(requests, IN_FLIGHT)):
        raw.checked_produce(connection.receive())


def consume(port: int, topic: str, partitions: int, warmup: float, seconds: float) -> None:
    connection = raw.Connection(port)
    buffer = memoryview(bytearray(partitions * (PARTITION_FETCH_BYTES + 64 * 1024) + 1024 * 1024))
    offsets = dict.fromkeys(range(partitions), 0)
    say_begin_at = time.perf_counter() + warmup
    begin = 0.0
    stored = 0
    while True:
        now = time.perf_counter()
        if not begin and now >= say_begin_at:
            say("begin")
            begin, stored = time.perf_counter(), 0
        elif begin and now - begin >= seconds:
            break
        connection.send(raw.fetch_frame(topic, offsets, partition_bytes=PARTITION_FETCH_BYTES, wait_ms=100))
        size = connection.receive_into(buffer)
        for part in raw.fetched(buffer[4:size]):
            stored += part.size
            # A partition that was read to its end starts again from its beginning.
            offsets[part.partition] = part.next_offset if part.next_offset >= 0 else 0
    say("end", seconds=now - begin, stored=stored)


def latency(port: int, topic: str, record_bytes: int, warmup: int, messages: int) -> None:
    """One connection waits in a long-poll fetch, the other produces: the time until the fetch brings the record."""
    producing, fetching = raw.Connection(port), raw.Connection(port)
    batch = record_batch(record_bytes, 1, int(time.time() * 1000))
    request = raw.produce_frame(topic, [0], batch)
    offset = raw.checked_produce(producing.ask(request)) + 1
    latencies = []
    for index in range(warmup + messages):
        if index == warmup:
            say("begin")
        fetching.send(raw.fetch_frame(topic, {0: offset}, partition_bytes=PARTITION_FETCH_BYTES, wait_ms=60_000))
        begin = time.perf_counter()
        producing.send(request)
        (part,) = raw.fetched(fetching.receive())
        elapsed = time.perf_counter() - begin
        assert part.next_offset == offset + 1, "exactly the one record in flight"
        offset = part.next_offset
        raw.checked_produce(producing.receive())
        if index >= warmup:
            latencies.append(elapsed * 1000)
    latencies.sort()
    say("end", p50_ms=latencies[messages // 2], p99_ms=latencies[messages * 99 // 100])


def main(mode: str, port: str, topic: str, *numbers: str) -> None:
    if mode == "consume":
        consume(int(port), topic, int(numbers[0]), float(numbers[1]), float(numbers[2]))
    elif mode == "latency":
        latency(int(port), topic, int(numbers[0]), int(numbers[1]), int(numbers[2]))
    else:
        partitions, record_bytes, batch_bytes, at_once, size = map(int, numbers)
        produce(int(port), topic, partitions, record_bytes, batch_bytes, at_once, size)


if __name__ == "__main__":
    main(*sys.argv[1:])
