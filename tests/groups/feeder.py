"""A steady stream of records into all partitions of a topic, while the members of groups come and go."""

import threading
import time

from confluent_kafka import KafkaError, Message, Producer

SECONDS_APART = 0.02


class Feeder:
    """One record for every partition, `SECONDS_APART`; `ends` says where each partition ends."""

    def __init__(self, bootstrap: str, topic: str, partitions: int) -> None:
        self.ends = dict.fromkeys(range(partitions), 0)
        self._topic = topic
        self._producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 5})
        self._stop = threading.Event()
        self._failed: list[str] = []
        self._thread = threading.Thread(target=self._feed, daemon=True)
        self._thread.start()

    def __enter__(self) -> "Feeder":
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(60)

    def stop(self) -> dict[int, int]:
        """Ends it and gives the end of every partition: all that was sent is acknowledged."""
        self._stop.set()
        self._thread.join(60)
        assert not self._thread.is_alive() and not self._failed, self._failed
        return dict(self.ends)

    def _feed(self) -> None:
        while not self._stop.is_set():
            for partition in self.ends:
                self._producer.produce(self._topic, b"x", partition=partition, on_delivery=self._noted)
            self._producer.poll(0)
            time.sleep(SECONDS_APART)
        if self._producer.flush(50):
            self._failed.append("not everything was acknowledged")

    def _noted(self, error: KafkaError | None, message: Message) -> None:
        partition, offset = message.partition(), message.offset()
        if error is not None or partition is None or offset is None:
            self._failed.append(str(error))
        else:
            self.ends[partition] = max(self.ends[partition], offset + 1)
