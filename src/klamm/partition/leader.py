"""Leading: a leader counts who has its records, moves the watermark, and keeps the in-sync replicas.

One `Leader` is one leader epoch. Its followers' fetches tell it how far they are. The watermark is the smallest end in
the maximal in-sync set, and of those besides who have caught up and are about to join: under constant writes nobody
would ever reach a watermark that runs ahead of them.

With fewer in sync than `min.insync.replicas` the watermark stands still (KIP-966): what acks=1 wrote meanwhile is not
shown to anybody until enough replicas hold it.
"""

from collections.abc import Iterable

from klamm.errors import ErrorCode
from klamm.ids import BrokerId, Epoch, Offset, TopicPartition, Uuid
from klamm.partition.isr import NOT_DONE, IsrWish, is_eligible, wished
from klamm.partition.progress import NO_BROKER_EPOCH, Progress
from klamm.partition.surroundings import Surroundings
from klamm.partition.watermark import committed_offset


class Leader:
    __slots__ = (
        "_counted",
        "_end",
        "_is_asked",
        "_joining",
        "_surroundings",
        "committed",
        "epoch",
        "epoch_start",
        "followers",
        "me",
        "pending",
        "recovering",
    )

    def __init__(self, me: BrokerId, epoch: Epoch, epoch_start: Offset, surroundings: Surroundings) -> None:
        self.me = me
        self.epoch = epoch
        self.epoch_start = epoch_start
        self.followers: dict[BrokerId, Progress] = {}
        self.committed: tuple[BrokerId, ...] = ()
        self.pending: IsrWish | None = None
        self.recovering = False
        """The election was unclean, and the controller has not heard yet that the leader works all the same."""
        self._surroundings = surroundings
        self._is_asked = False
        """Whether the pending wish is on its way to the controller, or waits there."""
        self._joining: set[BrokerId] = set()
        self._counted: tuple[Progress, ...] = ()
        self._end = epoch_start

    def adopt(self, replicas: Iterable[BrokerId], isr: tuple[BrokerId, ...], recovering: bool, now_ms: float) -> None:
        """What the metadata says from now on."""
        others = [broker_id for broker_id in replicas if broker_id != self.me]
        self.followers = {broker_id: self.followers.get(broker_id) or Progress(broker_id) for broker_id in others}
        self._joining &= self.followers.keys()
        self.recovering = recovering
        self._commit(isr, now_ms)

    # Fetches of followers.

    def fetched(
        self, follower: Progress, offset: Offset, start_offset: Offset, broker_epoch: int, end: Offset, now_ms: float
    ) -> None:
        """Note how far this follower is. `end` is where the log ends now."""
        follower.fetched(offset, start_offset, broker_epoch, end, now_ms)
        if follower.broker_id not in self.committed:
            self._see_whether_it_joins(follower, end, now_ms)

    def grows(self, end: Offset, now_ms: float) -> None:
        """The log ends here now. Who had all of it until now, had caught up until now."""
        before, self._end = self._end, end
        if end > before:
            for follower in self.followers.values():
                follower.leader_grows(before, now_ms)

    def watermark(self, own_end: Offset) -> Offset:
        if not self._counted:
            return own_end
        return committed_offset((own_end, *[follower.end_offset for follower in self._counted]))

    def low_watermark(self, own_start: Offset) -> Offset:
        """Below this, nobody alive has any records."""
        active = self._surroundings.active
        starts = [each.start_offset for each in self.followers.values() if each.broker_id in active]
        return min([own_start, *starts])

    # In-sync replicas.

    @property
    def maximal(self) -> set[BrokerId]:
        return {*self.committed, *(self.pending.members if self.pending is not None else ())}

    def wish(
        self,
        topic_id: Uuid,
        topic_partition: TopicPartition,
        partition_epoch: int,
        high_watermark: Offset,
        end: Offset,
        now_ms: float,
    ) -> IsrWish | None:
        """What to ask the controller for, if anything. What was asked for and got no answer is asked for again, as it
        was, since it may have been granted."""
        if self.pending is not None:
            if self._is_asked:
                return None
            self._is_asked = True
            return self.pending
        wanted = wished(
            self.committed,
            self.followers.values(),
            self._surroundings.active,
            joins_at=max(high_watermark, self.epoch_start),
            leader_end=end,
            now_ms=now_ms,
            max_lag_ms=self._surroundings.max_lag_ms,
        )
        if wanted == set(self.committed) and not self.recovering:
            return None
        isr = tuple((broker_id, self._epoch_of(broker_id)) for broker_id in sorted(wanted))
        self.pending = IsrWish(topic_id, topic_partition, self.epoch, partition_epoch, isr)
        self._is_asked = True
        self._recount()
        return self.pending

    def granted(self, isr: tuple[BrokerId, ...], now_ms: float) -> None:
        self.recovering = False
        self.pending = None
        self._commit(isr, now_ms)

    def refused(self, error: ErrorCode) -> None:
        """Not granted, or nobody knows. If the controller is ahead of us the metadata will tell, and until then the
        wish is pending, for it may be what was granted. It is asked all the same, as it was: what that controller had
        decided may never be committed, and then nothing would ever come."""
        if error in NOT_DONE:
            self.pending = None
            self._recount()
        else:
            self._is_asked = False

    def unanswered(self) -> None:
        self._is_asked = False

    def needs_a_wish(self, high_watermark: Offset, end: Offset, now_ms: float) -> bool:
        """Whether somebody fell behind, or may join."""
        if self.pending is not None:
            return not self._is_asked
        max_lag_ms = self._surroundings.max_lag_ms
        return self.recovering or any(
            (follower.broker_id in self.committed and not follower.is_caught_up(end, now_ms, max_lag_ms))
            or (self._could_join(follower, high_watermark) and follower.is_heard(end, now_ms, max_lag_ms))
            for follower in self.followers.values()
        )

    def maybe_recount(self, end: Offset, now_ms: float) -> bool:
        """As time passes, and when brokers come and go: whether others than before are waited for. Who was about to
        join, and did not in its time or is not alive any more, is waited for no longer."""
        before = self._counted
        for follower in self.followers.values():
            if follower.broker_id not in self.committed:
                self._see_whether_it_joins(follower, end, now_ms)
        return self._counted != before

    def could_join(self, follower: Progress, high_watermark: Offset) -> bool:
        """Whether it is worth asking the controller, now, to count this one in."""
        return self.pending is None and self._could_join(follower, high_watermark)

    def _could_join(self, follower: Progress, high_watermark: Offset) -> bool:
        return (
            follower.broker_id not in self.committed
            and follower.end_offset >= max(high_watermark, self.epoch_start)
            and is_eligible(follower, self._surroundings.active)
        )

    def _see_whether_it_joins(self, follower: Progress, end: Offset, now_ms: float) -> None:
        is_near = follower.is_caught_up(end, now_ms, self._surroundings.max_lag_ms)
        joins = is_near and is_eligible(follower, self._surroundings.active)
        if joins != (follower.broker_id in self._joining):
            (self._joining.add if joins else self._joining.discard)(follower.broker_id)
            self._recount()

    def _commit(self, isr: tuple[BrokerId, ...], now_ms: float) -> None:
        for broker_id in isr:
            if broker_id in self.followers and broker_id not in self.committed:
                self.followers[broker_id].joined(now_ms)
        self.committed = isr
        self._joining -= set(isr)
        self._recount()

    def _recount(self) -> None:
        counted = self.maximal | self._joining
        self._counted = tuple(each for each in self.followers.values() if each.broker_id in counted)

    def _epoch_of(self, broker_id: BrokerId) -> int:
        if broker_id in self.followers:
            # An in-sync follower that has not fetched yet: if it has another life by now, the metadata, and with it the
            # partition's epoch, has moved on, and the wish is refused for that.
            return self.followers[broker_id].broker_epoch
        return self._surroundings.active.get(broker_id, NO_BROKER_EPOCH)
