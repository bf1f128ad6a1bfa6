"""Kafka clusters for tests: pytest fixtures that give a running one, and ways to break it.

`klamm_embedded` and `klamm_cluster` are there wherever klamm is installed (docs/testing.md). Nothing is imported from
here, and nothing started, before a test asks for one of them.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from klamm.testing.embedded import EmbeddedCluster as EmbeddedCluster
    from klamm.testing.processes import ProcessCluster as ProcessCluster
    from klamm.testing.under_test import ClusterUnderTest as ClusterUnderTest

WHERE = {"EmbeddedCluster": "embedded", "ProcessCluster": "processes", "ClusterUnderTest": "under_test"}


def __getattr__(name: str) -> Any:
    """For annotations: `def test_orders(klamm_cluster: ProcessCluster)`."""
    from importlib import import_module

    if name in WHERE:
        return getattr(import_module(f"klamm.testing.{WHERE[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
