"""Klamm: Kafka's architecture in Python, speaking Kafka's own protocol."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from klamm.local.embedded import Cluster as Cluster

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """`klamm.Cluster` is imported when it is asked for: every command and every node imports this file."""
    if name == "Cluster":
        from klamm.local.embedded import Cluster

        return Cluster
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
