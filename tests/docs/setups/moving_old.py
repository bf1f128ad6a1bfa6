"""The cluster that docs/moving.md moves away from: `invoice`, of which some is deleted, and a group in the middle."""

from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.cli.grouping import commit
from tests.harness.topics import create_topic

BOOTSTRAP = "127.0.0.1:9092"


def main(bootstrap: str = BOOTSTRAP) -> None:
    create_topic(bootstrap, "invoice", 3, {"retention.ms": "86400000"})
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(90):
        headers = [("till", b"7")]
        producer.produce("invoice", f"invoice {number}", f"key {number}", partition=number % 3, headers=headers)
    assert producer.flush(30) == 0
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for deleted in admin.delete_records([TopicPartition("invoice", 0, 5)]).values():
        deleted.result(30)
    # Ten read of each partition. In the copy, five of the first are left, and ten of the others.
    commit(bootstrap, "billing", "invoice", {0: 10, 1: 10, 2: 10})


if __name__ == "__main__":
    main()
