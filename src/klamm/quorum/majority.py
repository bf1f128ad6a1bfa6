"""What a majority holds is committed, and stays committed: any later majority shares a voter with this one."""

from collections.abc import Iterable

from klamm.ids import Offset


def committed_offset(flushed_ends: Iterable[Offset]) -> Offset:
    """Everything below it is on the disks of more than half of the voters, given each voter's end of flushed log."""
    ends = sorted(flushed_ends, reverse=True)
    assert ends, "a quorum has voters"
    return ends[len(ends) // 2]
