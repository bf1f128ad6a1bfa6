"""Following: a follower's log becomes its leader's, record by record, at the same offsets.

Where histories part they are joined again by epoch, never by watermark: the follower tells the epoch of its last
record, and a leader in whose log that epoch ended earlier, or never was, answers with the largest epoch at or below it
and where that one ended. The follower keeps what it has of that epoch, up to there, and asks again (KIP-279: several
such steps may be needed, for each may name an epoch that the follower never had).
"""

from klamm.ids import Epoch, Offset
from klamm.log.log import Log


def agreed_end(log: Log, leaders_epoch: Epoch, leaders_end: Offset) -> Offset:
    """How far this log may be the leader's, whose epochs at or below ours are `leaders_epoch`, which ended at
    `leaders_end`, and older ones."""
    own_epoch, own_end = log.end_offset_for_epoch(leaders_epoch)
    if own_epoch < 0:
        # This log is of older epochs only, or of none that it knows.
        return min(leaders_end, log.end_offset)
    if own_epoch != leaders_epoch:
        # It has nothing of that epoch. What it has of an older one may be there, or may not: the next answer tells.
        return min(own_end, log.end_offset)
    return min(own_end, leaders_end, log.end_offset)
