"""The fixtures' clusters without the fixtures: for another test runner, a notebook, a fixture of a scope of your own.

    with embedded_cluster(brokers=3) as cluster:
        cluster.kill(cluster.leader_of(cluster.create_topic("orders")))

Each has a directory of its own, and a guardian that tidies up when this process is killed.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from klamm.local.agreeing import settings_text
from klamm.testing.embedded import EmbeddedCluster
from klamm.testing.processes import ProcessCluster
from klamm.testing.scratch import Scratch
from klamm.testing.shape import BROKERS, RACKS, Shape, counted

Kind = TypeVar("Kind", EmbeddedCluster, ProcessCluster)


@contextmanager
def embedded_cluster(
    brokers: int = BROKERS, racks: int = RACKS, settings: Mapping[str, object] | None = None
) -> Iterator[EmbeddedCluster]:
    """What `klamm_embedded` is: a Kafka cluster in this process. Settings by Kafka's names, for every broker."""
    with _opened(EmbeddedCluster, _shape(brokers, racks, settings)) as cluster:
        yield cluster


@contextmanager
def process_cluster(
    brokers: int = BROKERS, racks: int = RACKS, settings: Mapping[str, object] | None = None
) -> Iterator[ProcessCluster]:
    """What `klamm_cluster` is: a Kafka cluster, a process a broker. Settings by Kafka's names, for every broker."""
    with _opened(ProcessCluster, _shape(brokers, racks, settings)) as cluster:
        yield cluster


@contextmanager
def _opened(kind: Callable[[Shape, Path], Kind], shape: Shape) -> Iterator[Kind]:
    scratch = Scratch()
    try:
        cluster = kind(shape, scratch.new_directory())
        try:
            scratch.guard()
            yield cluster
        finally:
            cluster.close()
    finally:
        scratch.close()


def _shape(brokers: int, racks: int, settings: Mapping[str, object] | None) -> Shape:
    return Shape(counted("brokers", brokers), counted("racks", racks), settings_text(settings or {}))
