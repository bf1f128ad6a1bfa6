"""Offsets by time, for ListOffsets. One batch is decoded, everything before it is found by indexes and headers."""

from klamm.ids import Epoch, Offset
from klamm.log.segment import Segment
from klamm.log.walking import batch_at, headers, time_of
from klamm.records.record import records_of


def offset_for_time(
    segments: list[Segment], start_offset: Offset, timestamp_ms: int
) -> tuple[Offset, int, Epoch] | None:
    """The first record at or after the time: its offset, its time, its leader epoch."""
    for segment in segments:
        place = segment.place_of_time(timestamp_ms)
        if place is None:
            continue
        for position, header in headers(segment.log, place.position, segment.base_offset):
            if time_of(header) >= timestamp_ms and header.next_offset > start_offset:
                batch, data = batch_at(segment.log, position)
                for record in records_of(data):
                    if record.timestamp >= timestamp_ms and record.offset >= start_offset:
                        return record.offset, record.timestamp, batch.leader_epoch
    return None


def offset_of_max_timestamp(segments: list[Segment], start_offset: Offset) -> tuple[Offset, int, Epoch] | None:
    """The first of the youngest records, in the same form."""
    youngest = max((_max_timestamp(segment, start_offset) for segment in segments), default=-1)
    return offset_for_time(segments, start_offset, youngest) if youngest >= 0 else None


def _max_timestamp(segment: Segment, start_offset: Offset) -> int:
    """Only of records that are still part of the log."""
    if start_offset <= segment.base_offset:
        return segment.max_timestamp
    place = segment.place_of(start_offset)
    if place is None:
        return -1
    first, data = batch_at(segment.log, place.position)
    times = [record.timestamp for record in records_of(data) if record.offset >= start_offset]
    rest = headers(segment.log, place.position + first.size_bytes, first.next_offset)
    return max([*times, *(time_of(batch) for _, batch in rest)], default=-1)
