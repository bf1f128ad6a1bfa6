"""Single values of options: numbers, booleans, durations; each mistake is told with the option's name."""

import re
from collections.abc import Mapping

from klamm.pipeline.source.problems import WrongOption

_UNITS_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}


def number(given: Mapping[str, str], name: str, default: int | None = None, least: int = 0) -> int | None:
    text = given.get(name.lower())
    if text is None:
        return default
    try:
        value = int(text.strip())
    except ValueError as error:
        raise WrongOption(f"{name} is '{text}'. It has to be a whole number.") from error
    if value < least:
        raise WrongOption(f"{name} is {value}. It has to be {least} or more.")
    return value


def boolean(given: Mapping[str, str], name: str, default: bool) -> bool:
    return one_of(given, name, str(default).lower(), ("true", "false")) == "true"


def one_of(given: Mapping[str, str], name: str, default: str, words: tuple[str, ...]) -> str:
    text = given.get(name.lower(), default).strip().lower()
    if text not in words:
        raise WrongOption(f"{name} is '{text}'. It has to be {' or '.join(repr(word) for word in words)}.")
    return text


def duration_seconds(given: Mapping[str, str], name: str, default: str) -> float:
    """As Spark writes them: `15m`, `30s`, `500ms`; a number alone is milliseconds."""
    text = given.get(name.lower(), default).strip().lower()
    found = re.fullmatch(r"(\d+)\s*([a-z]*)", text)
    unit = (found.group(2) or "ms") if found else ""
    if found is None or unit not in _UNITS_SECONDS:
        raise WrongOption(f"{name} is '{text}'. It has to be a duration such as '15m', '30s' or '500ms'.")
    return int(found.group(1)) * _UNITS_SECONDS[unit]
