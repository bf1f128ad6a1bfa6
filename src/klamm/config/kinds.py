"""The kinds of value a setting can have, read from text and written back as Kafka writes them.

A kind's number is Kafka's ConfigType, the one that DescribeConfigs carries. Reading is as strict as Java's: `0x10` and
`1_000` are not numbers, blanks around a value do not count, `TRUE` is true. A list is a tuple of strings. A value that
cannot be read raises `BadValueError`, whose text is what a client of Kafka is used to see.
"""

from enum import IntEnum
from typing import TypeAlias

Value: TypeAlias = bool | int | float | str | tuple[str, ...] | None


class Kind(IntEnum):
    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class BadValueError(ValueError):
    """A value that its setting does not take: `reason` says why, the whole text also names both."""

    def __init__(self, name: str, value: object, reason: str) -> None:
        super().__init__(f"Invalid value {value} for configuration {name}: {reason}")
        self.reason = reason


class BadListError(BadValueError):
    """A list that is empty, doubled or has holes: Kafka words these differently."""

    def __init__(self, name: str, reason: str) -> None:
        ValueError.__init__(self, f"Configuration '{name}' {reason}")
        self.reason = reason


def parsed(name: str, kind: Kind, text: str) -> Value:
    trimmed = text.strip(_BLANKS)
    if kind in _BITS:
        return _integer(name, kind, trimmed, text)
    if kind is Kind.BOOLEAN:
        return _boolean(name, trimmed, text)
    if kind is Kind.DOUBLE:
        return _double(name, trimmed, text)
    if kind is Kind.LIST:
        return tuple(part.strip() for part in trimmed.split(",")) if trimmed else ()
    return trimmed


def written(value: Value) -> str | None:
    """The text Kafka shows for a value: `true`, `a,b`, `1.0E7`."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ",".join(value)
    if isinstance(value, float):
        return _written_double(value)
    return str(value)


_BLANKS = "".join(map(chr, range(33)))  # What Java's trim removes.
_BITS = {Kind.SHORT: 16, Kind.INT: 32, Kind.LONG: 64}


def _integer(name: str, kind: Kind, trimmed: str, text: str) -> int:
    digits = trimmed[1:] if trimmed[:1] in ("+", "-") else trimmed
    if digits.isascii() and digits.isdigit() and len(digits) < 40:
        number = int(trimmed)
        limit = 1 << (_BITS[kind] - 1)
        if -limit <= number < limit:
            return number
    raise BadValueError(name, text, f"Not a number of type {kind.name}")


def _boolean(name: str, trimmed: str, text: str) -> bool:
    lowered = trimmed.lower()
    if lowered not in ("true", "false"):
        raise BadValueError(name, text, "Expected value to be either true or false")
    return lowered == "true"


def _double(name: str, trimmed: str, text: str) -> float:
    digits = trimmed[:-1] if trimmed[-1:] in ("f", "F", "d", "D") else trimmed
    try:
        number = float(digits)
    except ValueError:
        number = float("nan")
    # Kafka would take NaN, which is neither below nor above any limit. We take finite numbers only.
    if number - number != 0 or "_" in digits:
        raise BadValueError(name, text, "Not a number of type DOUBLE")
    return number


def _written_double(number: float) -> str:
    """Java's text of a double: plain from 0.001 to below ten million, else one digit before the point and an E."""
    if number == 0 or 1e-3 <= abs(number) < 1e7:
        return str(number)
    shortest = next(text for digits in range(17) if float(text := f"{number:.{digits}e}") == number)
    mantissa, _, exponent = shortest.partition("e")
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}E{int(exponent)}"
