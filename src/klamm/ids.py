"""The nouns everybody shares: topics' ids, partitions, offsets, epochs, and the moment a step happens.

Offsets, epochs and broker ids are plain ints with a name, because they are computed with on every hot path. A topic
id is its sixteen raw bytes; people see it in the url-safe base64 that Kafka's tools print.
"""

import base64
from random import Random
from typing import NamedTuple, TypeAlias

Offset: TypeAlias = int
Epoch: TypeAlias = int
BrokerId: TypeAlias = int
ProducerId: TypeAlias = int
Uuid: TypeAlias = bytes
Bytes: TypeAlias = bytes | bytearray | memoryview

NO_OFFSET: Offset = -1
NO_EPOCH: Epoch = -1
NO_BROKER: BrokerId = -1
NO_PRODUCER: ProducerId = -1
ZERO_UUID: Uuid = bytes(16)


class TopicPartition(NamedTuple):
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class Now(NamedTuple):
    """The moment of a step: timers use `monotonic_ms`, which never jumps; records carry `wall_ms`."""

    monotonic_ms: float
    wall_ms: int


def drawn_uuid(random: Random) -> Uuid:
    """A random (version 4) id that prints without a leading dash, which tools would take for an option."""
    while True:
        raw = bytearray(random.getrandbits(128).to_bytes(16, "big"))
        raw[6] = raw[6] & 0x0F | 0x40
        raw[8] = raw[8] & 0x3F | 0x80
        if not uuid_text(bytes(raw)).startswith("-"):
            return bytes(raw)


def uuid_text(uuid: Uuid) -> str:
    return base64.urlsafe_b64encode(uuid).decode().rstrip("=")


def uuid_from_text(text: str) -> Uuid:
    raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    if len(raw) != 16:
        raise ValueError(f"{text!r} is not an id of 16 bytes")
    return raw
