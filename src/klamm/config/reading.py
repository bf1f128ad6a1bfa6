"""From the lines of a file to settings with values, and what to tell the person who wrote it.

Every key meets one of five fates: it works; it has no effect here and warns; it promises what is not there yet, mostly
security, and is refused; its value is wrong and is refused; it is no key at all and is refused with the nearest right
name. What was given beside the file (`overrides`) counts more than the file, also when the two use different names for
one thing, such as `log.retention.hours` beside `log.retention.ms`.
"""

from collections.abc import Iterable, Mapping

from klamm.config.kinds import BadValueError, Value
from klamm.config.names import broker_setting, nearest, why_ignored
from klamm.config.rules import allowed
from klamm.config.tables import Setting, Status
from klamm.config.topic_table import FAMILIES

_ONE_THING = (
    ("node.id", "broker.id"),
    ("log.dirs", "log.dir"),
    FAMILIES["log.retention.ms"],
    FAMILIES["log.roll.ms"],
    FAMILIES["log.roll.jitter.ms"],
)


class Reading:
    """What a file said: the text of each setting, its value, and what is to be said about it."""

    __slots__ = ("problems", "texts", "values", "warnings")

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self.values: dict[str, Value] = {}
        self.warnings: list[str] = []
        self.problems: list[str] = []


class _Given:
    __slots__ = ("line", "text")

    def __init__(self, text: str, line: int | None) -> None:
        self.text = text
        self.line = line

    def __str__(self) -> str:
        return "" if self.line is None else f" (line {self.line})"


def read(pairs: Iterable[tuple[str, str, int]], overrides: Mapping[str, str]) -> Reading:
    reading = Reading()
    everything = _given(pairs, overrides, reading)
    if not everything.keys() & {"node.id", "broker.id"}:
        reading.problems.append("node.id is missing: every node needs a number of its own, 0 or more")
    for name, given in sorted(everything.items(), key=_by_line):
        setting = broker_setting(name)
        if setting is None:
            _note_stranger(name, given, reading)
        else:
            _note(name, setting, given, reading)
    return reading


def _by_line(item: tuple[str, _Given]) -> tuple[int, str]:
    return (item[1].line or 0, item[0])


def _given(pairs: Iterable[tuple[str, str, int]], overrides: Mapping[str, str], reading: Reading) -> dict[str, _Given]:
    given: dict[str, _Given] = {}
    for name, text, line in pairs:
        if name in given:
            reading.warnings.append(f"{name} is set in line {given[name].line} and again in line {line}, which counts")
        given[name] = _Given(text, line)
    for name in overrides:
        for other in next((names for names in _ONE_THING if name in names), ()):
            given.pop(other, None)
    given.update((name, _Given(text, None)) for name, text in overrides.items())
    return given


def _note_stranger(name: str, given: _Given, reading: Reading) -> None:
    why = why_ignored(name)
    if why is not None:
        reading.warnings.append(f"{name}{given} is ignored. {why}")
        return
    close = nearest(name)
    question = f"; did you mean {close}?" if close else ""
    reading.problems.append(f"{name}{given} is not a setting of Kafka 4.3{question}")


def _note(name: str, setting: Setting, given: _Given, reading: Reading) -> None:
    try:
        value = setting.parsed(given.text)
    except BadValueError:
        shown = "this value" if setting.is_sensitive else repr(given.text)
        wanted = allowed(setting.kind, setting.rule)
        reading.problems.append(f"{name}{given} does not take {shown}; it takes {wanted}")
        return
    if setting.status is Status.NOT_YET and value not in ("", (), setting.parsed_default()):
        reading.problems.append(f"{name}{given} is refused. {setting.documentation}")
        return
    if setting.status is not Status.WORKS:
        reading.warnings.append(f"{name}{given} has no effect. {setting.documentation}")
    reading.texts[name] = given.text
    reading.values[name] = value
