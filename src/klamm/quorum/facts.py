"""What the quorum announces."""

from klamm.facts import Fact
from klamm.ids import BrokerId, Epoch, Offset


class LeaderElected(Fact):
    leader_id: BrokerId
    epoch: Epoch
    start_offset: Offset

    def __str__(self) -> str:
        return f"node {self.leader_id} leads the metadata quorum in epoch {self.epoch}, from offset {self.start_offset}"


class LeaderFollowed(Fact):
    leader_id: BrokerId
    epoch: Epoch

    def __str__(self) -> str:
        return f"node {self.leader_id} leads the metadata quorum in epoch {self.epoch}, and this node follows it"


class ElectionBegun(Fact):
    epoch: Epoch
    reason: str

    def __str__(self) -> str:
        return f"asking whether this node may lead the metadata quorum after epoch {self.epoch}: {self.reason}"


class LeaderResigned(Fact):
    level = "warning"
    epoch: Epoch
    reason: str

    def __str__(self) -> str:
        return f"no longer leading the metadata quorum in epoch {self.epoch}: {self.reason}"


class VotersChanged(Fact):
    voters: tuple[BrokerId, ...]
    reason: str

    def __str__(self) -> str:
        return f"the voters of the metadata quorum are to be {', '.join(map(str, self.voters))}: {self.reason}"


class SnapshotTaken(Fact):
    end_offset: Offset
    epoch: Epoch
    size_bytes: int

    def __str__(self) -> str:
        return f"took a snapshot of the metadata below offset {self.end_offset}: {self.size_bytes} bytes"


class SnapshotFetched(Fact):
    end_offset: Offset
    epoch: Epoch

    def __str__(self) -> str:
        return f"fetched a snapshot of the metadata below offset {self.end_offset} from the leader"


class SnapshotUnreadable(Fact):
    level = "error"
    reason: str

    def __str__(self) -> str:
        return f"a snapshot of the metadata was left aside: {self.reason}"


class QuorumDiskFailed(Fact):
    level = "error"
    reason: str

    def __str__(self) -> str:
        return f"this node takes no part in the metadata quorum any more: {self.reason}"


class OtherCluster(Fact):
    level = "error"
    node_id: BrokerId
    cluster_id: str
    how: str

    def __str__(self) -> str:
        return (
            f"node {self.node_id} {self.how} this node and is of another cluster than {self.cluster_id}: neither takes "
            "part in the other's quorum. One of the two has the wrong data directory (meta.properties names the "
            "cluster), or the wrong addresses in controller.quorum.voters"
        )
