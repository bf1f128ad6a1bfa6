"""Reading: whole batches from an offset on, as regions of a file.

A slice begins with the batch that holds the offset asked for, so it may begin before it, and ends with a batch that
ends at or before `up_to_offset`. It never ends inside a batch. Kafka's may, and clients cope, but here a boundary costs
next to nothing: at the end of the log it is remembered, elsewhere it is an index entry, for these always point to a
batch. So a slice may be a few kilobytes shorter than allowed.

One slice comes from one segment. Who wants more asks again.
"""

from klamm.log.files import Region
from klamm.log.segment import Place, Segment
from klamm.log.walking import step_at


class LogSlice:
    __slots__ = ("first_offset", "next_offset", "regions", "size")

    def __init__(self, regions: list[Region], size: int, first_offset: int, next_offset: int) -> None:
        self.regions = regions
        self.size = size
        self.first_offset = first_offset
        """No record before this offset is in the slice."""
        self.next_offset = next_offset
        """No record at or after this offset is in the slice."""

    def __bytes__(self) -> bytes:
        return b"".join(bytes(region) for region in self.regions)

    def __repr__(self) -> str:
        return f"<slice {self.first_offset}..{self.next_offset} {self.size} bytes>"


def empty_slice(offset: int) -> LogSlice:
    return LogSlice([], 0, offset, offset)


def slice_of(
    segment: Segment, offset: int, max_bytes: int, up_to_offset: int, end_offset: int, *, at_least_one: bool
) -> LogSlice | None:
    """From one segment, whose last batch ends at or before `end_offset`; None if it holds nothing at or after the
    offset."""
    start = segment.place_of(offset)
    if start is None:
        return None
    end = Place(segment.size, end_offset)
    if up_to_offset < end_offset:
        end = segment.place_of(up_to_offset) or Place(segment.size, up_to_offset)
    if end.position <= start.position:
        return empty_slice(offset)
    if end.position - start.position > max_bytes:
        end = segment.boundary(start.position, max_bytes) or _first_batch(segment, start, at_least_one=at_least_one)
        if end.position == start.position:
            return empty_slice(offset)
    segment.confirm(start, end)
    segment.remember(end)
    size = end.position - start.position
    return LogSlice([segment.log.region(start.position, size)], size, start.offset, end.offset)


def _first_batch(segment: Segment, start: Place, *, at_least_one: bool) -> Place:
    """A batch larger than what was asked for is given whole rather than never (KIP-74)."""
    if not at_least_one:
        return start
    step = step_at(segment.log, start.position)
    return Place(step.end, step.next_offset)
