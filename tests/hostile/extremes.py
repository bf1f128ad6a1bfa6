"""Requests of every API that are right in form and extreme in content, made from the schemas alone."""

from collections.abc import Callable
from typing import Any, TypeAlias

from klamm.codec.schema import Field, schema_of
from klamm.handlers import TABLE
from klamm.wire.apis import API_BY_KEY, CONTROLLER, request_type

Leaf: TypeAlias = Callable[[Field], Any]
"""Gives a value for a field that is no array and no structure."""

BITS = {"int8": 7, "int16": 15, "int32": 31, "int64": 63}
UNREGISTER_BROKER = 64
"""Not among them: it would be obeyed. Without authentication anybody may ask it, and the only broker would go."""

ASKED = [key for key in sorted(TABLE) if key != UNREGISTER_BROKER and API_BY_KEY[key].listener != CONTROLLER]
"""A broker alone does not serve what only nodes ask of one another."""

WAITS = "max_wait_ms"
"""The one number that makes a request wait for as long as it says."""


def served() -> list[tuple[int, int]]:
    """Key and version of every request that is served."""
    return [
        (key, version)
        for key in ASKED
        for version in range(API_BY_KEY[key].min_version, API_BY_KEY[key].max_version + 1)
    ]


def turning_points() -> list[tuple[int, int]]:
    """The oldest, the newest, and the first flexible version of each API."""
    points = []
    for key in ASKED:
        api = API_BY_KEY[key]
        chosen = {api.min_version, api.max_version, min(max(api.flexible_from, api.min_version), api.max_version)}
        points += [(key, version) for version in sorted(chosen)]
    return points


def request_of(key: int, version: int, leaf: Leaf, depth: int, times: int = 1) -> Any:
    """A request whose arrays hold `times` the same element, and those at `depth` none."""
    return _structure(request_type(key), version, leaf, depth, times)


def nulls(key: int, version: int) -> Any:
    """A request with null in every place that allows it, at the outermost level."""
    cls = request_type(key)
    fields = [field for field in schema_of(cls).fields if version in field.versions]
    return cls(**{field.name: None for field in fields if version in field.nullable})


def zero(field: Field) -> Any:
    return {"string": "", "bytes": b"", "records": b"", "uuid": bytes(16), "boolean": False}.get(field.kind, 0)


def largest(field: Field) -> Any:
    if field.kind in BITS and field.name != WAITS:
        return 2 ** BITS[field.kind] - 1
    return {
        "string": "x" * 249,
        "uuid": b"\xff" * 16,
        "boolean": True,
        "records": b"\xff" * 100,
        "bytes": b"\xff" * 100,
    }.get(field.kind, 0)


def smallest(field: Field) -> Any:
    return -(2 ** BITS[field.kind]) if field.kind in BITS else zero(field)


def minus_one(field: Field) -> Any:
    return -1 if field.kind in BITS else largest(field)


def longest_texts(field: Field) -> Any:
    return "x" * 32_767 if field.kind == "string" else zero(field)


def longest_names_of_known_kinds(field: Field) -> Any:
    """As above, for resources of a kind that exists: the names are looked at more closely."""
    return {"resource_type": 4, "config_operation": 2}.get(field.name, longest_texts(field))


def long_numbers(field: Field) -> Any:
    """Text that is a number, but no number anybody has: as an id of a broker, or a value of a setting."""
    return "9" * 32_767 if field.kind == "string" else longest_names_of_known_kinds(field)


def text_of_control_characters(field: Field) -> Any:
    if field.kind != "string":
        return longest_names_of_known_kinds(field)
    return "a\nERROR [broker 0] forged\x1b[31m\x00\r\x7f\u2028\u202e"


def _structure(cls: type, version: int, leaf: Leaf, depth: int, times: int) -> Any:
    fields = [field for field in schema_of(cls).fields if version in field.versions]
    return cls(**{field.name: _value(field, version, leaf, depth, times) for field in fields})


def _value(field: Field, version: int, leaf: Leaf, depth: int, times: int) -> Any:
    if isinstance(field.of, Field):
        return [] if depth == 0 else [_value(field.of, version, leaf, depth - 1, times)] * times
    if field.kind == "struct":
        return _structure(field.struct, version, leaf, depth, times)
    return leaf(field)
