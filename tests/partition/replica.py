"""One partition in memory: a log on the tests' disk, a role, and who was told that it grew."""

from klamm.ids import Now, TopicPartition
from klamm.log.log import Log
from klamm.log.settings import LogSettings
from klamm.metadata.image import PartitionState
from klamm.partition.partition import Partition
from klamm.partition.surroundings import Surroundings
from klamm.records.builder import BatchBuilder
from klamm.sim.disk import Disk

BEGINNING = Now(1_000.0, 1_700_000_000_000)
TOPIC_ID = b"t" * 16


def later(milliseconds: float) -> Now:
    return Now(BEGINNING.monotonic_ms + milliseconds, BEGINNING.wall_ms + int(milliseconds))


def batch_of(*values: bytes, epoch: int = 0, offset: int = 0) -> bytearray:
    """As a leader of this epoch stored it at this offset."""
    builder = BatchBuilder(base_offset=offset, leader_epoch=epoch)
    for value in values:
        builder.append(None, value, BEGINNING.wall_ms)
    return builder.build()


class Replica:
    """Replicas are 0, 1 and 2 unless told otherwise; all brokers are active, each with the epoch 10 + its id."""

    def __init__(
        self, me: int = 0, *, min_in_sync: int = 1, index: int = 0, flush: bool = False, log: Log | None = None
    ) -> None:
        settings = LogSettings(flush_messages=1) if flush else LogSettings()
        self.disk = Disk()
        log = log or Log.open(f"t-{index}", self.disk, settings, BEGINNING, clean=True, recovery_point=0)
        self.looked_at: list[Partition] = []
        self.grown: list[Partition] = []
        self.surroundings = Surroundings(self.looked_at.append)
        self.surroundings.active = {broker_id: 10 + broker_id for broker_id in range(6)}
        self.partition = Partition(
            TopicPartition("t", index), TOPIC_ID, log, me, min_in_sync, self.grown.append, self.surroundings
        )

    def leads(
        self, epoch: int = 0, partition_epoch: int = 0, isr: tuple[int, ...] = (0, 1, 2), *, recovering: bool = False
    ) -> None:
        self.takes(PartitionState((0, 1, 2), isr, self.partition.me, epoch, partition_epoch, recovering))

    def follows(self, leader: int = 1, epoch: int = 0, partition_epoch: int = 0) -> None:
        self.takes(PartitionState((0, 1, 2), (0, 1, 2), leader, epoch, partition_epoch))

    def takes(self, state: PartitionState, now: Now = BEGINNING) -> None:
        self.partition.take_role(state, now)
        self.settle()

    def writes(self, *values: bytes, now: Now = BEGINNING, acks: int = 1) -> None:
        self.partition.append(memoryview(batch_of(*values)), acks, now)
        self.settle()

    def is_fetched(self, by: int, offset: int, now: Now = BEGINNING, start_offset: int = 0) -> None:
        follower = self.partition.check_follower(by, 10 + by, self.partition.leader_epoch)
        self.partition.follower_fetched(follower, 10 + by, offset, start_offset, now)
        self.settle()

    def gets(self, *values: bytes, epoch: int = 0, watermark: int = 0, start: int = 0) -> None:
        """From its leader, for where its log ends."""
        records = batch_of(*values, epoch=epoch, offset=self.partition.log.end_offset) if values else b""
        self.partition.follow(records, watermark, start, BEGINNING)
        self.settle()

    def settle(self) -> None:
        for partition in self.grown:
            partition.maybe_advance()
        self.grown.clear()

    @property
    def high_watermark(self) -> int:
        return self.partition.high_watermark
