"""Somebody who speaks in brokers' names, and in the name of one that there is not.

It has read everything that is no secret: the cluster's image with ids, epochs, incarnations and directories, and where
logs end. It fetches as a follower from the end of a leader's log, sends heartbeats that want a broker fenced or gone,
wishes for other in-sync replicas, registers, and takes producer ids, each at a node that might believe it, with a token
of its own or without. What it may not do is answer at a broker's address. The promises hold as if it were not there.
"""

from collections.abc import Callable
from typing import Any

from klamm.controller.features import SUPPORTED
from klamm.ids import NO_BROKER, BrokerId
from klamm.metadata.image import Broker, Image
from klamm.sim.clients.client import Client
from klamm.sim.cluster import Cluster
from klamm.sim.topics import OFFSETS
from klamm.wire.apis import (
    ALLOCATE_PRODUCER_IDS,
    ALTER_PARTITION,
    BROKER_HEARTBEAT,
    BROKER_REGISTRATION,
    FETCH,
)
from klamm.wire.claims import CLAIM, TOKEN_BYTES, claim_bytes
from klamm.wire.headers import NO_TAGS
from klamm.wire.messages.allocate_producer_ids import AllocateProducerIdsRequest
from klamm.wire.messages.alter_partition import AlterPartitionRequest, BrokerState, PartitionData, TopicData
from klamm.wire.messages.broker_heartbeat import BrokerHeartbeatRequest
from klamm.wire.messages.broker_registration import BrokerRegistrationRequest, Feature, Listener
from klamm.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ReplicaState

NOBODY = 99
FETCH_VERSIONS = (7, 12, 17, 17, 17)


