"""One broker, a real client, and a kill -9 in the middle: `make demo`.

Starts a broker, produces invoices to it with confluent-kafka, kills the broker without warning while it works, starts
it again on the same directory, goes on, and counts: sent, acknowledged, read back, lost, doubled.
"""

import json
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

TOPIC, PARTITIONS, INVOICES = "invoice", 6, 200_000
STORES = [f"STR{number:03}" for number in range(40)]


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        with broker(directory, 0) as (process, address):
            say(f"A broker listens on {address}. Creating topic {TOPIC} with {PARTITIONS} partitions.")
            create_topic(address)
            port = int(address.rpartition(":")[2])
            acknowledged: Counter[str] = Counter()
            producer = Producer({"bootstrap.servers": address, "enable.idempotence": True, "log_level": 0})
            produce(producer, 0, INVOICES // 2, acknowledged)
            while acknowledged.total() < INVOICES // 4:
                producer.poll(0.1)
            say(f"{acknowledged.total():,} invoices acknowledged so far. kill -9 to the broker, mid-stream.")
            process.send_signal(signal.SIGKILL)
            process.wait()
        with broker(directory, port) as (_, address):
            say("It is back on the same directory, and has recovered its log. The producer goes on where it was.")
            produce(producer, INVOICES // 2, INVOICES, acknowledged)
            producer.flush(60)
            read = consume(address, INVOICES)
    lost = sum(number not in read for number in acknowledged)
    doubled = sum(count > 1 for count in read.values())
    say(
        f"sent {INVOICES:,}   acknowledged {acknowledged.total():,}   read back {read.total():,}   "
        f"lost {lost}   doubled {doubled}"
    )
    if lost or doubled or read.total() != INVOICES:
        raise SystemExit("This must not happen. Please tell us.")


@contextmanager
def broker(directory: str, port: int) -> Iterator[tuple[subprocess.Popen[str], str]]:
    command = [sys.executable, "-m", "klamm", "broker", "--dir", directory, "--listen", f"127.0.0.1:{port}"]
    started = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    ready = process.stdout.readline().strip()
    say(f"{ready} ({time.monotonic() - started:.2f} s after it was started)")
    try:
        yield process, ready.rpartition(" ")[2]
    finally:
        process.terminate()
        process.wait()


def create_topic(address: str) -> None:
    admin = AdminClient({"bootstrap.servers": address, "log_level": 0})
    for future in admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)]).values():
        future.result()


def produce(producer: Producer, first: int, last: int, acknowledged: Counter[str]) -> None:
    def delivered(error: object, message: object) -> None:
        if error is not None:
            raise KafkaException(error)
        acknowledged[json.loads(message.value())["number"]] += 1  # type: ignore[attr-defined]

    for number in range(first, last):
        invoice = {"number": f"INV{number:07}", "store": STORES[number % len(STORES)], "total": number % 97 + 0.95}
        while True:
            try:
                producer.produce(TOPIC, json.dumps(invoice), invoice["store"], on_delivery=delivered)
                break
            except BufferError:
                producer.poll(0.1)
        producer.poll(0)


def consume(address: str, wanted: int) -> Counter[str]:
    consumer = Consumer({"bootstrap.servers": address, "group.id": "demo", "enable.auto.commit": False})
    consumer.assign([TopicPartition(TOPIC, partition, 0) for partition in range(PARTITIONS)])
    read: Counter[str] = Counter()
    deadline = time.monotonic() + 60
    while read.total() < wanted and time.monotonic() < deadline:
        for message in consumer.consume(10_000, 1):
            if message.error() is None:
                read[json.loads(message.value())["number"]] += 1
    consumer.close()
    return read


def say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    main()
