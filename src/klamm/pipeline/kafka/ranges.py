"""A piece of one partition, from an offset up to another: what one task reads."""

from dataclasses import dataclass

from klamm.ids import ZERO_UUID, Uuid


@dataclass(frozen=True, slots=True)
class Range:
    """Offsets from `start` up to but not including `end`. With a topic id nothing of a namesake is ever read."""

    topic: str
    partition: int
    start: int
    end: int
    topic_id: Uuid = ZERO_UUID
    may_begin_later: bool = False
    """It was asked for from the earliest offset on: what retention takes in the meantime is not missed."""

    @property
    def size(self) -> int:
        return self.end - self.start

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition} {self.start}..{self.end - 1}"
