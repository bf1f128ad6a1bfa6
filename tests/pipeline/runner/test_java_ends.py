"""Java that ends under a run is said in a sentence; what else goes wrong is left as it is."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from klamm.pipeline import registration, spark
from klamm.pipeline.loading import loaded
from klamm.pipeline.problems import PipelineError
from tests.pipeline.runner.shop import FILE


@pytest.fixture
def java(monkeypatch: pytest.MonkeyPatch) -> Iterator["subprocess.Popen[bytes]"]:
    """In the place of Java: some process that lives."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        context = SimpleNamespace(_gateway=SimpleNamespace(proc=process), setLogLevel=lambda level: None)
        session = SimpleNamespace(sparkContext=context, stop=process.kill)
        monkeypatch.setattr(spark, "new_session", lambda *arguments: session)
        monkeypatch.setattr(spark, "ENDING_SECONDS", 0.2)
        monkeypatch.setattr(registration, "register", lambda session: None)
        yield process
        process.kill()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "shop.py"
    path.write_text(FILE)
    return path


def test_java_is_killed(java: "subprocess.Popen[bytes]", file: Path, tmp_path: Path) -> None:
    log = tmp_path / "spark.log"
    with pytest.raises(PipelineError) as problem, spark.session(loaded(file), "local", {}, log):
        java.kill()
        raise ConnectionRefusedError(111, "Connection refused")
    assert "was killed" in str(problem.value) and "the next run goes on" in str(problem.value)
    assert str(log) in str(problem.value)


def test_java_lives(java: "subprocess.Popen[bytes]", file: Path) -> None:
    with pytest.raises(ValueError, match="ours"), spark.session(loaded(file), "local", {}, None):
        raise ValueError("ours")
    assert java.wait(10) < 0, "it was stopped"
