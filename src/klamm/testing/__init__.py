"""Kafka clusters for tests: pytest fixtures that give a running one, and ways to break it.

`klamm_embedded` and `klamm_cluster` are there wherever klamm is installed (docs/testing.md). Nothing is imported from
here, and nothing started, before a test asks for one of them. Where there are no fixtures:

    from klamm.testing import embedded_cluster, process_cluster

    with embedded_cluster(brokers=3) as cluster: ...
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from klamm.testing.embedded import EmbeddedCluster as EmbeddedCluster
    from klamm.testing.outside import embedded_cluster as embedded_cluster
    from klamm.testing.outside import process_cluster as process_cluster
    from klamm.testing.processes import ProcessCluster as ProcessCluster
    from klamm.testing.under_test import ClusterUnderTest as ClusterUnderTest

WHERE = {
    "ClusterUnderTest": "under_test",
    "EmbeddedCluster": "embedded",
    "ProcessCluster": "processes",
    "embedded_cluster": "outside",
    "process_cluster": "outside",
}
__all__ = ["ClusterUnderTest", "EmbeddedCluster", "ProcessCluster", "embedded_cluster", "process_cluster"]


def __getattr__(name: str) -> Any:
    """For annotations: `def test_orders(klamm_cluster: ProcessCluster)`; and for who has no fixtures."""
    from importlib import import_module

    if name in WHERE:
        return getattr(import_module(f"klamm.testing.{WHERE[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__} - {"Any", "TYPE_CHECKING", "WHERE"})
