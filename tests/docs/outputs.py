"""What a page shows of a command's output, held against what the command said.

Every line that is shown has to be there, in the order shown; more may be there. Blanks count once. What nobody can
know beforehand is taken for the same: ids of members and clusters, durations, numbers of processes. An ellipsis stands
for anything, and a pattern that the page gives (`vary`) for whatever it matches.
"""

import re

_UNKNOWABLE = (
    (re.compile(r"(?<![\w+/-])(?=\S*[A-Z])(?=\S*[a-z])[\w+/-]{22}(?![\w+/-])"), "<id>"),
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"), "<uuid>"),
    (re.compile(r"\b\d+(\.\d+)? (ms|s|seconds)\b"), "<duration>"),
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[\d.,]*Z?"), "<time>"),
    (re.compile(r"/[\w./-]*/klamm-data"), "<directory>"),
)
_WORD = re.compile(r"(?<![\w-])[A-Za-z]{4,}(?![\w-])")
_COLORS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def missing_line(shown: str, said: str, varies: str = "") -> str | None:
    """The first line that is shown and was not said; None if there is none."""
    heard = [plain(line, varies) for line in said.splitlines()]
    at = 0
    for line in shown.splitlines():
        wanted = plain(line, varies)
        if wanted in ("", "…", "..."):
            continue
        pattern = re.compile(".*".join(map(re.escape, re.split(r"…|\.\.\.", wanted))))
        at = next((number + 1 for number in range(at, len(heard)) if pattern.fullmatch(heard[number])), -1)
        if at < 0:
            return line
    return None


def missing_words(shown: str, said: str) -> list[str]:
    """The words of an example that were not said. Words have four letters or more and nothing else."""
    return sorted(set(_WORD.findall(shown)) - set(_WORD.findall(said)))


def plain(line: str, varies: str = "") -> str:
    line = " ".join(_COLORS.sub("", line).split())
    for pattern, name in _UNKNOWABLE:
        line = pattern.sub(name, line)
    return re.sub(varies, "<any>", line) if varies else line
