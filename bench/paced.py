"""A producer that keeps to a rate, and how long each of its records waited for its acknowledgement (acks=all).

python -m bench.paced ADDRESS TOPIC RECORD_BYTES RECORDS_PER_SECOND WARMUP_SECONDS SECONDS
"""

import random
import sys
import time
from functools import partial

from confluent_kafka import KafkaError, Message, Producer

from bench.worker import say

TURN_SECONDS = 0.002
FLUSH_SECONDS = 60


def main(address: str, topic: str, record_bytes: int, rate: int, warmup: float, seconds: float) -> None:
    producer = Producer({"bootstrap.servers": address, "acks": "all", "linger.ms": 1})
    value = random.Random(record_bytes).randbytes(record_bytes)
    waits: list[float] = []
    late = 0.0

    def acknowledged(began: float, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            raise RuntimeError(f"a record was not delivered: {error}")
        waits.append(time.perf_counter() - began)

    for stretch in (warmup, seconds):
        if stretch == seconds:
            producer.flush(FLUSH_SECONDS)
            waits.clear()
            late = 0.0
            say("begin")
        begin, sent = time.perf_counter(), 0
        while (elapsed := time.perf_counter() - begin) < stretch:
            due = int(elapsed * rate)
            if due > sent:
                late = max(late, elapsed - sent / rate)
            while sent < due:
                producer.produce(topic, value, on_delivery=partial(acknowledged, time.perf_counter()))
                sent += 1
            producer.poll(TURN_SECONDS)
    producer.flush(FLUSH_SECONDS)
    waits.sort()
    shares = {"p50": 0.5, "p99": 0.99, "p999": 0.999}
    found = {name: waits[int(len(waits) * share)] * 1_000 for name, share in shares.items()}
    say("end", seconds=seconds, records=len(waits), max=waits[-1] * 1_000, late=late * 1_000, **found)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:5]), *map(float, sys.argv[5:7]))  # type: ignore[call-arg]
