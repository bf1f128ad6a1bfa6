"""What a reader has to know about a cluster before it asks anything: where it is, how long to wait, how much to fetch.

It travels to the executors with every task, so it holds values only.
"""

from dataclasses import dataclass, field

from klamm.pipeline.kafka.connection import CLIENT_ID, Address
from klamm.pipeline.kafka.problems import ClusterProblem

KAFKAS_PORT = 9092
FIRST_PATIENCE_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """`patience_seconds`: how long a cluster that answered before may be silent. One that never did gets less."""

    bootstrap: tuple[Address, ...]
    client_id: str = CLIENT_ID
    rack: str = ""
    read_committed: bool = False
    request_timeout_seconds: float = 30.0
    first_patience_seconds: float = field(default_factory=lambda: FIRST_PATIENCE_SECONDS)
    patience_seconds: float = 120.0
    fetch_bytes: int = 12 << 20
    fetch_least_bytes: int = 1
    fetch_wait_ms: int = 500
    for_librdkafka: tuple[tuple[str, str], ...] = ()
    """The `kafka.` options without that prefix, where librdkafka reads instead of us."""


def addresses(text: str) -> tuple[Address, ...]:
    """`host:port,host:port`, as in bootstrap.servers; a protocol before a host is allowed, as in Kafka's listeners."""
    found = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        host, colon, port = part.rpartition("://")[2].rpartition(":")
        if not colon:
            host, port = port, str(KAFKAS_PORT)
        if not host or not port.isdigit() or not 0 < int(port) < 1 << 16:
            raise ClusterProblem(
                f"kafka.bootstrap.servers: '{part}' is not host:port. Give one or more of the cluster's brokers, such "
                "as 'localhost:9092' or 'one:9092,two:9092'."
            )
        found.append(Address(host.strip("[]"), int(port)))
    if not found:
        raise ClusterProblem("kafka.bootstrap.servers is empty. Give one or more brokers, such as 'localhost:9092'.")
    return tuple(found)
