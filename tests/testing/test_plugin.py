"""The plugin as pytest sees it: fixtures, marker, options, reports; and nothing is left of a run that was ended."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from proof.fixtures import left_behind

from klamm.testing import plugin
from tests.harness.waiting import wait_until

IDLE = """
import sys

def test_nothing():
    assert not [name for name in sys.modules if name.startswith("klamm.") and name not in
                ("klamm.testing", "klamm.testing.plugin")]
"""

AS_COMPILED = """
import klamm.config

def test_a_broker_is_imported_as_it_was_compiled():
    assert type(klamm.config.__spec__.loader).__name__ == "SourceFileLoader"
"""

SHAPES = """
import pytest
from confluent_kafka.admin import AdminClient
from klamm.testing import EmbeddedCluster

def test_as_the_ini_file_says(klamm_embedded: EmbeddedCluster):
    assert klamm_embedded.brokers == [0]
    assert len(partitions(klamm_embedded)) == 5

@pytest.mark.klamm(brokers=2, settings={"auto.create.topics.enable": False})
def test_as_the_marker_says(klamm_embedded):
    assert klamm_embedded.brokers == [0, 1]
    assert len(partitions(klamm_embedded)) == 5, "settings are added"

@pytest.mark.klamm(broker=2)
def test_misspelt(klamm_embedded): ...

@pytest.mark.klamm(racks=9)
def test_impossible(klamm_embedded): ...

@pytest.mark.klamm(brokers=2)
def test_for_all(klamm_embedded_session): ...

def partitions(cluster):
    cluster.create_topic("numbered", partitions=-1)
    return AdminClient({"bootstrap.servers": cluster.bootstrap_servers}).list_topics().topics["numbered"].partitions
"""

SESSION = """
def test_breaks_it(klamm_cluster_session):
    klamm_cluster_session.kill(0)

def test_finds_it_mended(klamm_cluster_session):
    assert klamm_cluster_session.running == [0]
    assert False, "and its log is shown"
"""

FETCHED = """
import pytest

@pytest.fixture(scope="module")
def wrapped(request):
    return request.getfixturevalue("klamm_embedded_session")

@pytest.fixture
def fails_as_it_ends():
    yield
    assert False

def test_fetches_and_breaks_it(request):
    request.getfixturevalue("klamm_embedded_session").kill(0)

def test_fetches_it_mended_and_breaks_it(request):
    assert request.getfixturevalue("klamm_embedded_session").running == [0]
    request.getfixturevalue("klamm_embedded_session").kill(0)

def test_is_given_it_mended(klamm_embedded_session):
    assert klamm_embedded_session.running == [0]

def test_breaks_it_behind_another_name(wrapped):
    wrapped.kill(0)

def test_finds_it_mended_behind_another_name(wrapped):
    assert wrapped.running == [0]
    wrapped.pause(0)

def test_breaks_it_and_fails_as_it_ends(wrapped, fails_as_it_ends):
    assert wrapped.running == [0]
    wrapped.kill(0)

def test_is_given_it_mended_all_the_same(klamm_embedded_session):
    assert klamm_embedded_session.running == [0]
"""

BEYOND_MENDING = """
def test_breaks_it_for_good(request):
    cluster = request.getfixturevalue("klamm_embedded_session")

    def start(brokers):
        raise RuntimeError("it cannot be mended")

    cluster._start = start
    cluster.kill(0)

def test_has_nothing_to_do_with_it(): ...

def test_names_it(klamm_embedded_session):
    assert klamm_embedded_session.running == []

def test_the_last(): ...
"""

HANGS = """
import os, time, pathlib

def test_hangs(klamm_cluster):
    klamm_cluster.pause(0)
    pathlib.Path("process").write_text(f"{os.getpid()}.")
    time.sleep(600)
"""

FORKS = """
import os, pathlib, time

def test_forks(klamm_embedded_session): ...

def test_a_child_outlives_the_run():
    child = os.fork()
    if not child:
        os.closerange(0, 3)
        time.sleep(600)
        os._exit(0)
    pathlib.Path("child").write_text(str(child))
"""


@pytest.fixture
def temporary(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where runs keep their files; empty again in the end, and nobody works there any more."""
    directory = pytester.mkdir("temporary")
    monkeypatch.setenv("TMPDIR", str(directory))
    yield directory
    wait_until(lambda: not any(left_behind(directory).values()), f"nothing is left: {left_behind(directory)}")


def run(pytester: pytest.Pytester, *options: str) -> pytest.RunResult:
    """Without other plugins that take a second to load."""
    return pytester.runpytest_subprocess("-p", "no:hypothesispytest", "-p", "no:cacheprovider", *options)


def test_who_does_not_use_it_does_not_pay(pytester: pytest.Pytester, temporary: Path) -> None:
    pytester.makepyfile(IDLE)
    run(pytester).assert_outcomes(passed=1)


