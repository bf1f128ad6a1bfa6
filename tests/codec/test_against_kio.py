"""kio is generated from Kafka's definitions, our tables come from Kafka's jar: two readings that have to agree.

For every API and every version, random values become the same bytes here and there, and each reads what the other
wrote. What kio 0.6.5 lacks is listed, and refereed by Kafka's jar alone (tests/compat/test_codec_against_java.py).
"""

import dataclasses
import datetime
import random
import uuid
from collections.abc import Iterator
from importlib import import_module
from typing import Any, get_args

import pytest

from klamm.codec.compiler import decode, encode
from klamm.codec.schema import NO_UUID, Field, schema_of
from klamm.wire.apis import API_BY_KEY, Api, request_type, response_type

kio_index = pytest.importorskip("kio.index")
kio_serial = pytest.importorskip("kio.serial")
kio_errors = pytest.importorskip("kio.schema.errors")

# Versions that Kafka 4.3 serves and kio does not know: (API, version).
NOT_IN_KIO: frozenset[tuple[str, int]] = frozenset()

VALUES_EACH = 12
INTEGERS = {f"int{bits}": (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for bits in (8, 16, 32, 64)}
INTEGERS["uint16"] = (0, 2**16 - 1)
TIMES = ("timedelta_i32", "timedelta_i64", "datetime_i64")


@pytest.mark.parametrize("api", API_BY_KEY.values(), ids=lambda api: api.name)
def test_same_bytes_for_every_version_in_both_directions(api: Api) -> None:
    for version, ours, theirs in types_of(api):
        chance = random.Random(f"{ours.__name__} {version}")
        read, write = kio_serial.entity_reader(theirs), kio_serial.entity_writer(theirs)
        for _ in range(VALUES_EACH):
            value, twin = drawn(chance, ours, theirs, version)
            data = encode(value, version)
            assert data == written(write, twin), f"{ours.__name__} {version} {value}"
            assert decode(ours, version, data, exact=True) == value
            assert read(data, 0) == (twin, len(data))


def test_what_kio_lacks_is_listed() -> None:
    served = {(api.name, version) for api in API_BY_KEY.values() for version in versions_of(api)}
    known = {(api.name, version) for api in API_BY_KEY.values() for version, _, _ in types_of(api)}
    assert served - known == NOT_IN_KIO


def versions_of(api: Api) -> range:
    return range(api.min_version, api.max_version + 1)


def types_of(api: Api) -> Iterator[tuple[int, type, type]]:
    """Every version of request and response: our class and kio's."""
    for version in versions_of(api):
        try:
            request = import_module(f"kio.schema.{api.module}.v{version}.request")
            response = import_module(f"kio.schema.{api.module}.v{version}.response")
        except ModuleNotFoundError:
            continue
        yield version, request_type(api.key), getattr(request, f"{api.name}Request")
        yield version, response_type(api.key), getattr(response, f"{api.name}Response")


def drawn(chance: random.Random, ours: type, theirs: type, version: int) -> tuple[Any, Any]:
    """One random value twice: as ours and as kio's. Fields correspond by order, and by name but for kio's units."""
    fields = [field for field in schema_of(ours).fields if version in field.versions]
    twins = dataclasses.fields(theirs)
    assert [bare(field.name) for field in fields] == [bare(twin.name) for twin in twins]
    value, arguments = {}, {}
    for field, twin in zip(fields, twins, strict=True):
        assert (version in field.tagged) == ("tag" in twin.metadata), field.name
        assert twin.metadata.get("tag", -1) == (field.tag if version in field.tagged else -1)
        value[field.name], arguments[twin.name] = drawn_field(chance, field, twin, version)
    return ours(**value), theirs(**arguments)


def bare(name: str) -> str:
    """A field's name without its unit, which kio puts into the type, and without the question how to part KRaft."""
    return name.removesuffix("_ms").replace("_", "")


def drawn_field(chance: random.Random, field: Field, twin: Any, version: int) -> tuple[Any, Any]:
    kafka_type = twin.metadata.get("kafka_type")
    if "tag" in twin.metadata and chance.random() < 0.4 and twin.default is not dataclasses.MISSING:
        return default_of(field), twin.default
    if version in field.nullable and chance.random() < 0.25:
        return None, None
    if field.kind != "array":
        return drawn_one(chance, field, kafka_type, inner_type(twin.type), version)
    assert isinstance(field.of, Field)
    count = chance.choice((0, 1, 1, 2, 3, 20 if field.of.kind != "struct" else 3))
    pairs = [drawn_one(chance, field.of, kafka_type, inner_type(twin.type), version) for _ in range(count)]
    return [pair[0] for pair in pairs], tuple(pair[1] for pair in pairs)


def default_of(field: Field) -> Any:
    if field.kind == "array" and field.default == ():
        return []
    return field.default() if isinstance(field.default, type) else field.default


def inner_type(annotation: Any) -> Any:
    """What is left of `tuple[X, ...] | None`."""
    for argument in get_args(annotation):
        if argument not in (Ellipsis, type(None)):
            return inner_type(argument)
    return annotation


def drawn_one(chance: random.Random, field: Field, kafka_type: str, theirs: Any, version: int) -> tuple[Any, Any]:
    if field.kind == "struct":
        return drawn(chance, field.struct, theirs, version)
    if kafka_type == "error_code":
        code = chance.choice(list(kio_errors.ErrorCode))
        return int(code), code
    if kafka_type in TIMES:
        milliseconds = chance.randrange(2**31)
        return milliseconds, as_time(kafka_type, milliseconds)
    if field.kind in INTEGERS:
        low, high = INTEGERS[field.kind]
        return (number := chance.choice((0, low, high, chance.randint(low, high)))), number
    if field.kind == "uuid":
        # kio reads the zero id, which Kafka uses for "none", as None.
        data = chance.choice((NO_UUID, chance.randbytes(16)))
        return data, uuid.UUID(bytes=data) if data != NO_UUID else None
    if field.kind == "boolean":
        return (yes := chance.random() < 0.5), yes
    if field.kind == "float64":
        return (number := chance.uniform(-1e9, 1e9)), number
    length = chance.choice((0, 1, 5, 126, 127, 128, 300))
    if field.kind == "string":
        return (text := "".join(chance.choices("abcxyzäß€𝄞.-_", k=length))), text
    assert field.kind in ("bytes", "records")
    return (data := chance.randbytes(length)), data


def as_time(kafka_type: str, milliseconds: int) -> Any:
    if kafka_type == "datetime_i64":
        return datetime.datetime.fromtimestamp(milliseconds / 1000, datetime.UTC)
    return datetime.timedelta(milliseconds=milliseconds)


def written(write: Any, twin: Any) -> bytes:
    out = bytearray()

    class Sink:
        write = staticmethod(out.extend)

    write(Sink, twin)
    return bytes(out)
