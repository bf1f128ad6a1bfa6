"""What no start reads: the ends of older segments, looked at once after it, one segment a slice.

A segment begins where the one before ends, also in a log that was compacted: the last batch of each segment stays. So
an older segment that ends earlier has lost records. Readers would pass over them without a word. It is told and
counted; nothing is cut or mended here. Damage further in shows when it is read.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from klamm.broker.facts import RecordsMissingWithin, SegmentDamaged
from klamm.facts import Tell
from klamm.ids import Now, Offset
from klamm.log.files import DiskFailed
from klamm.log.segment import Segment
from klamm.log.walking import Damaged
from klamm.partition.partition import Partition

if TYPE_CHECKING:
    from klamm.broker.broker import Broker


class SegmentEnds:
    def __init__(self, broker: "Broker", tell: Tell) -> None:
        self._broker = broker
        self._tell = tell
        self._is_done = False

    def look(self, now: Now) -> Iterator[float]:
        """A chore."""
        if self._is_done or not self._broker.is_open:
            return
        self._is_done = True
        for partition in self._broker.partitions.in_any_order():
            for segment, end_offset in partition.log.segments.closed():
                # It may have been deleted or replaced since the last slice.
                if segment in partition.log.segments.all and end_offset > partition.log.start_offset:
                    self._look_at(partition, segment, end_offset)
                    yield 0.0

    def _look_at(self, partition: Partition, segment: Segment, end_offset: Offset) -> None:
        if partition.failure is not None or partition.deleted:
            return
        name = str(partition.topic_partition)
        try:
            last = segment.load_end()
            found = last.next_offset if last is not None else segment.base_offset
            segment.rest()
        except DiskFailed as error:
            self._broker.disk_failed(partition, error)
        except Damaged as damage:
            self._tell(SegmentDamaged(name, str(damage)))
        else:
            if found > end_offset:
                reason = f"{segment.log.path} ends at offset {found}, and the next segment begins at {end_offset}"
                self._tell(SegmentDamaged(name, reason))
            elif found < end_offset:
                self._broker.partitions.missing_records += end_offset - found
                self._tell(RecordsMissingWithin(name, found, end_offset))
