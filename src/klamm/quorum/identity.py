"""Who a node is to its quorum: its number, and the directory whose memory it votes with.

A node that lost its disk comes back with the same number and another directory. It remembers none of its promises, so
it is somebody else: that is why voters are known by both.
"""

from typing import NamedTuple

from klamm.ids import ZERO_UUID, BrokerId, Uuid


class ReplicaKey(NamedTuple):
    node_id: BrokerId
    directory_id: Uuid = ZERO_UUID
    """ZERO_UUID where it is not known."""


class NodeIdentity(NamedTuple):
    node_id: BrokerId
    directory_id: Uuid
    cluster_id: str

    @property
    def key(self) -> ReplicaKey:
        return ReplicaKey(self.node_id, self.directory_id)
