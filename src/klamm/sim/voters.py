"""Voters of the metadata quorum come and go (F32): an operator asks who votes, and takes one out or puts one back.

Every node that may vote is named in `controller.quorum.voters`, and the first election needs all of them; from then on
the operator makes the quorum smaller and larger. Who was taken out follows the log as an observer. Who lost its disk
comes back as somebody else under its number: the leader replaces it by itself, so nobody has to be asked for that.

The operator is careful, as one has to be: a voter is taken out only while all others have everything.
"""

from collections.abc import Callable
from random import Random
from typing import Any

from klamm.errors import ErrorCode
from klamm.quorum.raft import TOPIC
from klamm.quorum.voters import LISTENER
from klamm.sim.clients.admin import Admin
from klamm.sim.cluster import Cluster
from klamm.wire.apis import ADD_RAFT_VOTER, DESCRIBE_QUORUM, REMOVE_RAFT_VOTER
from klamm.wire.messages.add_raft_voter import AddRaftVoterRequest, Listener
from klamm.wire.messages.describe_quorum import DescribeQuorumRequest, PartitionData, TopicData
from klamm.wire.messages.remove_raft_voter import RemoveRaftVoterRequest

Then = Callable[[Any], None]

FEWEST_OF = {5: 3, 3: 2}
"""So many stay, of so many that may vote."""


class VoterChanges:
    def __init__(self, cluster: Cluster, admin: Admin, chance: Random) -> None:
        self._cluster = cluster
        self._admin = admin
        self._chance = chance

    def change(self, then: Then) -> None:
        request = DescribeQuorumRequest(
            topics=[TopicData(topic_name=TOPIC, partitions=[PartitionData(partition_index=0)])]
        )

        def heard(answer: Any) -> None:
            if answer is None or answer.error_code:
                then(None)
            else:
                self._decide(answer.topics[0].partitions[0], then)

        self._admin.request(DESCRIBE_QUORUM, request, heard)

    def _decide(self, described: Any, then: Then) -> None:
        voters = {each.replica_id: each for each in described.current_voters}
        outside = [
            each
            for each in described.observers
            if each.replica_id in self._cluster.voters and each.replica_id not in voters
        ]
        may_leave = [each for each in voters.values() if self._may_leave(each.replica_id, list(voters))]
        if outside and (not may_leave or self._chance.random() < 0.5):
            self._add(self._chance.choice(outside), then)
        elif may_leave:
            self._remove(self._chance.choice(may_leave), then)
        else:
            then(None)
            return
        if outside and may_leave and self._chance.random() < 0.4:
            # In a hurry: one more change at once, which has to wait until the first is committed, or is refused.
            self._add(self._chance.choice(outside), lambda answer: None)

    def _may_leave(self, node_id: int, voters: list[int]) -> bool:
        others = [each for each in voters if each != node_id]
        return len(others) >= FEWEST_OF[len(self._cluster.voters)] and all(map(self._cluster.votes_well, others))

    def _add(self, replica: Any, then: Then) -> None:
        place = Listener(name=LISTENER, host=f"node-{replica.replica_id}", port=self._port_of(replica.replica_id))
        request = AddRaftVoterRequest(
            cluster_id=None,
            timeout_ms=4_000,
            voter_id=replica.replica_id,
            voter_directory_id=replica.replica_directory_id,
            listeners=[place],
            ack_when_committed=self._chance.random() < 0.7,
        )
        self._admin.request(ADD_RAFT_VOTER, request, _if_done(then))

    def _remove(self, replica: Any, then: Then) -> None:
        request = RemoveRaftVoterRequest(
            cluster_id=None, voter_id=replica.replica_id, voter_directory_id=replica.replica_directory_id
        )
        self._admin.request(REMOVE_RAFT_VOTER, request, _if_done(then))

    def _port_of(self, node_id: int) -> int:
        return self._cluster.machines[node_id].port


def _if_done(then: Then) -> Then:
    return lambda answer: then(None if answer is None or answer.error_code != ErrorCode.NONE else answer)
