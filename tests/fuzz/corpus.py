"""Right requests to begin with: every API that is served, every version, with values that mean something.

A request that names topics, partitions, sessions and settings that exist gets past the first `if` of its handler;
mutated, it reaches what random bytes never would. One value in eight is wild all the same.
"""

from collections import deque
from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

from klamm.codec.schema import Field, schema_of
from klamm.handlers import TABLE
from klamm.records.builder import BatchBuilder
from klamm.records.compression import Codec
from klamm.wire.apis import API_BY_KEY, request_type
from klamm.wire.frames import encoded_request
from tests.codec.drawing import SIMPLE

TOPICS = tuple(f"fuzz-{number}" for number in range(6))
"""The topics that are always there; others come and go."""

PRODUCE, FETCH = 0, 1
LONGEST_BYTES = 4_000
"""Of a drawn request, so that many go through in a second; mutations may make it longer."""

WILD = 0.12
SIZE_OF_THE_STOCK = 1_500
SOME_DAY_MS = 1_790_000_000_000
"""Where nobody says what time it is, so that a seed draws the same bytes every day."""

COMING_AND_GOING = tuple(f"new-{number}" for number in range(8))
STRANGE_NAMES = ("", ".", "..", "a" * 249, "a" * 250, "__cluster_metadata", "new_0", "new.0", "x\ny", "0")
SETTINGS_OF_TOPICS = {
    "retention.ms": ("-1", "1000", "604800000"),
    "retention.bytes": ("-1", "0", "100000"),
    "cleanup.policy": ("delete", "compact", "compact,delete"),
    "compression.type": ("producer", "gzip", "snappy", "lz4", "zstd", "uncompressed"),
    "max.message.bytes": ("1048588", "1000", "0"),
    "segment.bytes": ("1048576", "100000000"),
    "segment.ms": ("604800000", "10"),
    "message.timestamp.type": ("CreateTime", "LogAppendTime"),
    "message.timestamp.after.max.ms": ("3600000", "0", "9223372036854775807"),
    "min.compaction.lag.ms": ("0", "1000"),
    "min.insync.replicas": ("1", "2"),
    "index.interval.bytes": ("4096", "0"),
    "file.delete.delay.ms": ("60000", "0"),
    "flush.messages": ("9223372036854775807", "1"),
}
SETTINGS_OF_BROKERS = {
    "background.threads": ("10", "0", "20"),
    "num.io.threads": ("8", "4"),
    "log.cleaner.threads": ("1", "2"),
    "node.id": ("7",),
}
"""Harmless ones: a broker that was told to keep nothing does so, to the witness too."""

SETTINGS = {**SETTINGS_OF_TOPICS, **SETTINGS_OF_BROKERS}
STRANGE_VALUES = ("", "x", "-5", "1e9", "999999999999999999999", "true", "a,b,,c", "\0")


UNREGISTER_BROKER = 64


class Frame(NamedTuple):
    """A request with its header, without its size, and where in it record batches stand."""

    body: bytes
    batches: tuple[tuple[int, int], ...] = ()


class Corpus:
    """A stock of requests that is drawn once and renewed as it is used."""

    def __init__(self, chance: Random, now_ms: int = SOME_DAY_MS) -> None:
        self._chance = chance
        self._now_ms = now_ms
        self.topic_ids: list[bytes] = [bytes(16)]
        self.sessions: deque[int] = deque([0], maxlen=20)
        """Fetch sessions that were opened lately; whoever reads the answers may add some."""
        self._apis = [
            (key, version)
            for key in sorted(TABLE)
            # It would be obeyed, and the only broker would go.
            if key != UNREGISTER_BROKER
            for version in range(API_BY_KEY[key].min_version, API_BY_KEY[key].max_version + 1)
        ]
        self._produces = [each for each in self._apis if each[0] == PRODUCE]
        self._fetches = [each for each in self._apis if each[0] == FETCH]
        self._batches = [self._drawn_batch() for _ in range(300)]
        self._stock: list[Frame] = []

    def renew(self) -> None:
        """The topics' ids have changed: begin a new stock."""
        self._stock.clear()

    def frame(self) -> Frame:
        chance = self._chance
        if len(self._stock) < SIZE_OF_THE_STOCK or chance.random() < 0.02:
            frame = self._drawn()
            if len(self._stock) < SIZE_OF_THE_STOCK:
                self._stock.append(frame)
            else:
                self._stock[chance.randrange(SIZE_OF_THE_STOCK)] = frame
            return frame
        return self._stock[int(chance.random() * SIZE_OF_THE_STOCK)]

    def _drawn(self) -> Frame:
        chance = self._chance
        lot = chance.random()
        key, version = chance.choice(self._produces if lot < 0.25 else self._fetches if lot < 0.4 else self._apis)
        while True:
            batches: list[bytes] = []
            request = self._structure(request_type(key), version, batches)
            pieces = encoded_request(API_BY_KEY[key], version, 0, chance.choice((None, "", "fuzz")), request)
            body = b"".join(map(bytes, pieces))[4:]
            if len(body) <= LONGEST_BYTES:
                return Frame(body, tuple(_places(body, batches)))

    # Values.

    def _structure(self, cls: type, version: int, batches: list[bytes]) -> Any:
        value = cls(
            **{
                field.name: self._value(cls, field, version, batches)
                for field in schema_of(cls).fields
                if version in field.versions and not (version in field.tagged and self._chance.random() < 0.4)
            }
        )
        if getattr(value, "name", "") in SETTINGS and hasattr(value, "value") and self._chance.random() < 0.7:
            value.value = self._chance.choice(SETTINGS[value.name])
        return value

    def _value(self, cls: type, field: Field, version: int, batches: list[bytes], name: str = "") -> Any:
        """`name` is the array's, for an element of it, which has none of its own."""
        chance = self._chance
        name = name or field.name
        if version in field.nullable and chance.random() < 0.15 and field.kind != "records":
            return None
        if isinstance(field.of, Field):
            count = chance.choice((0, 1, 1, 1, 2, 3))
            return [self._value(cls, field.of, version, batches, name) for _ in range(count)]
        if field.kind == "struct":
            return self._structure(field.struct, version, batches)
        if field.kind == "records":
            batch = chance.choice(self._batches)
            batches.append(batch)
            return batch
        if chance.random() < WILD and name != "max_wait_ms":
            return SIMPLE[field.kind](chance)
        draw = MEANT.get(name)
        if "Config" in cls.__name__ and name in ("name", "value", "configuration_keys"):
            return self._setting(name)
        return draw(self, chance) if draw is not None else SIMPLE[field.kind](chance)

    def _setting(self, field: str) -> str:
        chance = self._chance
        if field == "value":
            return chance.choice(STRANGE_VALUES)
        return chance.choice(tuple(SETTINGS_OF_TOPICS if chance.random() < 0.9 else SETTINGS_OF_BROKERS))

    def _drawn_batch(self) -> bytes:
        chance = self._chance
        producer = chance.choice((-1, -1, chance.randrange(20)))
        builder = BatchBuilder(
            chance.choice(tuple(Codec)),
            producer_id=producer,
            producer_epoch=-1 if producer < 0 else chance.choice((0, 0, 1)),
            base_sequence=-1 if producer < 0 else chance.choice((0, 0, 1, 2, 5, 2**31 - 1)),
        )
        now_ms = self._now_ms
        for _ in range(chance.choice((1, 1, 2, 3, 10))):
            headers = [("h", b"x"), ("", None)][: chance.randrange(3)]
            key = chance.choice((None, b"k", chance.randbytes(4)))
            value = chance.choice((None, b"", b"value" * 10, chance.randbytes(50)))
            builder.append(key, value, chance.choice((-1, now_ms, now_ms + 10, 0)), headers)
        return bytes(builder.build())


