"""The shape of the tree: who may import whom, what a core may not know, and that every file says what it is.

The table is the design's. Imports only go down; packages on one line do not import one another, unless the line is a
list of tuples.
"""

import ast
import re
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "klamm"

DEPTH = [
    ["ids", "errors"],
    ["codec", "config", "escaping", "exposition", "facts", "machine", "security", "slicing"],
    ["records", "wire"],
    ["client", "log", "metadata"],
    ["controller", "coordinator", "partition", "quorum"],
    ["broker"],
    ["handlers"],
    ["node"],
    ["runtime", "sim", "pipeline"],
    ["local"],
    ["chaos", "lab"],
    ["testing", "console", "cli"],
]
LEVEL = {package: level for level, packages in enumerate(DEPTH) for package in packages}

SAME_LEVEL = {("facts", "machine"), ("metadata", "log"), ("log", "metadata")}
"""Neighbours that may know each other."""

NOT_EACH_OTHER = {("wire", "records"), ("records", "wire"), ("runtime", "sim"), ("sim", "runtime")}

CORES = [package for packages in DEPTH[:8] for package in packages]
NOT_IN_CORES = {"asyncio", "os", "select", "signal", "socket", "subprocess", "threading", "time", "pathlib", "tempfile"}

FILES = sorted(SOURCE.rglob("*.py"))


def package_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported(tree: ast.AST) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, "imports are absolute"
            names.add(node.module)
            names |= {f"{node.module}.{alias.name}" for alias in node.names} if node.module == "klamm" else set()
    return names


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_file_is_tidy(path: Path) -> None:
    tree = ast.parse(path.read_text())
    assert ast.get_docstring(tree), "a file starts by saying which story it tells"
    package = package_of(path)
    if package in ("__init__", "__main__"):
        return
    assert package in LEVEL, f"{package} has no place in the table of the design"
    for name in imported(tree):
        if name.startswith("klamm."):
            other = name.split(".")[1]
            if other == "__version__" or other == package:
                continue
            assert (package, other) not in NOT_EACH_OTHER, f"{package} must not import {other}"
            lower = LEVEL[other] < LEVEL[package] or (package, other) in SAME_LEVEL
            assert lower, f"{package} must not import {other}: imports go down"
        elif package in CORES:
            assert name.split(".")[0] not in NOT_IN_CORES, f"a core must not know {name}"
    if package in CORES:
        waits = [node for node in ast.walk(tree) if isinstance(node, ast.AsyncFunctionDef | ast.Await)]
        assert not waits, "a core never waits"


@pytest.mark.parametrize("path", sorted((SOURCE / "cli").glob("*.py")), ids=lambda path: path.name)
def test_a_stream_may_be_none(path: Path) -> None:
    """The shell may have closed it: `klamm.cli.saying.is_terminal` asks."""
    assert not re.search(r"sys\.std\w+\.isatty\(", path.read_text())
