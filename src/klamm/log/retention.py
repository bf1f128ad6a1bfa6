"""Which segments have outlived their topic's retention.

Segments go from the oldest on, whole, and only below the high watermark. One goes because the log begins after it
(DeleteRecords), or, on topics that delete, because its youngest record is older than `retention.ms` or because the log
would be no smaller than `retention.bytes` without it. Even the active segment may go; an empty one then takes its
place.
"""

from typing import TYPE_CHECKING

from klamm.facts import Fact

if TYPE_CHECKING:
    from klamm.log.log import Log
    from klamm.log.segment import Segment


class SegmentDeleted(Fact):
    directory: str
    base_offset: int
    size_bytes: int
    reason: str

    def __str__(self) -> str:
        return f"{self.directory}: deleted segment {self.base_offset} of {self.size_bytes} bytes, {self.reason}"


def expired(log: "Log", now_ms: int, high_watermark: int) -> "list[tuple[Segment, str]]":
    """The segments to delete, oldest first, each with its reason."""
    settings = log.settings
    excess_bytes = log.size_bytes - settings.retention_bytes if settings.retention_bytes >= 0 else -1
    found = []
    for segment, end_offset in log.segments.from_offset(0, log.end_offset):
        if end_offset > high_watermark or segment.size == 0:
            break
        if log.start_offset >= end_offset:
            reason = f"the log begins at {log.start_offset}"
        elif settings.delete and excess_bytes >= segment.size:
            reason = f"the log is {excess_bytes} bytes over retention.bytes"
        elif settings.delete and 0 <= settings.retention_ms < now_ms - segment.largest_timestamp_ms:
            reason = f"all of it is older than retention.ms={settings.retention_ms}"
        else:
            break
        excess_bytes -= segment.size
        found.append((segment, reason))
    return found
