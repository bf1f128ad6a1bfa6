"""A follower's fetch: records to the end of the log, committed or not, and what its position tells the leader.

That it asks from offset N says that it holds everything below N, in this leader's history: if its last epoch says
otherwise, it is told where to cut, and nothing is noted. Where it stands is noted once, when the fetch comes; what it
gets may come later.

A follower that begins to follow more partitions sends another fetch while one waits here; that one is then answered
with what there is, so that the other can be.

A follower whose log is without records, and so without epochs, but begins after ours ends, is told our end in the same
way as one that parted. A replica that catches up may be throttled, one in sync never is.
"""

from dataclasses import dataclass

from klamm.broker.sessions import Position
from klamm.errors import ErrorCode, KafkaError
from klamm.handlers.fetch_answer import FetchAnswer, diverging, found_partition
from klamm.ids import BrokerId, Epoch, Offset, Uuid
from klamm.partition.partition import Partition
from klamm.partition.progress import NO_BROKER_EPOCH
from klamm.wire.messages.fetch import EpochEndOffset, FetchRequest, PartitionData


@dataclass(slots=True)
class FollowerFetch(FetchAnswer):
    broker_id: BrokerId = -1
    broker_epoch: int = NO_BROKER_EPOCH
    session_epoch: int = 0
    """The session's after this fetch: if it is another, another fetch has come."""

    def note_positions(self, request: FetchRequest) -> None:
        """How far this follower is, in the partitions that this fetch names."""
        known = {} if self.session is None else self.session.positions
        for topic in request.topics:
            name = topic.topic_id if self.by_id else topic.topic
            for wanted in topic.partitions:
                try:
                    partition = self._partition(known.get((name, wanted.partition)), name, wanted.partition)
                    follower = partition.check_follower(self.broker_id, self.broker_epoch, wanted.current_leader_epoch)
                    offset = wanted.fetch_offset
                    if offset >= partition.log.start_offset and not _parted(
                        partition, wanted.last_fetched_epoch, offset
                    ):
                        partition.follower_fetched(
                            follower, self.broker_epoch, offset, wanted.log_start_offset, self.call.now
                        )
                except KafkaError:
                    # The answer will say so.
                    continue

    def _partition(self, position: Position | None, topic: str | Uuid, index: int) -> Partition:
        if position is not None and position.partition is not None and not position.partition.deleted:
            return position.partition
        return found_partition(topic, index, self.call, self.by_id)

    def subjects(self) -> list[object]:
        if self.session is not None:
            return [self.session]
        held = [position.partition for position in self.positions if position.partition is not None]
        return [*held, *[partition.log for partition in held]]

    def answers_at_once(self) -> bool:
        if not self.waits or self.min_bytes <= 0:
            return True
        if self.session is not None and self.session.epoch != self.session_epoch:
            return True
        readable = 0
        something = False
        for position in self.candidates():
            something = True
            try:
                partition = self._attached(position)
                log = partition.log
                if log.end_offset > position.fetch_offset >= log.start_offset:
                    if self._is_held_back(partition):
                        continue
                    if self.min_bytes == 1:
                        return True
                    found = partition.read_for_follower(position.fetch_offset, position.max_bytes, at_least_one=True)
                    readable += found.size
                    if readable >= self.min_bytes:
                        return True
                elif self._has_news(partition, position):
                    return True
            except KafkaError:
                return True
        return not something and self.session is None

    def _attached(self, position: Position) -> Partition:
        partition = self._found(position)
        partition.check_follower(self.broker_id, self.broker_epoch, position.current_leader_epoch)
        return partition

    def _has_news(self, partition: Partition, position: Position) -> bool:
        """It is out of range or parted from our history, or does not know where the log begins now, or where readers of
        its own may read to."""
        if self.session is not None:
            if partition.log.start_offset != position.told_start_offset:
                return True
            readers_may_follow = self.call.broker.partitions.surroundings.readers_may_follow
            if readers_may_follow and partition.high_watermark != position.told_high_watermark:
                return True
        return _parted(partition, position.last_fetched_epoch, position.fetch_offset) is not None

    def _read(
        self, partition: Partition, position: Position, data: PartitionData, left: int, at_least_one: bool
    ) -> None:
        parted = _parted(partition, position.last_fetched_epoch, position.fetch_offset)
        if parted is not None:
            data.diverging_epoch = parted
        elif (left > 0 or at_least_one) and not self._is_held_back(partition):
            size = min(position.max_bytes, left)
            found = partition.read_for_follower(position.fetch_offset, size, at_least_one=at_least_one)
            if found.regions:
                data.records = found.regions[0]
                partition.traffic.replication_bytes_out += found.size
                self._count(partition, found.size)

    def _is_at_the_end(self, position: Position, data: PartitionData) -> bool:
        partition = position.partition
        return partition is None or partition.log.end_offset <= position.fetch_offset

    def _is_held_back(self, partition: Partition) -> bool:
        throttle = self.call.broker.replication.throttles.leader
        return (
            throttle.is_limited
            and throttle.holds(partition.topic_partition)
            and self.broker_id not in partition.in_sync
            and throttle.free_ms(self.call.now) is not None
        )

    def _count(self, partition: Partition, size: int) -> None:
        throttle = self.call.broker.replication.throttles.leader
        if throttle.is_limited and throttle.holds(partition.topic_partition):
            throttle.count(size, self.call.now)


def _parted(partition: Partition, last_epoch: Epoch, fetch_offset: Offset) -> EpochEndOffset | None:
    log = partition.log
    if 0 <= last_epoch == log.epochs.latest and log.start_offset <= fetch_offset <= log.end_offset:
        return None  # As almost always.
    if last_epoch < 0 and fetch_offset > partition.log.end_offset:
        return EpochEndOffset(epoch=partition.leader_epoch, end_offset=partition.log.end_offset)
    if fetch_offset < partition.log.start_offset:
        raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
    return diverging(partition, last_epoch, fetch_offset)
