"""What can be wrong with a pipeline, told to the person who wrote it: one paragraph, and what to do about it."""

from collections.abc import Iterable
from difflib import get_close_matches

INSTALL = "`pip install 'klamm[spark,java]'`, or in a checkout `pip install '.[spark,java]'`"
"""What brings Spark and a Java: to those who have Klamm from the package index, and to those who have its sources."""


class PipelineError(Exception):
    """It cannot be run, or it stopped. The text is all that is shown, unless somebody asks for more."""


class BadPipeline(PipelineError):  # noqa: N818
    """The file says something that makes no sense."""


def meant(word: str, known: Iterable[str]) -> str:
    """` Did you mean …?`, or which there are."""
    names = sorted(known)
    near = get_close_matches(word, names, n=1)
    if near:
        return f" Did you mean `{near[0]}`?"
    return f" There are {listed(names)}." if names else ""


def listed(names: Iterable[str]) -> str:
    return together(f"`{name}`" for name in names)


def together(names: Iterable[str]) -> str:
    """`a, b and c`; of none it is nothing."""
    *rest, last = [*names] or [""]
    return f"{', '.join(rest)} and {last}" if rest else last
