"""Three brokers, a real client, and the leader killed in the middle: `make demo`.

Starts a cluster of three node processes with `klamm up`, produces invoices with confluent-kafka and acks=all, kills the
leader of a partition without warning, watches somebody else take over, brings the killed one back until it is in sync
again, and counts: sent, acknowledged, read back, lost, doubled.
"""

import json
import subprocess
import sys
import tempfile
import time
from collections import Counter

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

TOPIC, PARTITIONS, INVOICES = "invoice", 6, 100_000
STORES = [f"STR{number:03}" for number in range(40)]


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        started = time.monotonic()
        cluster = json.loads(klamm("up", "--brokers", "3", "--port", "0", "--dir", directory, "--detach", "--json"))
        address = cluster["bootstrap_servers"]
        say(f"Three brokers take connections on {address} ({time.monotonic() - started:.2f} s).")
        try:
            run(directory, address)
        finally:
            klamm("down", "--dir", directory)


def run(directory: str, address: str) -> None:
    admin = AdminClient({"bootstrap.servers": address, "log_level": 0})
    settings = {"min.insync.replicas": "2"}
    admin.create_topics([NewTopic(TOPIC, PARTITIONS, 3, config=settings)])[TOPIC].result()
    say(klamm("topic", "placement", TOPIC, "--bootstrap", address))
    acknowledged: Counter[str] = Counter()
    producer = Producer({"bootstrap.servers": address, "enable.idempotence": True, "log_level": 0})
    produce(producer, 0, INVOICES // 2, acknowledged)
    while acknowledged.total() < INVOICES // 8:
        producer.poll(0.1)
    leader = leaders(admin)[0]
    say(f"{acknowledged.total():,} invoices acknowledged so far. kill -9 to broker {leader}, mid-stream.")
    klamm("node", "kill", str(leader), "--dir", directory)
    produce(producer, INVOICES // 2, INVOICES, acknowledged)
    producer.flush(60)
    say(f"Broker {leaders(admin)[0]} leads partition 0 now, and the producer has not noticed more than a pause.")
    klamm("node", "start", str(leader), "--dir", directory)
    wait_until_in_sync(admin)
    say(f"Broker {leader} is back, has caught up, and is in sync again.")
    read = consume(address, INVOICES)
    lost = sum(number not in read for number in acknowledged)
    doubled = sum(count > 1 for count in read.values())
    say(
        f"sent {INVOICES:,}   acknowledged {acknowledged.total():,}   read back {read.total():,}   "
        f"lost {lost}   doubled {doubled}"
    )
    if lost or doubled or read.total() != INVOICES:
        raise SystemExit("This must not happen. Please tell us.")


def klamm(*arguments: str) -> str:
    return subprocess.run(
        [sys.executable, "-m", "klamm", *arguments], check=True, stdout=subprocess.PIPE, text=True
    ).stdout.rstrip()


def leaders(admin: AdminClient) -> dict[int, int]:
    found = admin.list_topics(TOPIC, timeout=20).topics[TOPIC].partitions
    return {number: partition.leader for number, partition in found.items()}


def wait_until_in_sync(admin: AdminClient) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        partitions = admin.list_topics(TOPIC, timeout=20).topics[TOPIC].partitions.values()
        if all(len(partition.isrs) == 3 for partition in partitions):
            return
        time.sleep(0.05)
    raise SystemExit("The broker did not come back into sync. This must not happen. Please tell us.")


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
    consumer = Consumer({"bootstrap.servers": address, "group.id": "demo", "enable.auto.commit": False, "log_level": 0})
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
