"""The cause of a failure, found where Spark buries it: below Java's stack trace, inside a Python worker's.

Spark wraps what happened in a worker twice or thrice, each time with a stack trace. The last line of the innermost
Python traceback is what the author of a pipeline can do something about; then comes the last `Caused by` of Java; then
Spark's own first line. What points into the author's file is kept.
"""

import re
from pathlib import Path

from klamm.pipeline.problems import PipelineError

TRACEBACK = "Traceback (most recent call last):"
FRAME = re.compile(r'^\s*File "(?P<file>[^"]+)", line (?P<line>\d+), in (?P<function>\S+)')
ERROR = re.compile(r"^(?P<kind>[A-Za-z_][\w.]*)(?:: ?(?P<text>.*))?$")
CAUSED_BY = re.compile(r"^Caused by: (?P<kind>[\w.$]+): (?P<text>.*)", re.M)
PLAN = re.compile(r"\n+(?:===? .*|'?[A-Z]\w+ .*|[+:]- .*|JVM stacktrace:)", re.S)
STATE = re.compile(r"SQLSTATE: \w{5}")
IN_EXPRESSION = re.compile(r"\s*;\s*line \d+ pos \d+[ ;]*$")
"""Of the few words of SQL that a function has given to Spark, and not of the author's file, whose line is named."""
OURS = "klamm."
LONGEST = 600


def paragraph(problem: BaseException, path: Path | None = None) -> str:
    """One paragraph. `path` is the pipeline's file: the line of it that was running is named."""
    if isinstance(problem, PipelineError):
        return str(problem)
    text = _text_of(problem)
    place = _place(text, path) or _own_place(problem, path)
    cause = _python_cause(text) or _java_cause(text) or _first_line(problem, text)
    return f"{cause}{f' ({place})' if place else ''}"


def _text_of(problem: BaseException) -> str:
    """With what Java has to say, where Java had a part in it."""
    java = getattr(problem, "java_exception", None) or getattr(problem, "_origin", None)
    if java is not None:
        try:
            return f"{problem}"
        except Exception:
            return type(problem).__name__
    return str(problem)


def _python_cause(text: str) -> str:
    """The last line of the last traceback that has one: what was raised, with what follows it."""
    for part in reversed(text.split(TRACEBACK)[1:]):
        lines = part.splitlines()
        for index, line in enumerate(lines):
            found = ERROR.match(line)
            if found:
                said = " ".join([found["text"] or "", *_following(lines[index + 1 :])])
                return _short(_with_kind(found["kind"], said))
    return ""


def _with_kind(kind: str, said: str) -> str:
    """Our own problems are sentences; of others the name of their class is half of what they say."""
    if kind.startswith(OURS) and said:
        return said
    return f"{kind.rpartition('.')[2]}: {said}".rstrip(": ")


def _following(lines: list[str]) -> list[str]:
    """A message may have more lines. It ends where Java begins, or the next traceback."""
    found = []
    for line in lines:
        if not line.strip() or line.startswith(("\tat ", "Caused by", "==", "JVM stacktrace", "During handling")):
            break
        found.append(line.strip())
    return found


def _java_cause(text: str) -> str:
    found = list(CAUSED_BY.finditer(text))
    if not found:
        return ""
    kind = found[-1]["kind"].rpartition(".")[2]
    return _short(f"{kind}: {found[-1]['text']}")


def _first_line(problem: BaseException, text: str) -> str:
    kind = type(problem).__name__
    said = PLAN.sub("", text).strip()
    if kind in ("AnalysisException", "ParseException", "StreamingQueryException"):
        return _short(said)
    return _short(_with_kind(f"{type(problem).__module__}.{kind}", said))


def _place(text: str, path: Path | None) -> str:
    """Where in the author's file, if a traceback goes through it."""
    if path is None:
        return ""
    found = [match for line in text.splitlines() if (match := FRAME.match(line)) and _is_same(match["file"], path)]
    return f"{path.name}, line {found[-1]['line']}, in {found[-1]['function']}" if found else ""


def _own_place(problem: BaseException, path: Path | None) -> str:
    """Where in the author's file, if it was raised on this side."""
    place, step = "", problem.__traceback__
    while step is not None and path is not None:
        code = step.tb_frame.f_code
        if _is_same(code.co_filename, path):
            place = f"{path.name}, line {step.tb_lineno}, in {code.co_name}"
        step = step.tb_next
    return place


def _is_same(file: str, path: Path) -> bool:
    return Path(file).resolve() == path.resolve()


def _short(text: str) -> str:
    text = IN_EXPRESSION.sub("", " ".join(STATE.sub("", text).split())).rstrip(" ;")
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
