"""Random values for any message, drawn from a `Random`: what round trips and referees are fed with."""

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

from klamm.codec.schema import Field, schema_of
from klamm.wire.apis import API_BY_KEY, request_type, response_type

SIMPLE: dict[str, Callable[[Random], Any]] = {
    "int8": lambda chance: chance.randint(-(2**7), 2**7 - 1),
    "int16": lambda chance: chance.randint(-(2**15), 2**15 - 1),
    "int32": lambda chance: chance.randint(-(2**31), 2**31 - 1),
    "int64": lambda chance: chance.randint(-(2**63), 2**63 - 1),
    "uint16": lambda chance: chance.randint(0, 2**16 - 1),
    "uint32": lambda chance: chance.randint(0, 2**32 - 1),
    "float64": lambda chance: chance.uniform(-1e9, 1e9),
    "boolean": lambda chance: chance.random() < 0.5,
    "uuid": lambda chance: chance.randbytes(16),
    "string": lambda chance: "".join(chance.choices("abcxyzäß€𝄞.-_", k=chance.choice((0, 1, 126, 127, 300)))),
    "bytes": lambda chance: chance.randbytes(chance.choice((0, 1, 126, 127, 300))),
    "records": lambda chance: chance.randbytes(chance.choice((0, 1, 126, 127, 300, 20_000))),
}


def every_message() -> Iterator[tuple[int, type, int]]:
    """Key, class and version of every request and every response there is."""
    for key, api in sorted(API_BY_KEY.items()):
        for version in range(api.min_version, api.max_version + 1):
            yield key, request_type(key), version
            yield key, response_type(key), version


def drawn(chance: Random, cls: type, version: int) -> Any:
    """A random value; fields that the version lacks keep their defaults, and so do some of the tagged ones."""
    return cls(
        **{
            field.name: drawn_field(chance, field, version)
            for field in schema_of(cls).fields
            if version in field.versions and not (version in field.tagged and chance.random() < 0.4)
        }
    )


def drawn_field(chance: Random, field: Field, version: int) -> Any:
    if version in field.nullable and chance.random() < 0.25:
        return None
    if isinstance(field.of, Field):
        most = 2 if field.of.kind == "struct" else 20
        return [drawn_field(chance, field.of, version) for _ in range(chance.choice((0, 1, 2, most)))]
    return drawn(chance, field.struct, version) if field.kind == "struct" else SIMPLE[field.kind](chance)
