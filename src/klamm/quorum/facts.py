"""What the quorum announces."""

from dataclasses import dataclass

from klamm.facts import Fact
from klamm.ids import BrokerId, Epoch, Offset


@dataclass(frozen=True, slots=True)
class LeaderElected(Fact):
    leader_id: BrokerId
    epoch: Epoch
    start_offset: Offset

    def __str__(self) -> str:
        return f"node {self.leader_id} leads the metadata quorum in epoch {self.epoch}, from offset {self.start_offset}"
