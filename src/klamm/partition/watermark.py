"""The high watermark is the smallest end offset among the in-sync replicas. Under one leader it only moves forward."""

from collections.abc import Iterable

from klamm.ids import Offset


def committed_offset(in_sync_ends: Iterable[Offset]) -> Offset:
    """Everything below this is held by every in-sync replica."""
    return min(in_sync_ends)


def followers_watermark(leaders: Offset, own_end: Offset) -> Offset:
    """What a follower knows to be committed: what its leader says, as far as it holds it."""
    return min(leaders, own_end)
