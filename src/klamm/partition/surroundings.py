"""What every partition of a broker has to know of the other brokers: who is active, and how late a follower may be.

One such object is shared by all partitions of a broker, which keeps it up to date as the metadata moves on.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from klamm.ids import BrokerId
from klamm.log.files import DiskFailed

if TYPE_CHECKING:
    from klamm.partition.partition import Partition

DEFAULT_MAX_LAG_MS = 30_000.0


class Surroundings:
    __slots__ = ("active", "disk_failed", "max_lag_ms", "readers_may_follow", "wants_isr_look")

    def __init__(self, wants_isr_look: "Callable[[Partition], None] | None" = None) -> None:
        self.active: dict[BrokerId, int] = {}
        """The brokers that may be counted in sync (registered, not fenced, not about to stop), with their epochs."""
        self.max_lag_ms = DEFAULT_MAX_LAG_MS
        """`replica.lag.time.max.ms`: a follower that has not caught up for so long is not in sync."""
        self.readers_may_follow = False
        """Whether consumers are sent to followers (KIP-392). Then followers have to hear of the watermark at once."""
        self.wants_isr_look = wants_isr_look or _nobody_looks
        """Told of a partition whose in-sync replicas may have to change."""
        self.disk_failed: Callable[[DiskFailed], None] = _nobody_counts
        """Told of whatever the disk refused to a partition."""


def _nobody_looks(partition: "Partition") -> None:
    pass


def _nobody_counts(error: DiskFailed) -> None:
    pass
