"""The client library that produce, consume and bench run on, imported when it is used: it costs a tenth of a second."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from klamm.local.problems import LocalError

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Producer

ACKS = {"0": 0, "1": 1, "all": -1, "-1": -1}
COMPRESSIONS = ("none", "gzip", "snappy", "lz4", "zstd")
BIGGEST_MESSAGE = 1_000_000_000
"""What librdkafka lets us set: the broker knows what it takes, and says so."""
QUEUE_RECORDS, QUEUE_KBYTES = 500_000, 256 << 10
"""What may wait to be sent: enough that sending never waits for us, and little enough for a small machine."""


class NoLibrary(LocalError):  # noqa: N818
    """It is a dependency of ours; somebody has removed it, or there is none for this machine."""


def library() -> Any:
    try:
        import confluent_kafka
    except ImportError as problem:
        raise NoLibrary(f"this takes confluent-kafka: `pip install confluent-kafka` ({problem})") from None
    return confluent_kafka


def new_producer(bootstrap: str, settings: Mapping[str, object]) -> "Producer":
    """Keys go to the partitions that Kafka's own clients choose.

    Only failures are reported, because a report is a call of Python for every record: what has left the queue without
    one is acknowledged.
    """
    made: Producer = library().Producer(
        {
            "bootstrap.servers": bootstrap,
            "partitioner": "murmur2_random",
            "delivery.report.only.error": True,
            "message.max.bytes": BIGGEST_MESSAGE,
            "queue.buffering.max.messages": QUEUE_RECORDS,
            "queue.buffering.max.kbytes": QUEUE_KBYTES,
            "log_level": 0,
            **settings,
        }
    )
    return made


def new_consumer(bootstrap: str, group: str, settings: Mapping[str, object]) -> "Consumer":
    """Nothing is committed by itself, and nobody is sent to another offset without having been asked."""
    made: Consumer = library().Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
            # Well ahead, within a hundred MiB or two, and back at it soon: a full queue would rest for a second.
            "queued.min.messages": 250_000,
            "fetch.queue.backoff.ms": 10,
            "log_level": 0,
            **settings,
        }
    )
    return made
