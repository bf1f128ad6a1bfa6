"""Nobody is answered under a leader epoch that is not the leader's.

I11. A client whose metadata is old, or newer than the leader's, asks as consumers and followers do. Who leads has to
refuse: it cannot know what the other takes for granted. Replication has a second lock on this door, the epoch of the
last record, so without the first one hardly a record would be lost, and only a question like this finds out.
"""

from collections.abc import Callable
from typing import Any

from klamm.ids import NO_BROKER, Epoch
from klamm.sim.clients.client import Client
from klamm.sim.cluster import Cluster
from klamm.sim.promise import broken
from klamm.wire.apis import FETCH, LIST_OFFSETS, OFFSET_FOR_LEADER_EPOCH
from klamm.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from klamm.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from klamm.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)

PAUSE_MS = 150.0
FAR_AHEAD = 1_000
LATEST = -1


class Impostor(Client):
    """Asks any leader, under epochs that it surely has not."""

    def watch(self, cluster: Cluster, topics: list[str]) -> None:
        self._cluster = cluster
        self._names = topics
        self._next()

    def _next(self) -> None:
        self.later(self.chance.expovariate(1.0 / PAUSE_MS), self._next)
        topic = self.chance.choice(self._names)
        known = self._cluster.latest_image().topics.get(topic)
        if known is None:
            return
        index = self.chance.randrange(len(known.partitions))
        leader = known.partitions[index].leader
        if leader == NO_BROKER:
            return
        machine = self._cluster.machines[leader]
        partition = machine.broker.partitions.get(topic, index) if machine.is_running else None
        if partition is None or partition.leader_epoch < 1:
            return
        # Epochs only grow: whatever it has when the question arrives, it is none of these.
        epoch = self.chance.choice((partition.leader_epoch - 1, 0, partition.leader_epoch + FAR_AHEAD))
        ask = self.chance.choice((self._fetch, self._list, self._look_up))
        ask(leader, topic, index, epoch)

    def _fetch(self, leader: int, topic: str, index: int, epoch: Epoch) -> None:
        partition = FetchPartition(
            partition=index, current_leader_epoch=epoch, fetch_offset=0, partition_max_bytes=1_000
        )
        request = FetchRequest(
            max_wait_ms=0, min_bytes=0, session_epoch=-1, topics=[FetchTopic(topic=topic, partitions=[partition])]
        )
        self.ask(leader, FETCH, 12, request, self._judge(topic, index, epoch, lambda answer: answer.responses))

    def _list(self, leader: int, topic: str, index: int, epoch: Epoch) -> None:
        partition = ListOffsetsPartition(partition_index=index, current_leader_epoch=epoch, timestamp=LATEST)
        request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[partition])])
        self.ask(leader, LIST_OFFSETS, 6, request, self._judge(topic, index, epoch, lambda answer: answer.topics))

    def _look_up(self, leader: int, topic: str, index: int, epoch: Epoch) -> None:
        partition = OffsetForLeaderPartition(partition=index, current_leader_epoch=epoch, leader_epoch=0)
        request = OffsetForLeaderEpochRequest(
            replica_id=-1, topics=[OffsetForLeaderTopic(topic=topic, partitions=[partition])]
        )
        self.ask(
            leader, OFFSET_FOR_LEADER_EPOCH, 4, request, self._judge(topic, index, epoch, lambda answer: answer.topics)
        )

    def _judge(self, topic: str, index: int, epoch: Epoch, topics_of: Callable[[Any], Any]) -> Callable[[Any], None]:
        def heard(answer: Any) -> None:
            if answer is not None and not topics_of(answer)[0].partitions[0].error_code:
                broken("I11", f"{self.name} was answered about {topic}-{index} under epoch {epoch}")

        return heard
