"""Small frames that ask for much: one array of a request multiplied until the frame is as large as allowed.

Every array of every API is multiplied, in its oldest and newest version and at the border to flexible ones; its
elements all the same (a name that exists, one that does not) or all different. The rest of the request is as short as
can be and means something, so that it gets past the first `if` of its handler.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from klamm.codec.compiler import encode
from klamm.codec.generated import objects
from klamm.codec.schema import Field, schema_of
from klamm.handlers import TABLE
from klamm.wire.apis import API_BY_KEY, API_VERSIONS, request_type
from klamm.wire.frames import encoded_request

TOPIC, GROUP, NOWHERE = "wide", "crowd", "nowhere"
"""A topic with many partitions and a group with many members, which exist, and a name that nothing has."""

SAME, UNKNOWN, DISTINCT = "same", "unknown", "distinct"
KINDS = (SAME, UNKNOWN, DISTINCT)

MEANT: dict[str, Any] = {
    "acks": 1,
    "timeout_ms": 100,
    "max_wait_ms": 0,
    "min_bytes": 0,
    "max_bytes": 1_000_000,
    "partition_max_bytes": 1_000_000,
    "session_epoch": -1,
    "replica_id": -1,
    "num_partitions": 1,
    "replication_factor": 1,
    "resource_type": 2,
    "resource_types": 2,
    "session_timeout_ms": 10_000,
    "rebalance_timeout_ms": 10_000,
    "protocol_type": "consumer",
    "member_epoch": 0,
    "timestamp": -1,
    "current_leader_epoch": -1,
    "generation_id": -1,
    "generation_id_or_member_epoch": -1,
    "client_software_name": "a",
    "client_software_version": "1",
    "response_partition_limit": 2000,
    "count": 2001,
}
OF_TOPICS = {"name", "topic", "topic_name", "topic_names", "topics", "resource_name", "subscribed_topic_names"}
OF_GROUPS = {"group_id", "group", "groups", "groups_names", "coordinator_keys", "key", "group_ids"}
NUMBERS = {"partition", "partitions", "partition_index", "partition_indexes", "partition_id", "index", "broker_ids"}


@dataclass(frozen=True, slots=True)
class Multiplied:
    """One frame, without its size."""

    api: int
    version: int
    path: str
    kind: str
    count: int
    objects: int
    """What the elements cost of a request's budget."""
    body: bytes

    def __str__(self) -> str:
        return f"{API_BY_KEY[self.api].name} v{self.version} {self.path} x {self.count} {self.kind}"


def versions_of_interest(key: int) -> list[int]:
    api = API_BY_KEY[key]
    versions = {api.min_version, api.max_version}
    if api.min_version < api.flexible_from <= api.max_version:
        versions.add(api.flexible_from - 1)
    return sorted(versions)


def frames(
    most_bytes: int, topic_id: bytes, keys: list[int] | None = None, kinds: tuple[str, ...] = KINDS
) -> Iterator[Multiplied]:
    for key in sorted(TABLE) if keys is None else keys:
        for version in versions_of_interest(key):
            if key == API_VERSIONS and version > 3:
                continue
            for path in array_paths(request_type(key), version):
                for kind in kinds:
                    frame = multiplied(key, version, path, kind, most_bytes, topic_id)
                    if frame is not None:
                        yield frame


