"""Every command of the command line is run by a test, or by a page of the documentation, which is run too."""

import ast
from collections.abc import Iterator
from pathlib import Path

from klamm.cli.completion_tree import tree
from tests.docs.blocks import blocks_of, pages

TESTS = Path(__file__).parent.parent
ONLY_WORDS = ("test_help.py", "test_completion.py", "test_completion_tree.py", "test_tidy.py")
"""They ask for help, complete words, or name packages; nothing is run."""


def said_in(path: Path) -> Iterator[str]:
    """The words that stand in a row in a call, a list or a tuple, as commands do. Prose does not. A helper that is
    called `topic_command` says the first word for its callers."""
    for node in ast.walk(ast.parse(path.read_text())):
        found = node.args if isinstance(node, ast.Call) else getattr(node, "elts", [])
        words = [str(each.value) if isinstance(each, ast.Constant) else "…" for each in found]
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            words.insert(0, node.func.id.removesuffix("_command"))
        yield " ".join(words)


def test_every_command_is_run_by_a_test() -> None:
    said = [words for path in TESTS.rglob("*.py") if path.name not in ONLY_WORDS for words in said_in(path)]
    said += [
        block.text for page in pages() for block in blocks_of(page) if block.is_shell and "skip" not in block.marks
    ]
    lines = [f" {' '.join(line.split())} " for words in said for line in words.splitlines()]
    paths = [each.path for each in tree().walk() if each.path and not each.is_choice]
    commands = [path for path in paths if not any(other != path and other[: len(path)] == path for other in paths)]
    assert len(commands) > 30
    assert not [path for path in commands if not any(f" {' '.join(path)} " in line for line in lines)]
