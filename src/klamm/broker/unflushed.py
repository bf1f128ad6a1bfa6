"""Which partitions have to be brought to disk, and when.

With `flush.messages` a partition has to be when so many records wait, with `flush.ms` when the first of them has waited
so long; a segment that was rolled has to be at once, as in Kafka, so that recovery stays short. A log of which
everything is on disk never has to: a partition without records has not even a directory.
"""

from heapq import heappop, heappush
from itertools import count

from klamm.ids import Now
from klamm.log.log import Log
from klamm.log.settings import FOREVER_MS
from klamm.partition.partition import Partition


class Unflushed:
    def __init__(self) -> None:
        self._now: dict[Partition, None] = {}
        self._due_ms: dict[Partition, float] = {}
        self._by_time: list[tuple[float, int, Partition]] = []
        """Also with times that are not in `_due_ms` any more."""
        self._numbers = count()

    def note(self, partition: Partition, now: Now) -> None:
        """It grew, was flushed, or has other settings."""
        log, settings = partition.log, partition.log.settings
        if not has_unflushed(log):
            self._due_ms.pop(partition, None)
        elif log.has_unflushed_segments or log.end_offset - log.recovery_point >= settings.flush_messages:
            self._now[partition] = None
        elif settings.flush_ms < FOREVER_MS:
            due_ms = now.monotonic_ms + settings.flush_ms
            if due_ms < self._due_ms.get(partition, FOREVER_MS):
                self._due_ms[partition] = due_ms
                heappush(self._by_time, (due_ms, next(self._numbers), partition))

    def take(self, now: Now) -> list[Partition]:
        """Those that have to be brought to disk now."""
        while (due_ms := self.next_due_ms()) is not None and due_ms <= now.monotonic_ms:
            partition = heappop(self._by_time)[2]
            del self._due_ms[partition]
            self._now[partition] = None
        if not self._now:
            return []
        unflushed, self._now = self._now, {}
        return [each for each in unflushed if is_sound(each) and has_unflushed(each.log)]

    def next_due_ms(self) -> float | None:
        by_time = self._by_time
        while by_time and self._due_ms.get(by_time[0][2]) != by_time[0][0]:
            heappop(by_time)
        return by_time[0][0] if by_time else None


def is_sound(partition: Partition) -> bool:
    """What failed is never flushed again: the system may have dropped what it could not write."""
    return partition.failure is None and not partition.deleted


def has_unflushed(log: Log) -> bool:
    return log.recovery_point < log.end_offset or log.has_unflushed_segments
