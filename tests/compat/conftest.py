"""Everything under `tests/compat` is marked `compat`: it runs programs from Debian or Maven Central."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.compat.java_client import JavaClient
from tests.compat.java_tools import JavaTools
from tests.harness.kafka_node import skip_without_kafka


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here):
            item.add_marker(pytest.mark.compat)


@pytest.fixture(scope="session")
def tools() -> Iterator[JavaTools]:
    """Kafka's tools in one warm JVM for the whole run."""
    skip_without_kafka()
    running = JavaTools()
    yield running
    running.close()


@pytest.fixture(scope="session")
def java(tools: JavaTools, tmp_path_factory: pytest.TempPathFactory) -> JavaClient:
    return JavaClient(tools, tmp_path_factory.mktemp("java"))
