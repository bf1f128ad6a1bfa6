"""One small cluster for all that writes topics of its own."""

from collections.abc import Iterator

import pytest

import klamm


@pytest.fixture(scope="session")
def bootstrap() -> Iterator[str]:
    with klamm.Cluster(brokers=1) as cluster:
        yield cluster.bootstrap_servers
