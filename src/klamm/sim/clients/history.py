"""What clients did, were told and saw: the ground on which the client's view of the promises is judged.

Every record's value is unique. A topic is known by its id: what was written to one that was deleted since is nobody's
loss, and must not be seen under its successor.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum

from klamm.ids import Offset, Uuid

Key = tuple[Uuid, int]


class Fate(IntEnum):
    """What a producer knows of a record in the end."""

    UNKNOWN = 0
    """It was sent, and nobody said what became of it."""
    ACKNOWLEDGED = 1
    REFUSED = 2
    """It is certainly not there."""


@dataclass(slots=True)
class Written:
    """One record of a producer."""

    value: bytes
    producer: str
    number: int
    """The how-manieth of this producer in this partition."""
    key: Key
    acks: int
    is_idempotent: bool
    record_key: bytes | None = None
    is_tombstone: bool = False
    """Then it has no value on the wire, and its name stands in a header."""
    made_ms: float = 0.0
    """When it was made; its timestamp is no earlier."""
    fate: Fate = Fate.UNKNOWN
    offset: Offset = -1


@dataclass(slots=True)
class History:
    written: dict[bytes, Written] = field(default_factory=dict)
    seen: dict[Key, dict[Offset, bytes]] = field(default_factory=dict)
    """What readers were given, by offset."""
    acknowledged: dict[Key, dict[Offset, bytes]] = field(default_factory=dict)
    """What producers were told, by offset."""
    on_seen: Callable[[str, Key, Offset, bytes], None] = lambda reader, key, offset, value: None
    on_acknowledged: Callable[[Written], None] = lambda record: None
    on_gap: Callable[[str, Key, Offset, Offset], None] = lambda reader, key, wanted, given: None
    """A reader asked from one offset on and was given the record at a later one."""
    on_cut: Callable[[str, Key, Offset, Offset], None] = lambda reader, key, offset, end: None
    """A reader was told that what it read beyond `end` is not there any more."""
    on_beyond: Callable[[str, Key, Offset], None] = lambda reader, key, offset: None
    """The same, told as an offset out of range."""
    on_moved: Callable[[str, Key, Offset], None] = lambda reader, key, start: None
    """A reader was told that the partition begins after where it was."""
    reads: int = 0

    def sent(self, record: Written) -> None:
        self.written[record.value] = record

    def was_acknowledged(self, record: Written, offset: Offset) -> None:
        record.fate = Fate.ACKNOWLEDGED
        record.offset = offset
        self.on_acknowledged(record)
        if offset >= 0:
            self.acknowledged.setdefault(record.key, {})[offset] = record.value

    def was_seen(self, reader: str, key: Key, offset: Offset, value: bytes) -> None:
        self.reads += 1
        self.on_seen(reader, key, offset, value)
        self.seen.setdefault(key, {}).setdefault(offset, value)
