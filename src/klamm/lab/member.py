"""A member of a consumer group, as a process of its own, so that it can be killed as one: `python -m klamm.lab.member`.

It tells a line of JSON for each thing that happens: what it was assigned, what was revoked, what it has read and
committed. It leaves the group when its standard input ends, and so does not outlive whoever started it.
"""

import json
import sys
import threading
from collections.abc import Callable, Sequence

from confluent_kafka import Consumer, TopicPartition

POLL_SECONDS = 0.1


def main(bootstrap: str, topic: str, group: str, name: str, session_ms: str) -> None:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "client.id": name,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "session.timeout.ms": int(session_ms),
            # How soon it hears that somebody came or went.
            "heartbeat.interval.ms": 200,
            "fetch.wait.max.ms": 100,
            "log_level": 0,
        }
    )
    going = threading.Event()
    threading.Thread(target=_wait_told_to_go, args=(going,), daemon=True).start()
    consumer.subscribe([topic], on_assign=_telling("assigned"), on_revoke=_telling("revoked"))
    while not going.is_set():
        messages = [message for message in consumer.consume(100, POLL_SECONDS) if message.error() is None]
        if messages:
            places = [(message.partition() or 0, message.offset() or 0) for message in messages]
            ends = {partition: offset + 1 for partition, offset in places}
            consumer.commit(offsets=[TopicPartition(topic, *end) for end in ends.items()], asynchronous=False)
            _tell("read", places)
    consumer.close()


def _telling(what: str) -> Callable[[Consumer, list[TopicPartition]], None]:
    return lambda _, places: _tell(what, [place.partition for place in places])


def _tell(what: str, partitions: Sequence[object]) -> None:
    print(json.dumps([what, partitions]), flush=True)


def _wait_told_to_go(going: threading.Event) -> None:
    sys.stdin.read()
    going.set()


if __name__ == "__main__":
    main(*sys.argv[1:])
