"""What is committed becomes this node's image, batch after batch, in slices.

A batch of ten thousand records, or a snapshot of a hundred thousand, takes seconds to replay and to take up. So this is
work that pauses (`broker/slices.py`); what is little, as nearly always, is done at once. One thing at a time: what is
committed meanwhile waits in the log until this is done. A node that ends in the middle of it begins anew with its log.

After some thousand records there is an image, though more may be committed: a broker that takes over thousands of
partitions shows those first that it has first.
"""

from collections import deque
from collections.abc import Callable, Generator

from klamm.broker.broker import Broker
from klamm.broker.slices import Work
from klamm.ids import Now
from klamm.metadata.delta import Changes, Delta
from klamm.metadata.difference import changes_between
from klamm.metadata.image import EMPTY, Image
from klamm.metadata.records import RemoveTopicRecord
from klamm.quorum.ready import CommittedBatch, SnapshotToLoad
from klamm.slicing import Pace, is_slice

SLICES_AN_IMAGE = 4
"""An image costs a little by itself."""


class Applier:
    def __init__(self, broker: Broker, applied: Callable[[Changes, Now], None], finished: Callable[[], None]) -> None:
        """`applied` is called whenever there is another image, `finished` when what was taken is done, if that was not
        at once."""
        self._broker = broker
        self._applied = applied
        self._finished = finished
        self._batches: deque[CommittedBatch] = deque()
        self._pace = Pace()
        self.is_busy = False
        """Whether something is under way: nothing more is to be taken."""

    def begin_step(self) -> None:
        """Others had their turn."""
        self._pace.begin()

    def take(self, snapshot: SnapshotToLoad | None, batches: list[CommittedBatch], now: Now) -> None:
        """Apply the snapshot, then the batches."""
        assert not self.is_busy
        self._batches.extend(batches)
        work = self._work(snapshot, now)
        try:
            next(work)
        except StopIteration:
            return
        self.is_busy = True
        self._broker.own_slices.add(work, self._done, is_begun=True)

    def _done(self, error: Exception | None, now: Now) -> None:
        if error is not None:
            # As if it had happened at once: a node that cannot follow the metadata ends.
            raise error
        self.is_busy = False
        self._finished()

    def _work(self, snapshot: SnapshotToLoad | None, now: Now) -> Work:
        if snapshot is not None:
            now = yield from self._load(snapshot, now)
        while self._batches:
            now = yield from self._apply_some(now)

    def _apply_some(self, now: Now) -> Generator[None, Now, Now]:
        delta = Delta(self._broker.image)
        count = 0
        while self._batches and not is_slice(count / SLICES_AN_IMAGE):
            batch = self._batches.popleft()
            for record in batch.records:
                delta.replay(record)
                if isinstance(record, RemoveTopicRecord):
                    self._broker.partitions.directories.note_deleted(record.topic_id)
                count += 1
                if self._pace.is_full():
                    now = yield
        (image, changes), now = yield from self._pace.paced(delta.finishing(batch.last_offset, batch.epoch), now)
        return (yield from self._follow(image, changes, now))

    def _load(self, snapshot: SnapshotToLoad, now: Now) -> Generator[None, Now, Now]:
        """In the place of all that was before: what is not in it is gone."""
        delta = Delta(EMPTY)
        for record in snapshot.records:
            delta.replay(record)
            if self._pace.is_full():
                now = yield
        (image, _), now = yield from self._pace.paced(delta.finishing(snapshot.offset, snapshot.epoch), now)
        changes, now = yield from self._pace.paced(changes_between(self._broker.image, image), now)
        return (yield from self._follow(image, changes, now))

    def _follow(self, image: Image, changes: Changes, now: Now) -> Generator[None, Now, Now]:
        now = yield from self._broker.following(image, changes, self._pace, now)
        self._applied(changes, now)
        return now
