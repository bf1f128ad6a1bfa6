"""Leader epochs along the log: at which offset each began.

Epochs and their start offsets both grow. An epoch ends where the next one begins, the latest where the log ends; that
is how a follower learns where its history parts from the leader's, and it truncates there (KIP-101, KIP-279).

The file `leader-epoch-checkpoint` is written when the log is flushed. It may be lost or stale: the batches carry their
epochs, and recovery reads them again. Of a log that is compacted only the file knows all of it, and is kept on disk.
"""

from bisect import bisect_right

from klamm.ids import NO_EPOCH, NO_OFFSET, Epoch, Offset


class EpochCache:
    __slots__ = ("_epochs", "_starts", "changed", "latest")

    def __init__(self, entries: list[tuple[Epoch, Offset]] | None = None) -> None:
        self._epochs = [epoch for epoch, _ in entries or ()]
        self._starts = [start for _, start in entries or ()]
        self.latest: Epoch = self._epochs[-1] if self._epochs else NO_EPOCH
        self.changed = False
        """Since the file was written."""

    def assign(self, epoch: Epoch, start_offset: Offset) -> None:
        """From this offset on the log is of this epoch. Without effect for an epoch that has begun."""
        assert epoch >= 0 and start_offset >= 0
        if epoch == self.latest and start_offset >= self._starts[-1]:
            return
        # An epoch in which nothing was written leaves no trace; a later one takes its place.
        while self._epochs and (self._epochs[-1] >= epoch or self._starts[-1] >= start_offset):
            self._drop_last()
        self._epochs.append(epoch)
        self._starts.append(start_offset)
        self._settle()

    def begin_after(self, end_offset: Offset, epoch: Epoch) -> None:
        """A batch of this epoch follows on what ended here, perhaps after a gap that compaction left. Where in the gap
        the epoch began nobody can tell any more: the earliest place is assumed. Else somebody who has records of an
        older epoch there, which were never committed, would be told to keep them. Who has the right ones gives up what
        is compacted anyway."""
        if epoch > self.latest:
            self.assign(epoch, end_offset)

    def end_offset_of(self, epoch: Epoch, log_end_offset: Offset) -> tuple[Epoch, Offset]:
        """The largest epoch at or below this one, and where it ended: the answer to OffsetForLeaderEpoch.

        (-1, -1) if the epoch is unknown because it is larger than any here. For one that is older than all, its own
        number and where the oldest began: what it wrote is gone, and a follower may begin there.
        """
        if epoch == NO_EPOCH or epoch > self.latest:
            return NO_EPOCH, NO_OFFSET
        if epoch == self.latest:
            return epoch, log_end_offset
        number = bisect_right(self._epochs, epoch)
        return (self._epochs[number - 1] if number else epoch), self._starts[number]

    def epoch_at(self, offset: Offset) -> Epoch:
        """-1 before the first epoch known."""
        number = bisect_right(self._starts, offset)
        return self._epochs[number - 1] if number else NO_EPOCH

    def truncate_from_end(self, end_offset: Offset) -> None:
        """Forget epochs that began at or after the log's new end."""
        while self._starts and self._starts[-1] >= end_offset:
            self._drop_last()
            self._settle()

    def truncate_from_start(self, start_offset: Offset) -> None:
        """The log now begins here, in the middle of an epoch perhaps, which then begins here too."""
        number = bisect_right(self._starts, start_offset) - 1
        if number < 0 or (number == 0 and self._starts[0] == start_offset):
            return
        del self._epochs[:number], self._starts[:number]
        self._starts[0] = start_offset
        self._settle()

    def clear(self) -> None:
        self._epochs.clear()
        self._starts.clear()
        self._settle()

    def entries(self) -> list[tuple[Epoch, Offset]]:
        return list(zip(self._epochs, self._starts, strict=True))

    def _drop_last(self) -> None:
        self._epochs.pop()
        self._starts.pop()

    def _settle(self) -> None:
        self.latest = self._epochs[-1] if self._epochs else NO_EPOCH
        self.changed = True

    def __repr__(self) -> str:
        return f"<epochs {' '.join(f'{epoch}@{start}' for epoch, start in self.entries())}>"
