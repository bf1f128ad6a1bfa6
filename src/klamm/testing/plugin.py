"""The pytest plugin: options, the marker, the fixtures, and the brokers' last lines in the report of a test that fails.

Every pytest run on a machine with klamm loads this file, so it imports nothing of klamm by itself. A process gets its
scratch directory with its first cluster; under pytest-xdist every worker has its own.
"""

from collections.abc import Collection, Generator, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from klamm.testing.embedded import EmbeddedCluster
    from klamm.testing.processes import ProcessCluster
    from klamm.testing.scratch import Scratch
    from klamm.testing.shape import Shape

MARKER = (
    "klamm(brokers=3, racks=1, settings={…}): the cluster that klamm_embedded or klamm_cluster starts for this test"
)
FUNCTION, SESSION = ("klamm_embedded", "klamm_cluster"), ("klamm_embedded_session", "klamm_cluster_session")
LOG_LINES = 10


class State:
    """What this process has open."""

    def __init__(self) -> None:
        self.scratch: Scratch | None = None
        self.open: dict[str, EmbeddedCluster | ProcessCluster] = {}
        """By the name of its fixture."""
        self.given_up: set[str] = set()
        """Those of the session that could not be mended, which was told."""


STATE = pytest.StashKey[State]()


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    leave_as_compiled(pluginmanager)
    group = parser.getgroup("klamm", "Kafka clusters (klamm)")
    group.addoption("--klamm-brokers", metavar="N", help="brokers of a cluster, 3 unless told otherwise")
    group.addoption("--klamm-racks", metavar="N", help="racks they stand in, 1 unless told otherwise")
    group.addoption(
        "--klamm-set", metavar="KEY=VALUE", action="append", default=[], help="a broker setting; may be repeated"
    )
    group.addoption(
        "--klamm-log-lines", metavar="N", help="lines of every broker's log in a failing test's report (10; 0: none)"
    )
    parser.addini("klamm_brokers", "brokers of a cluster", default="")
    parser.addini("klamm_racks", "racks they stand in", default="")
    parser.addini("klamm_settings", "broker settings, KEY=VALUE, one a line", type="linelist", default=[])
    parser.addini("klamm_log_lines", "lines of every broker's log in a failing test's report", default="")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", MARKER)
    config.stash[STATE] = State()
    _log_lines(config)  # What is wrong with it is said before any test is run.


def pytest_unconfigure(config: pytest.Config) -> None:
    state = config.stash.get(STATE, None)
    if state is not None and state.scratch is not None:
        state.scratch.close()
        state.scratch = None


def leave_as_compiled(pluginmanager: pytest.PytestPluginManager) -> None:
    """pytest rewrites the assertions of all that a plugin's distribution holds: here of whole brokers, each time they
    are imported and no compiled copy can be kept. That triples the time to the first cluster, for nobody's use. There
    is no public way out; where pytest has changed inside, it is slower and works."""
    hook = getattr(pluginmanager, "rewrite_hook", None)
    getattr(hook, "_must_rewrite", set()).discard("klamm")
    getattr(hook, "_marked_for_rewrite_cache", {}).clear()


# The fixtures.


@pytest.fixture
def klamm_embedded(request: pytest.FixtureRequest) -> "Iterator[EmbeddedCluster]":
    """A Kafka cluster in this process, for this test."""
    from klamm.testing.embedded import EmbeddedCluster

    with _opened(request, "klamm_embedded", EmbeddedCluster, _marked_shape(request)) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def klamm_embedded_session(request: pytest.FixtureRequest) -> "Iterator[EmbeddedCluster]":
    """A Kafka cluster in this process, for all tests; what one of them broke is mended before the next."""
    from klamm.testing.embedded import EmbeddedCluster

    with _opened(request, "klamm_embedded_session", EmbeddedCluster, _common_shape(request.config)) as cluster:
        yield cluster


@pytest.fixture
def klamm_cluster(request: pytest.FixtureRequest) -> "Iterator[ProcessCluster]":
    """A Kafka cluster, a process a broker, for this test."""
    from klamm.testing.processes import ProcessCluster

    with _opened(request, "klamm_cluster", ProcessCluster, _marked_shape(request)) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def klamm_cluster_session(request: pytest.FixtureRequest) -> "Iterator[ProcessCluster]":
    """A Kafka cluster, a process a broker, for all tests; what one of them broke is mended before the next."""
    from klamm.testing.processes import ProcessCluster

    with _opened(request, "klamm_cluster_session", ProcessCluster, _common_shape(request.config)) as cluster:
        yield cluster


