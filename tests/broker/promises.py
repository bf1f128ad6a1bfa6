"""What must hold of replicas after every event, whatever happened (FAULTS.md, I11 to I16).

One `Promises` watches one world. It remembers what was ever acknowledged, shown as committed, or stored under an offset
and an epoch, and compares all logs with that.
"""

from klamm.ids import NO_BROKER, NO_EPOCH, Offset
from klamm.partition.partition import Partition
from tests.broker.toy_controller import TOPIC
from tests.broker.world import Member, World, records_in


class Promises:
    def __init__(self, world: World) -> None:
        self.world = world
        self.writers: dict[tuple[int, int], int] = {}
        """Which broker took writes in a partition under a leader epoch."""
        self.stored: dict[tuple[int, Offset, int], bytes] = {}
        self.committed: dict[tuple[int, Offset], bytes] = {}
        self.acknowledged: dict[tuple[int, Offset], bytes] = {}
        self.watermarks: dict[tuple[int, int, int, int], Offset] = {}
        self.checked_leaders: set[tuple[int, int]] = set()

    def wrote(self, member: Member, index: int) -> None:
        """I11: one broker takes writes in an epoch."""
        epoch = member.partition(index).leader_epoch
        assert self.writers.setdefault((index, epoch), member.id) == member.id, "two leaders in one epoch"

    def acknowledge(self, index: int, offset: Offset, value: bytes) -> None:
        self.acknowledged[index, offset] = value

    def check(self) -> None:
        for index, state in enumerate(self.world.controller.states):
            assert set(state.isr) <= set(state.replicas), "I12"
            for member in self.world.up:
                partition = member.broker.partitions.get(TOPIC, index)
                if partition is not None:
                    self._check_log(member, index, partition)
            self._check_leader(index)

    def _check_log(self, member: Member, index: int, partition: Partition) -> None:
        log = partition.log
        records = records_in(partition)
        assert log.start_offset <= partition.high_watermark <= log.end_offset, f"I14: {partition}"
        seen = (member.id, member.life, index, partition.terms_ended)
        if partition.is_leader:
            assert self.watermarks.get(seen, 0) <= partition.high_watermark, "I14: the watermark went back"
            self.watermarks[seen] = partition.high_watermark
        epochs = [epoch for _, epoch, _ in records]
        assert epochs == sorted(epochs), "I13: epochs grow along the log"
        for offset, epoch, value in records:
            # A deletion may be forgotten in a power loss, when the epochs of what was deleted are forgotten already.
            known = log.epochs.epoch_at(offset)
            assert known in (epoch, NO_EPOCH), f"I13: {log.epochs} does not know {offset} of epoch {epoch}"
            assert self.stored.setdefault((index, offset, epoch), value) == value, "I16: two records, one place"
            if offset < partition.high_watermark:
                before = self.committed.setdefault((index, offset), value)
                assert before == value, f"I14: {before!r} was committed at {offset}, and now {value!r} on {member.id}"

    def _check_leader(self, index: int) -> None:
        """I15: who leads now has all that was ever acknowledged or shown, at its offset."""
        state = self.world.controller.state(index)
        if state.leader == NO_BROKER or not self.world[state.leader].is_up:
            return
        partition = self.world[state.leader].broker.partitions.get(TOPIC, index)
        if partition is None or partition.leader_epoch != state.leader_epoch or not partition.is_leader:
            return
        held = {offset: value for offset, _, value in records_in(partition)}
        for promised in (self.acknowledged, self.committed):
            for (of_index, offset), value in promised.items():
                if of_index == index and offset >= partition.log.start_offset:
                    assert held.get(offset) == value, (
                        f"I15: {offset} was {value!r}, the leader has {held.get(offset)!r}"
                    )