def test_pytest_does_not_rewrite_brokers(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would, where klamm is not installed in place: all that lies in the distribution of a plugin."""
    metadata = pytester.mkdir("another-1.dist-info")
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: another\nVersion: 1\n")
    (metadata / "RECORD").write_text("klamm/__init__.py,,\nanother.py,,\n")
    (metadata / "entry_points.txt").write_text("[pytest11]\nanother = another\n")
    monkeypatch.setenv("PYTHONPATH", f"{pytester.path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    pytester.makepyfile(another="", test_it=AS_COMPILED)
    run(pytester).assert_outcomes(passed=1)
    run(pytester, "-p", "no:klamm").assert_outcomes(failed=1)


def test_a_cluster_is_as_marker_command_line_and_ini_file_say(pytester: pytest.Pytester, temporary: Path) -> None:
    pytester.makepyfile(SHAPES)
    pytester.makeini("[pytest]\nklamm_brokers = 7\nklamm_settings =\n    num.partitions=5\n")
    result = run(pytester, "--strict-markers", "--klamm-brokers=1", "--klamm-set", "default.replication.factor=1")
    result.assert_outcomes(passed=2, errors=3)
    result.stdout.fnmatch_lines_random(
        [
            "*@pytest.mark.klamm does not know 'broker'; it takes brokers, racks and settings",
            "klamm_embedded: 9 racks cannot be filled with 1 broker*",
            "*@pytest.mark.klamm cannot change the session's cluster*",
        ]
    )


def test_options_that_cannot_be_are_said_in_a_line(pytester: pytest.Pytester, temporary: Path) -> None:
    pytester.makepyfile("def test_it(klamm_embedded): ...")
    for option, said in (
        ("--klamm-brokers=none", "*klamm: brokers is a number from 1 upwards, not 'none'"),
        ("--klamm-set=num.partitions", "*klamm: expected KEY=VALUE, as in num.partitions=6, not 'num.partitions'"),
        ("--klamm-set=num.partitionss=6", "*num.partitionss*num.partitions*"),
    ):
        result = run(pytester, option)
        result.stdout.fnmatch_lines([said])
    result = run(pytester, "--klamm-log-lines=few")
    result.stderr.fnmatch_lines(["*klamm: log lines is a number, not 'few'"])


def test_the_sessions_cluster_is_mended_and_its_log_is_in_the_report(
    pytester: pytest.Pytester, temporary: Path
) -> None:
    pytester.makepyfile(SESSION)
    result = run(pytester, "--klamm-brokers=1", "--klamm-log-lines=3")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*klamm_cluster_session: broker 0*", "*klamm broker 0 takes connections on*"])
    shown = result.stdout.str().partition("klamm_cluster_session: broker 0")[2].partition("short test summary")[0]
    assert len(re.findall(r"\[broker 0\]|takes connections", shown)) == 3
    assert "broker 0" not in run(pytester, "--klamm-brokers=1", "--klamm-log-lines=0").stdout.str()


@pytest.mark.parametrize("options", [[], ["-n1"]], ids=["alone", "worker"])
def test_the_sessions_cluster_is_mended_however_it_was_fetched(
    pytester: pytest.Pytester, temporary: Path, options: list[str]
) -> None:
    """ "What a test broke of a session's cluster is mended before the next test begins." """
    pytester.makepyfile(FETCHED)
    run(pytester, "--klamm-brokers=1", *options).assert_outcomes(passed=7, errors=1)


def test_that_it_could_not_be_mended_is_told_after_those_that_have_to_do_with_it(
    pytester: pytest.Pytester, temporary: Path
) -> None:
    pytester.makepyfile(BEYOND_MENDING)
    result = run(pytester, "--klamm-brokers=1")
    result.assert_outcomes(passed=4, errors=2)
    result.stdout.fnmatch_lines(
        [
            "*ERROR at teardown of test_breaks_it_for_good*",
            "*RuntimeError: it cannot be mended",
            "*ERROR at teardown of test_names_it*",
            "*RuntimeError: it cannot be mended",
        ]
    )


@pytest.mark.parametrize(
    ("number", "options", "codes"),
    [(signal.SIGINT, [], {2}), (signal.SIGKILL, [], {-9}), (signal.SIGKILL, ["-n1", "--max-worker-restart=0"], {1, 2})],
    ids=["interrupted", "killed", "worker-killed"],
)
def test_a_run_that_is_ended_leaves_nothing(
    pytester: pytest.Pytester, temporary: Path, number: signal.Signals, options: list[str], codes: set[int]
) -> None:
    """A broker that is paused could not notice by itself."""
    pytester.makepyfile(HANGS)
    command = [sys.executable, "-m", "pytest", "-p", "no:hypothesispytest", "--klamm-brokers=1", *options]
    hanging = subprocess.Popen(command, cwd=pytester.path)
    process = pytester.path / "process"
    wait_until(lambda: process.exists() and process.read_text().endswith("."), "the test hangs", 60)
    assert left_behind(temporary)["processes_left"]
    os.kill(int(process.read_text()[:-1]), number)
    assert hanging.wait(60) in codes


def test_a_run_ends_while_a_child_of_a_test_goes_on(pytester: pytest.Pytester, temporary: Path) -> None:
    """The child inherited all that was open when it was forked."""
    pytester.makepyfile(FORKS)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:hypothesispytest", "--klamm-brokers=1"]
    tests = subprocess.Popen(command, cwd=pytester.path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        assert tests.wait(30) == 0
    finally:
        tests.kill()
        os.kill(int((pytester.path / "child").read_text()), signal.SIGKILL)


def test_an_old_pluggy_knows_all_that_the_plugin_asks_of_it() -> None:
    """Else every run of pytest would fail beside it, also those that have nothing to do with Kafka."""
    assert not plugin.pytest_runtest_makereport.pytest_impl["wrapper"]


def test_the_sample_project_passes_with_two_workers(temporary: Path) -> None:
    project = Path(__file__).parent.parent.parent / "examples" / "pytest_project"
    command = [sys.executable, "-m", "pytest", "-n", "2", "-q", "-p", "no:cacheprovider"]
    tests = subprocess.run(command, cwd=project, capture_output=True, text=True)
    assert tests.returncode == 0 and "20 passed" in tests.stdout, tests.stdout[-20_000:]