class Stranger(Client):
    def forge(self, cluster: Cluster, mean_ms: float) -> None:
        self._cluster = cluster
        self._mean_ms = mean_ms
        self.believed = 0
        """How often it was answered without an error."""
        self._next()

    def _next(self) -> None:
        self.later(self.chance.expovariate(1.0 / self._mean_ms), self._next)
        image = self._cluster.latest_image()
        if not image.brokers:
            return
        broker = image.brokers[self.chance.choice(sorted(image.brokers))]
        forge = self.chance.choice(
            (self._fetch, self._fetch, self._fetch, self._beat, self._alter, self._register, self._take_ids)
        )
        forge(image, broker)

    def _fetch(self, image: Image, broker: Broker) -> None:
        """From the end of the leader's log, as if this follower had all of it."""
        led = [
            (topic.topic_id, name, index, state)
            for name, topic in sorted(image.topics.items())
            for index, state in enumerate(topic.partitions)
            if name != OFFSETS
            and broker.broker_id in state.replicas
            and state.leader not in (NO_BROKER, broker.broker_id)
        ]
        if not led:
            return
        topic_id, name, index, state = self.chance.choice(led)
        machine = self._cluster.machines.get(state.leader)
        partition = machine.broker.partitions.get(name, index) if machine is not None and machine.is_running else None
        if partition is None:
            return
        wanted = FetchPartition(
            partition=index,
            current_leader_epoch=state.leader_epoch,
            fetch_offset=partition.log.end_offset,
            last_fetched_epoch=partition.log.latest_epoch,
            log_start_offset=partition.log.start_offset,
        )
        request = FetchRequest(
            replica_id=broker.broker_id,
            replica_state=ReplicaState(replica_id=broker.broker_id, replica_epoch=broker.epoch),
            max_wait_ms=0,
            min_bytes=0,
            session_epoch=-1,
            topics=[FetchTopic(topic=name, topic_id=topic_id, partitions=[wanted])],
        )
        self._say(state.leader, broker.broker_id, FETCH, self.chance.choice(FETCH_VERSIONS), request)

    def _beat(self, image: Image, broker: Broker) -> None:
        wish = self.chance.choice(("none", "want_fence", "want_shut_down"))
        request = BrokerHeartbeatRequest(
            broker_id=broker.broker_id,
            broker_epoch=broker.epoch,
            current_metadata_offset=image.offset,
            want_fence=wish == "want_fence",
            want_shut_down=wish == "want_shut_down",
        )
        self._say_to_controller(broker.broker_id, BROKER_HEARTBEAT, 1, request)

    def _alter(self, image: Image, broker: Broker) -> None:
        """In the name of a leader: all its replicas are in sync, or nobody else is."""
        led = [
            (topic.topic_id, index, state)
            for _, topic in sorted(image.topics.items())
            for index, state in enumerate(topic.partitions)
            if state.leader == broker.broker_id
        ]
        if not led:
            return
        topic_id, index, state = self.chance.choice(led)
        members = self.chance.choice((state.replicas, (broker.broker_id,)))
        partition = PartitionData(
            partition_index=index,
            leader_epoch=state.leader_epoch,
            new_isr_with_epochs=[
                BrokerState(broker_id=each, broker_epoch=image.brokers[each].epoch)
                for each in members
                if each in image.brokers
            ],
            partition_epoch=state.partition_epoch,
        )
        topic = TopicData(topic_id=topic_id, partitions=[partition])
        request = AlterPartitionRequest(broker_id=broker.broker_id, broker_epoch=broker.epoch, topics=[topic])
        self._say_to_controller(broker.broker_id, ALTER_PARTITION, 3, request)

    def _register(self, image: Image, broker: Broker) -> None:
        """As nobody, at an address where nobody answers; or as this broker, in another life, at its own address."""
        is_nobody = self.chance.random() < 0.5
        host, port = (self.name, self.port) if is_nobody else (broker.endpoints[0].host, broker.endpoints[0].port)
        request = BrokerRegistrationRequest(
            broker_id=NOBODY if is_nobody else broker.broker_id,
            cluster_id=self._cluster_id(),
            incarnation_id=self.chance.randbytes(16),
            listeners=[Listener(name="PLAINTEXT", host=host, port=port)],
            features=[
                Feature(name=name, min_supported_version=low, max_supported_version=high)
                for name, (low, high) in sorted(SUPPORTED.items())
            ],
            rack=broker.rack,
            log_dirs=[self.chance.randbytes(16)] if is_nobody else list(broker.directories),
            previous_broker_epoch=-1 if is_nobody else broker.epoch,
        )
        self._say_to_controller(request.broker_id, BROKER_REGISTRATION, 4, request, self._be_counted_on)

    def _be_counted_on(self, answer: Any) -> None:
        if answer is not None and not answer.error_code:
            image = self._cluster.latest_image()
            request = BrokerHeartbeatRequest(
                broker_id=NOBODY, broker_epoch=answer.broker_epoch, current_metadata_offset=image.offset
            )
            self._say_to_controller(NOBODY, BROKER_HEARTBEAT, 1, request)

    def _take_ids(self, image: Image, broker: Broker) -> None:
        request = AllocateProducerIdsRequest(broker_id=broker.broker_id, broker_epoch=broker.epoch)
        self._say_to_controller(broker.broker_id, ALLOCATE_PRODUCER_IDS, 0, request)

    def _cluster_id(self) -> str:
        return next((each.broker.cluster_id for each in self._cluster.running), "")

    def _say_to_controller(
        self, name: BrokerId, api: int, version: int, request: object, then: Callable[[Any], None] | None = None
    ) -> None:
        controller = self._cluster.controller()
        if controller is not None:
            self._say(controller.node_id, name, api, version, request, then)

    def _say(
        self,
        to: BrokerId,
        name: BrokerId,
        api: int,
        version: int,
        request: object,
        then: Callable[[Any], None] | None = None,
    ) -> None:
        """In this broker's name. A claim counts for its connection, so that each begins anew."""

        def heard(answer: Any) -> None:
            if answer is not None and not getattr(answer, "error_code", 0):
                self.believed += 1
            if then is not None:
                then(answer)

        claim = NO_TAGS
        if version >= 12 or api != FETCH:
            has_claim = self.chance.random() < 0.5
            claim = claim_bytes(CLAIM, name, self.chance.randbytes(TOKEN_BYTES)) if has_claim else NO_TAGS
        self.hang_up(to)
        self.ask(to, api, version, request, heard, tags=claim)