def _places(body: bytes, batches: list[bytes]) -> list[tuple[int, int]]:
    places, position = [], 0
    for batch in batches:
        position = body.index(batch, position)
        places.append((position, position + len(batch)))
        position += len(batch)
    return places


def _topic(corpus: Corpus, chance: Random) -> str:
    lot = chance.random()
    return chance.choice(TOPICS if lot < 0.7 else COMING_AND_GOING if lot < 0.85 else STRANGE_NAMES)


def _one_of(*values: Any) -> Callable[[Corpus, Random], Any]:
    return lambda corpus, chance: chance.choice(values)


MEANT: dict[str, Callable[[Corpus, Random], Any]] = {
    **dict.fromkeys(("name", "topic", "topic_name", "topic_names", "resource_name"), _topic),
    **dict.fromkeys(("partition", "partitions", "partition_index", "index"), _one_of(0, 0, 0, 1, 2, 3, -1)),
    "topic_id": lambda corpus, chance: chance.choice(corpus.topic_ids),
    "session_id": lambda corpus, chance: chance.choice(corpus.sessions),
    "session_epoch": _one_of(-1, 0, 0, 1, 2),
    "acks": _one_of(-1, 1, 1, 1, 0),
    "timeout_ms": _one_of(0, 10, 100, 1000),
    "max_wait_ms": _one_of(0, 0, 1, 3),
    "min_bytes": _one_of(0, 1, 1, 1000, 10**9),
    "max_bytes": _one_of(0, 1000, 1_000_000),
    "partition_max_bytes": _one_of(0, 1000, 1_000_000),
    "fetch_offset": _one_of(0, 0, 1, 10, 100, -1),
    "offset": _one_of(-1, 0, 1, 2, 10),
    "timestamp": _one_of(-1, -2, -3, -4, -5, -6, 0, 1_700_000_000_000),
    "current_leader_epoch": _one_of(-1, -1, 0, 1),
    "last_fetched_epoch": _one_of(-1, -1, 0, 1),
    "leader_epoch": _one_of(0, 1, -1),
    "replica_id": _one_of(-1, -1, 0, 1),
    "isolation_level": _one_of(0, 1),
    "num_partitions": _one_of(-1, 1, 2, 3),
    "replication_factor": _one_of(-1, 1, 1, 2),
    "broker_ids": _one_of(0, 0, 0, 1),
    "count": _one_of(1, 2, 3, 4, 6),
    "resource_type": _one_of(2, 2, 2, 4, 8, 16),
    "resource_types": _one_of(2, 4, 8, 16, 32),
    "config_operation": _one_of(0, 1, 2, 3),
    "key_type": _one_of(0, 1, 2),
    "endpoint_type": _one_of(1, 1, 2),
    "client_software_name": _one_of("fuzz", "a-b.c", ""),
    "client_software_version": _one_of("1", "1.2.3"),
    "transactional_id": _one_of(None, None, "t"),
    "producer_id": _one_of(-1, -1, 5),
    "producer_epoch": _one_of(-1, -1, 0),
    "response_partition_limit": _one_of(1, 2, 2000, 0, -1),
    "key": _one_of("group", ""),
    "coordinator_keys": _one_of("group", ""),
    "rack_id": _one_of("", "R1"),
    "cluster_id": _one_of("", "x"),
}
