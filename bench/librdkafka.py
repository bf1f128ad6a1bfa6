"""librdkafka through confluent-kafka: the client most languages use, with acks=1 unless told.

Messages go in and come out by the thousand, without a callback each, because else Python is what is measured. At 100
bytes a message the binding still takes a good part of a core, so this client tells the brokers apart less than Java's.
Its queues are larger than by default: with 100,000 messages and a pause of a second whenever that many wait, the
client would stop and go and measure its own pauses.

    python -m bench.librdkafka produce ADDRESS TOPIC PARTITIONS RECORD_BYTES WARMUP_SECONDS SECONDS [ACKS]
    python -m bench.librdkafka consume ADDRESS TOPIC PARTITIONS RECORD_BYTES WARMUP_SECONDS SECONDS
    python -m bench.librdkafka latency ADDRESS TOPIC RECORD_BYTES WARMUP_MESSAGES MESSAGES
"""

import random
import sys
import time
from typing import Any

from confluent_kafka import OFFSET_END, Consumer, KafkaError, Producer, TopicPartition

from bench.worker import say

AT_ONCE = 1000
FLUSH_SECONDS = 300


def produce(
    address: str, topic: str, partitions: int, record_bytes: int, warmup: float, seconds: float, acks: int = 1
) -> None:
    producer = Producer(
        {
            "bootstrap.servers": address,
            "acks": acks,
            "queue.buffering.max.messages": 1_000_000,
            "delivery.report.only.error": True,
            "error_cb": _fail_when_all_down,
        }
    )
    messages: list[dict[str, Any]] = [{"value": random.Random(record_bytes).randbytes(record_bytes)}] * AT_ONCE
    _produce_for(producer, topic, partitions, messages, warmup)
    say("begin")
    begin = time.perf_counter()
    records = _produce_for(producer, topic, partitions, messages, seconds)
    elapsed = time.perf_counter() - begin
    say("end", seconds=elapsed, records=records, bytes=records * record_bytes)


def _produce_for(
    producer: Producer, topic: str, partitions: int, messages: list[dict[str, Any]], seconds: float
) -> int:
    """Produce for a while, then wait until everything is acknowledged; the wait is part of the time."""
    deadline = time.perf_counter() + seconds
    records = partition = 0
    while time.perf_counter() < deadline:
        accepted = producer.produce_batch(topic, messages, partition=partition, on_delivery=_fail)
        records += accepted
        if accepted < len(messages):
            producer.poll(0.001)  # The queue is full: let the broker catch up.
        partition = (partition + 1) % partitions
    if producer.flush(FLUSH_SECONDS) != 0:
        raise TimeoutError("records were never acknowledged")
    return records


def consume(address: str, topic: str, partitions: int, record_bytes: int, warmup: float, seconds: float) -> None:
    consumer = _consumer(address, {"queued.min.messages": 1_000_000, "fetch.queue.backoff.ms": 5})
    beginning = [TopicPartition(topic, partition, 0) for partition in range(partitions)]
    total = sum(consumer.get_watermark_offsets(partition)[1] for partition in beginning)
    consumer.assign(beginning)
    left = total
    records = 0
    measuring = False
    begin = time.perf_counter()
    while True:
        now = time.perf_counter()
        if not measuring and now - begin >= warmup:
            say("begin")
            measuring, begin, records = True, time.perf_counter(), 0
        elif measuring and now - begin >= seconds:
            break
        count = len(consumer.consume(10 * AT_ONCE, timeout=0.1))
        records += count
        left -= count
        if left <= 0:
            # Everything was read once: start again from the beginning.
            consumer.assign(beginning)
            left = total
    say("end", seconds=now - begin, records=records, bytes=records * record_bytes)
    consumer.close()


def latency(address: str, topic: str, record_bytes: int, warmup: int, messages: int) -> None:
    producer = Producer({"bootstrap.servers": address, "acks": 1, "linger.ms": 0})
    consumer = _consumer(address)
    consumer.assign([TopicPartition(topic, 0, OFFSET_END)])
    value = random.Random(0).randbytes(record_bytes)
    # The end is looked up in the background; what arrives first proves that the consumer has found its place.
    first = None
    while first is None:
        producer.produce(topic, value, partition=0)
        producer.flush(FLUSH_SECONDS)
        first = consumer.poll(0.2)
    while consumer.poll(0.5) is not None:
        pass
    latencies = []
    for index in range(warmup + messages):
        if index == warmup:
            say("begin")
        begin = time.perf_counter()
        producer.produce(topic, value, partition=0)
        producer.poll(0)
        message = consumer.poll(60.0)
        elapsed = time.perf_counter() - begin
        if message is None or message.error() is not None:
            raise TimeoutError("the message in flight never arrived")
        if index >= warmup:
            latencies.append(elapsed * 1000)
    latencies.sort()
    say("end", p50_ms=latencies[messages // 2], p99_ms=latencies[messages * 99 // 100])
    producer.flush(FLUSH_SECONDS)
    consumer.close()


def _consumer(address: str, more: dict[str, int] | None = None) -> Consumer:
    # The binding demands a group id; with assigned partitions and no commits the group is never used.
    return Consumer({"bootstrap.servers": address, "group.id": "bench", "enable.auto.commit": False, **(more or {})})


def _fail(error: KafkaError | None, message: object) -> None:
    if error is not None:
        raise RuntimeError(f"a record was not delivered: {error}")


def _fail_when_all_down(error: KafkaError) -> None:
    if error.code() == KafkaError._ALL_BROKERS_DOWN:
        raise RuntimeError("the broker is gone")


def main(mode: str, address: str, topic: str, *numbers: str) -> None:
    if mode == "latency":
        latency(address, topic, int(numbers[0]), int(numbers[1]), int(numbers[2]))
        return
    partitions, record_bytes, warmup, seconds = int(numbers[0]), int(numbers[1]), float(numbers[2]), float(numbers[3])
    if mode == "consume":
        consume(address, topic, partitions, record_bytes, warmup, seconds)
    else:
        produce(address, topic, partitions, record_bytes, warmup, seconds, *map(int, numbers[4:]))


if __name__ == "__main__":
    main(*sys.argv[1:])
