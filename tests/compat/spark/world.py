"""Topics with everything in them that a reader could get wrong."""

import time
from collections.abc import Iterator, Sequence
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.harness.topics import create_topic
from tests.harness.waiting import wait_until

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
FIRST_MS = 1_700_000_000_000
STEP_MS = 1_000
RECORDS = 120
COMPACTED = 800
HEADERS: Sequence[list[tuple[str, str | bytes | None]] | None] = (
    None,
    [("one", b"1")],
    [("twice", b"1"), ("twice", None), ("ä", b"")],
    [],
)


class World:
    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self._admin = AdminClient({"bootstrap.servers": bootstrap})

    @property
    def topics(self) -> list[str]:
        return [*(f"codec-{codec}" for codec in CODECS), "append-time", "compacted", "beheaded", "sparse", "wide"]

    def fill(self) -> None:
        for codec in CODECS:
            self._create(f"codec-{codec}", 2)
            self._write(f"codec-{codec}", [0, 1], RECORDS, **{"compression.type": codec})
        self._create("append-time", 2, {"message.timestamp.type": "LogAppendTime"})
        self._write("append-time", [0, 1], RECORDS, **{"compression.type": "lz4"})
        self._create("sparse", 4)
        self._write("sparse", [2], RECORDS)
        self._create("wide", 1)
        self._write_wide()
        self._create("beheaded", 3)
        self._write("beheaded", [0, 1, 2], RECORDS)
        self._behead({0: 50, 1: RECORDS})
        self._create(
            "compacted",
            1,
            {"cleanup.policy": "compact", "internal.segment.bytes": "6000", "min.cleanable.dirty.ratio": "0.01"},
        )
        self._write_many_times()

    def _create(self, topic: str, partitions: int, config: dict[str, str] | None = None) -> None:
        create_topic(self.bootstrap, topic, partitions, config)

    def _write(self, topic: str, partitions: list[int], count: int, **settings: Any) -> None:
        """Batches of a few records each, so that there are some."""
        with_settings = {"bootstrap.servers": self.bootstrap, "batch.num.messages": 25, "linger.ms": 20, **settings}
        producer = Producer(with_settings)
        for partition in partitions:
            for number, record in enumerate(_records(count)):
                producer.produce(topic, partition=partition, timestamp=FIRST_MS + number * STEP_MS, **record)
        assert producer.flush(30) == 0

    def _write_wide(self) -> None:
        """More than one fetch: eight megabytes, in records of a hundred kilobytes."""
        producer = Producer({"bootstrap.servers": self.bootstrap})
        for number in range(80):
            producer.produce("wide", b"%d" % number + bytes(100_000), b"%d" % number, 0, timestamp=FIRST_MS)
        assert producer.flush(60) == 0

    def _behead(self, before: dict[int, int]) -> None:
        wanted = [TopicPartition("beheaded", partition, offset) for partition, offset in before.items()]
        for deleted in self._admin.delete_records(wanted).values():
            deleted.result(30)

    def _write_many_times(self) -> None:
        """Ten keys again and again, three of them deleted: what is left has gaps at its beginning and inside."""
        producer = Producer({"bootstrap.servers": self.bootstrap, "batch.num.messages": 7, "linger.ms": 5})
        for number in range(COMPACTED):
            key = number % 10
            value = None if key < 3 and number > COMPACTED // 2 else b"%d" % number * 10
            producer.produce("compacted", value, b"key-%d" % key, 0, timestamp=FIRST_MS + number)
        assert producer.flush(30) == 0
        wait_until(self._is_compacted, "the cleaner has been there", within_seconds=60)
        assert self._offsets("compacted") != list(range(COMPACTED))

    def _is_compacted(self) -> bool:
        """And is through: the same is left a few rounds of the cleaner later."""
        before = self._offsets("compacted")
        if len(before) > COMPACTED // 2:
            return False
        time.sleep(1.0)
        return before == self._offsets("compacted")

    def _offsets(self, topic: str) -> list[int]:
        consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": "look", "enable.auto.commit": False})
        try:
            place = TopicPartition(topic, 0, 0)
            end = consumer.get_watermark_offsets(place, timeout=10)[1]
            consumer.assign([place])
            found: list[int] = []
            while not found or found[-1] < end - 1:
                found += [message.offset() or 0 for message in consumer.consume(1_000, timeout=1)]
            return found
        finally:
            consumer.close()


def _records(count: int) -> Iterator[dict[str, Any]]:
    """Nulls, empty ones and others, of keys, values and headers, in all combinations."""
    for number in range(count):
        key = None if number % 5 == 0 else b"" if number % 7 == 0 else b"key-%d" % number
        value = (
            None if number % 11 == 0 else b"" if number % 13 == 0 else b"value \x00\xff %d " % number * (number % 40)
        )
        yield {"key": key, "value": value, "headers": HEADERS[number % len(HEADERS)]}
