"""Following: a follower's log becomes its leader's, record by record, at the same offsets.

Where histories part they are joined again by epoch, never by watermark: the follower tells the epoch of its last
record, and a leader in whose log that epoch ended earlier, or never was, answers with the largest epoch at or below it
and where that one ended. The follower keeps what it has of that epoch, up to there, and asks again (KIP-279: several
such steps may be needed, for each may name an epoch that the follower never had).
"""

from klamm.ids import Epoch, Offset
from klamm.log.log import Log


def agreed_end(log: Log, leaders_epoch: Epoch, leaders_end: Offset) -> Offset:
    """How far this log may be the leader's, in which `leaders_epoch` is the largest at or below our last one and ended
    at `leaders_end`. What we have after that is of an epoch that the leader has not, or not there."""
    own_epoch, own_end = log.end_offset_for_epoch(leaders_epoch)
    if own_epoch < 0:
        # This log has records of older epochs only, or none.
        own_end = log.end_offset
    return min(own_end, leaders_end, log.end_offset)
