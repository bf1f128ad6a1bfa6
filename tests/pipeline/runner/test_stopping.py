"""Before a run changes anything a signal ends it; then one signal asks, and the second ends the process."""

import os
import signal
import subprocess
import sys
import time
import weakref
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import pytest

from klamm.pipeline.keeping import Claim
from klamm.pipeline.queries import Queries, Wishes
from klamm.pipeline.stopping import Interrupted, StopSignals

TWICE = """
import os, signal
from klamm.pipeline.stopping import StopSignals
with StopSignals(print, lambda: print("the view goes")) as signals:
    signals.begin()
    os.kill(os.getpid(), signal.SIGTERM)
    assert signals.were_seen
    os.kill(os.getpid(), signal.SIGINT)
    print("still here")
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_before_it_changes_anything(number: int) -> None:
    before, said = signal.getsignal(number), list[str]()
    with pytest.raises(Interrupted, match="nothing was read or written"), StopSignals(said.append):
        os.kill(os.getpid(), number)
    assert said == [] and signal.getsignal(number) is before


def test_the_second_does_not_disturb_the_tidying_up() -> None:
    tidied = False
    with pytest.raises(Interrupted), StopSignals(print):
        try:
            os.kill(os.getpid(), signal.SIGINT)
        finally:
            os.kill(os.getpid(), signal.SIGINT)
            tidied = True
    assert tidied


def test_one_that_was_swallowed_counts() -> None:
    with pytest.raises(Interrupted), StopSignals(print) as signals:
        with suppress(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
        signals.begin()


def test_what_it_makes_fail_is_not_told() -> None:
    with pytest.raises(Interrupted), StopSignals(print):
        try:
            os.kill(os.getpid(), signal.SIGINT)
        finally:
            raise ConnectionError("Spark does not answer")


def test_the_garbage_collector_swallows_it_for_a_moment_only(capsys: pytest.CaptureFixture[str]) -> None:
    """One time in twenty-five Ctrl-C met PySpark at removing an object: a stack trace, and Spark went on starting."""
    hook = sys.unraisablehook
    with pytest.raises(Interrupted), StopSignals(print):
        removed = {"an object"}
        gone = weakref.ref(removed, lambda _: os.kill(os.getpid(), signal.SIGINT))
        del removed
        assert gone() is None
        time.sleep(10)
    assert capsys.readouterr().err == "" and sys.unraisablehook is hook


def test_the_first_asks() -> None:
    before = signal.getsignal(signal.SIGINT)
    said: list[str] = []
    with StopSignals(said.append) as signals:
        signals.begin()
        assert not signals.were_seen
        os.kill(os.getpid(), signal.SIGINT)
        assert signals.were_seen and said == ["stopping after this batch ... (once more: at once)"]
    assert signal.getsignal(signal.SIGINT) is before


def test_the_second_ends_it() -> None:
    ended = subprocess.run([sys.executable, "-u", "-c", TWICE], capture_output=True, text=True, check=False)
    assert ended.returncode == 130 and "still here" not in ended.stdout
    assert ended.stdout.splitlines()[1:] == ["the view goes", "ended at once; the next run repeats the batch"]


def test_who_has_asked_before_they_all_run_is_spared_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a pipeline with four queries, each of which takes seconds to start, all were started to be stopped."""
    plan: Any = SimpleNamespace(
        queries=[SimpleNamespace(name=name, sources=()) for name in ("a", "b", "c")],
        pipeline=SimpleNamespace(name="shop", outputs=(), sources=()),
    )
    monkeypatch.setattr("klamm.pipeline.queries.standing_of", lambda plan: None)
    directory: Any = SimpleNamespace(claimed=lambda query, cluster: Claim("id"), settle=lambda name, claim: None)
    spark: Any = None
    queries, started = Queries(spark, plan, directory, "cluster", Wishes("")), list[str]()

    def start(query: Any) -> None:
        started.append(query.name)
        queries._running[query.name] = SimpleNamespace(query=SimpleNamespace(isActive=False))  # type: ignore[assignment]

    monkeypatch.setattr(queries, "_start", start)
    queries.start(stops=lambda: len(started) == 2)
    assert started == ["a", "b"]
