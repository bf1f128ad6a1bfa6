"""Klamm: Kafka's architecture in Python, speaking Kafka's own protocol.

    import klamm
    from confluent_kafka import Producer

    with klamm.Cluster(brokers=3) as cluster:
        producer = Producer({"bootstrap.servers": cluster.bootstrap_servers})

`klamm.Cluster` is a cluster inside this process, for any client. `klamm.testing` has those of the pytest fixtures
`klamm_embedded` and `klamm_cluster`, which can do more: topics, leaders, faults. A cluster of processes is the command
line's: `klamm up`, `klamm --help`.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from klamm.local.embedded import Cluster as Cluster

__all__ = ["Cluster", "__version__"]

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """`klamm.Cluster` is imported when it is asked for: every command and every node imports this file."""
    if name == "Cluster":
        from klamm.local.embedded import Cluster

        return Cluster
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__} - {"Any", "TYPE_CHECKING"})
