"""`system`: six brokers in two racks, shared by all tests here, and put right again after each of them."""

from collections.abc import Iterator

import pytest

from tests.system.running import System


@pytest.fixture(scope="session")
def shared_system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    running = System(tmp_path_factory.mktemp("system") / "cluster")
    yield running
    running.close()


@pytest.fixture
def system(shared_system: System) -> Iterator[System]:
    """May be broken: it is healed afterwards, and the topics made meanwhile are gone."""
    yield shared_system
    shared_system.heal()
    topics = shared_system.eyes().topics()
    if topics:
        shared_system.eyes().delete(sorted(topics))
