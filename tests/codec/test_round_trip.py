"""What is written is read again, for every message in every version, without any referee."""

from random import Random

import pytest

from klamm.codec.compiler import decode, encode
from klamm.wire.apis import API_BY_KEY
from tests.codec.drawing import drawn, every_message

BY_KEY = {key: [(cls, version) for k, cls, version in every_message() if k == key] for key in API_BY_KEY}


@pytest.mark.parametrize("key", API_BY_KEY, ids=lambda key: API_BY_KEY[key].name)
def test_every_version_comes_back(key: int) -> None:
    for cls, version in BY_KEY[key]:
        chance = Random(f"{cls.__name__} {version}")
        for value in [cls(), *(drawn(chance, cls, version) for _ in range(4))]:
            data = encode(value, version)
            assert decode(cls, version, data, exact=True) == value
            assert decode(cls, version, memoryview(data)) == value


def test_one_value_can_be_written_in_every_version() -> None:
    """A response is built once, whatever the client speaks: fields its version lacks are left out."""
    for key, versions in BY_KEY.items():
        newest = API_BY_KEY[key].max_version
        values = {cls: drawn(Random(key), cls, newest) for cls, version in versions if version == newest}
        for cls, version in versions:
            assert isinstance(decode(cls, version, encode(without_nulls(values[cls]), version), exact=True), cls)


def without_nulls(value: object) -> object:
    """The same with empty values for nulls, because not every version has null where the newest one has."""
    empty = {"string": "", "bytes": b"", "records": b"", "array": []}
    for field in type(value).__schema__.fields:  # type: ignore[attr-defined]
        inner = getattr(value, field.name)
        if inner is None:
            setattr(value, field.name, field.struct() if field.kind == "struct" else empty[field.kind])
        elif field.kind == "array" and field.structs:
            setattr(value, field.name, [without_nulls(item) for item in inner])
        elif field.kind == "struct" and inner is not field.default:
            without_nulls(inner)
    return value