@contextmanager
def _opened(request: pytest.FixtureRequest, name: str, kind: Any, shape: "Shape") -> Iterator[Any]:
    from klamm.local.problems import LocalError
    from klamm.testing.scratch import Scratch

    state = request.config.stash[STATE]
    if state.scratch is None:
        state.scratch = Scratch()
    try:
        cluster = kind(shape, state.scratch.new_directory())
    except LocalError as problem:
        raise pytest.fail.Exception(f"{name}: {problem}", pytrace=False) from None
    state.open[name] = cluster
    try:
        state.scratch.guard()
        yield cluster
    finally:
        del state.open[name]
        state.given_up.discard(name)
        cluster.close()


# What is done around every test.


# The older way of wrapping, which every pluggy knows: who does not know a hook's option fails in every run of pytest.
@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, None]:
    outcome = yield
    if outcome.excinfo is None and (report := outcome.get_result()).failed:
        lines = _log_lines(item.config)
        for name, cluster in _used_by(item):
            for broker in cluster.brokers if lines else ():
                said = "\n".join(cluster.log(broker, lines)) or "(nothing)"
                report.sections.append((f"{name}: broker {broker}", said))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Where a fixture of the test before failed as it ended, what the test broke is mended only now."""
    _mend(item.config.stash[STATE])
    names = getattr(item, "fixturenames", ())
    is_marked = item.get_closest_marker("klamm") is not None
    if is_marked and not set(names) & set(FUNCTION) and set(names) & set(SESSION):
        pytest.fail(
            "@pytest.mark.klamm cannot change the session's cluster, which others use too; "
            "use klamm_embedded or klamm_cluster, or set klamm_brokers and the like in the ini file",
            pytrace=False,
        )


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """The test's own fixtures have ended. What it broke of the session's clusters is mended, unless it was the last."""
    if nextitem is not None:
        _mend(item.config.stash[STATE], again=getattr(item, "fixturenames", ()))


def _mend(state: State, again: Collection[str] = ()) -> None:
    """All of the session's clusters: the names of its fixtures do not tell all that a test can reach. One that could
    not be mended is tried again only after those that name it: tests that have nothing to do with it would wait for
    it, and fail, one by one."""
    for name, cluster in state.open.items():
        if name in SESSION and (name not in state.given_up or name in again):
            state.given_up.add(name)
            cluster.restore()
            state.given_up.discard(name)


def _used_by(item: pytest.Item) -> "list[tuple[str, EmbeddedCluster | ProcessCluster]]":
    names = getattr(item, "fixturenames", ())
    open_now = item.config.stash[STATE].open
    return [(name, cluster) for name, cluster in open_now.items() if name in names or name in FUNCTION]


# Options: the marker's, the command line's, the ini file's.


def _marked_shape(request: pytest.FixtureRequest) -> "Shape":
    shape = _common_shape(request.config)
    marker = request.node.get_closest_marker("klamm")
    if marker is None:
        return shape
    if marker.args:
        pytest.fail("@pytest.mark.klamm takes names only: @pytest.mark.klamm(brokers=3)", pytrace=False)
    try:
        return shape.with_marker(marker.kwargs)
    except ValueError as problem:
        raise pytest.fail.Exception(str(problem), pytrace=False) from None


def _common_shape(config: pytest.Config) -> "Shape":
    from klamm.testing.shape import BROKERS, RACKS, Shape, counted, parsed_settings

    try:
        return Shape(
            counted("brokers", _option(config, "brokers") or BROKERS),
            counted("racks", _option(config, "racks") or RACKS),
            parsed_settings([*config.getini("klamm_settings"), *config.getoption("klamm_set")]),
        )
    except ValueError as problem:
        raise pytest.fail.Exception(str(problem), pytrace=False) from None


def _log_lines(config: pytest.Config) -> int:
    said = _option(config, "log_lines") or str(LOG_LINES)
    if not said.isdigit():
        raise pytest.UsageError(f"klamm: log lines is a number, not {said!r}")
    return int(said)


def _option(config: pytest.Config, name: str) -> str:
    return str(config.getoption(f"klamm_{name}") or config.getini(f"klamm_{name}") or "")
