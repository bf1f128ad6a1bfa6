"""Running brokers for tests. `node` serves a whole module, `fresh_node` one test, `start_node` makes any other."""

import contextlib
import itertools
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Protocol

import pytest

from klamm.runtime.files import RealFiles
from tests.harness.kafka_node import KafkaNode
from tests.harness.klamm_node import KlammNode
from tests.harness.node import Node, under_test


class StartNode(Protocol):
    """Starts one more broker with these settings; `advertise` is the address it tells clients, if not its own."""

    def __call__(self, settings: Mapping[str, str] | None = None, advertise: str | None = None) -> Node: ...


def pytest_configure(config: pytest.Config) -> None:
    """kafka-python reads its schemas in a way that Python has deprecated; that is not ours to mend."""
    config.addinivalue_line("filterwarnings", "ignore:(read|open)_text is deprecated:DeprecationWarning")


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A broker with default settings, shared by the tests of one module."""
    with _starter(tmp_path_factory.mktemp("node")) as start:
        yield start()


@pytest.fixture
def fresh_node(tmp_path: Path) -> Iterator[Node]:
    """A broker with default settings that this test may stop, kill and restart."""
    with _starter(tmp_path) as start:
        yield start()


@pytest.fixture
def start_node(tmp_path: Path) -> Iterator[StartNode]:
    """Starts brokers with settings of the test's own; all are gone when the test ends."""
    with _starter(tmp_path) as start:
        yield start


@pytest.fixture(scope="module")
def start_module_node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StartNode]:
    """The same for all tests of a module."""
    with _starter(tmp_path_factory.mktemp("nodes")) as start:
        yield start


@pytest.fixture
def real_files(tmp_path: Path) -> Iterator[RealFiles]:
    """The test's directory as a node sees it. The process outlives the test, and so would open files."""
    files = RealFiles(tmp_path)
    yield files
    files.close()


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """A topic name no other test uses, readable in a log."""
    return new_name(re.sub(r"[^a-zA-Z0-9._-]+", "-", request.node.name))


def new_name(stem: str, _numbers: Iterator[int] = itertools.count(1)) -> str:  # noqa: B008  one counter for all
    return f"{stem[:200]}-{next(_numbers)}"


@contextlib.contextmanager
def _starter(home: Path) -> Iterator[Callable[..., Node]]:
    started: list[Node] = []

    def start(settings: Mapping[str, str] | None = None, advertise: str | None = None) -> Node:
        kind = {"klamm": KlammNode, "kafka": KafkaNode}[under_test()]
        node = kind(home / f"broker-{len(started)}", settings, advertise)
        started.append(node)
        node.start()
        return node

    try:
        yield start
    finally:
        for node in started:
            node.discard()