def array_paths(cls: type, version: int, before: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Where arrays are in a message of this version, those within others behind them."""
    for field in schema_of(cls).fields:
        if version not in field.versions:
            continue
        path = (*before, field.name)
        if field.kind == "array":
            yield path
        for within in field.structs:
            yield from array_paths(within, version, path)


def multiplied(
    key: int, version: int, path: tuple[str, ...], kind: str, most_bytes: int, topic_id: bytes
) -> Multiplied | None:
    """The request with this array as long as the frame may be, or None if its elements cannot be told apart."""
    maker = _Maker(version, path, kind, topic_id)
    one, two = maker.size(key, 1), maker.size(key, 2)
    if kind == DISTINCT:
        two = (
            one + (len(encode(maker.request(key, 200), version)) - len(encode(maker.request(key, 100), version))) // 100
        )
        if maker.element(0) == maker.element(1):
            return None
    count = max(1, (most_bytes - one - 64) // max(1, two - one))
    while True:
        pieces = encoded_request(API_BY_KEY[key], version, 7, "m", maker.request(key, count))
        body = b"".join(map(bytes, pieces))[4:]
        if len(body) <= most_bytes:
            return Multiplied(key, version, ".".join(path), kind, count, count * maker.objects_each(key), body)
        count = count * 95 // 100


class _Maker:
    def __init__(self, version: int, path: tuple[str, ...], kind: str, topic_id: bytes) -> None:
        self._version = version
        self._path = path
        self._kind = kind
        self._topic_id = topic_id
        self._field: Field | None = None

    def request(self, key: int, count: int) -> Any:
        return self._structure(request_type(key), self._path, count, None)

    def size(self, key: int, count: int) -> int:
        return len(encode(self.request(key, count), self._version))

    def objects_each(self, key: int) -> int:
        assert self._field is not None and isinstance(self._field.of, Field)
        return objects(self._field.of, self._version, self._version >= API_BY_KEY[key].flexible_from)

    def element(self, number: int) -> Any:
        """The one with this number."""
        assert self._field is not None
        return self._of(self._field, number)

    def _structure(self, cls: type, path: tuple[str, ...], count: int, number: int | None) -> Any:
        """`number` says which of the multiplied elements it is."""
        values = {}
        for field in schema_of(cls).fields:
            if self._version not in field.versions:
                continue
            on_path = bool(path) and field.name == path[0]
            if self._version in field.tagged and not on_path:
                continue
            values[field.name] = self._value(field, path[1:] if on_path else (), on_path, count, number)
        return cls(**values)

    def _value(self, field: Field, path: tuple[str, ...], on_path: bool, count: int, number: int | None) -> Any:
        if field.kind == "array":
            assert isinstance(field.of, Field)
            if on_path and not path:
                self._field = field
                if self._kind == DISTINCT:
                    return [self._of(field, each) for each in range(count)]
                return [self._of(field, None)] * count
            if on_path or number is None:
                inner = field.of
                if inner.kind == "struct":
                    return [self._structure(inner.struct, path, count, number)]
                return [self._simple(field.name, inner, number)]
            return []
        if field.kind == "struct":
            return self._structure(field.struct, path, count, number)
        return self._simple(field.name, field, number)

    def _of(self, field: Field, number: int | None) -> Any:
        inner = field.of
        assert isinstance(inner, Field)
        if inner.kind == "struct":
            return self._structure(inner.struct, (), 1, number)
        return self._simple(field.name, inner, number)

    def _simple(self, name: str, field: Field, number: int | None) -> Any:
        nobody = self._kind == UNKNOWN
        if field.kind == "string":
            if number is not None and (name in OF_TOPICS or name in OF_GROUPS or name.endswith(("name", "_id", "key"))):
                return f"{number:x}"
            if name in OF_TOPICS:
                return NOWHERE if nobody else TOPIC
            if name in OF_GROUPS:
                return NOWHERE if nobody else GROUP
            if self._version in field.nullable:
                return None
            return MEANT.get(name, "")
        if field.kind == "uuid":
            if number is not None:
                return number.to_bytes(16, "big")
            return bytes(15) + b"\7" if nobody else self._topic_id
        if field.kind in ("records", "bytes"):
            return None if self._version in field.nullable else b""
        if field.kind == "boolean":
            return True
        if (
            number is not None
            and field.kind == "int32"
            and name
            in ("partition", "partitions", "partition_index", "index", "partition_indexes", "broker_ids", "key_type")
        ):
            return number
        if number is not None and name == "partition_id":
            return number
        return MEANT.get(name, 0) if field.kind != "float64" else 0.0
