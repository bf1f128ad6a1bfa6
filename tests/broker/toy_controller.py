"""A controller a beginner would write: one topic, every rule in a line or two, decisions are records at once.

It keeps the promises that replication builds on: only in-sync replicas are elected, a broker that is fenced leaves the
in-sync replicas unless it is the last one, wishes of leaders are checked against epochs. Every decision is a new image;
brokers hear of them when the test says so.
"""

from klamm.errors import ErrorCode
from klamm.ids import NO_BROKER, BrokerId, Uuid
from klamm.metadata.delta import Changes, Delta
from klamm.metadata.image import EMPTY, Image, PartitionState
from klamm.metadata.records import (
    FENCE,
    UNFENCE,
    BrokerEndpoint,
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
)
from klamm.partition.isr import IsrOutcome, IsrWish

TOPIC_ID: Uuid = b"orders".ljust(16, b".")
TOPIC = "orders"


class ToyController:
    def __init__(self) -> None:
        self.images: list[Image] = [EMPTY]
        self.changes: list[Changes] = [Changes()]
        """What became different with the image of the same number."""

    @property
    def image(self) -> Image:
        return self.images[-1]

    def state(self, index: int) -> PartitionState:
        return self.image.topics[TOPIC].partitions[index]

    @property
    def states(self) -> tuple[PartitionState, ...]:
        return self.image.topics[TOPIC].partitions if TOPIC in self.image.topics else ()

    def commit(self, *records: MetadataRecord) -> None:
        delta = Delta(self.image)
        for record in records:
            delta.replay(record)
        image, changes = delta.finished(len(self.images), 1)
        self.images.append(image)
        self.changes.append(changes)

    # Brokers.

    def register(self, broker_id: BrokerId, rack: str | None = None) -> int:
        epoch = len(self.images)
        self.commit(
            RegisterBrokerRecord(
                broker_id=broker_id,
                incarnation_id=epoch.to_bytes(16, "big"),
                broker_epoch=epoch,
                end_points=[BrokerEndpoint(name="PLAINTEXT", host="127.0.0.1", port=9092 + broker_id)],
                rack=rack,
            )
        )
        return epoch

    def is_active(self, broker_id: BrokerId) -> bool:
        broker = self.image.brokers.get(broker_id)
        return broker is not None and broker.is_active

    def fence(self, broker_id: BrokerId) -> None:
        """It leads nothing any more, and is in sync only where nobody else is."""
        broker = self.image.brokers[broker_id]
        if broker.fenced:
            return
        records: list[MetadataRecord] = [
            BrokerRegistrationChangeRecord(broker_id=broker_id, broker_epoch=broker.epoch, fenced=FENCE)
        ]
        for index, state in enumerate(self.states):
            isr = [each for each in state.isr if each != broker_id] or list(state.isr)
            if state.leader == broker_id:
                active = [each for each in isr if each != broker_id and self.is_active(each)]
                records.append(self._change(index, isr=isr, leader=active[0] if active else NO_BROKER))
            elif tuple(isr) != state.isr:
                records.append(self._change(index, isr=isr))
        self.commit(*records)

    def unfence(self, broker_id: BrokerId) -> None:
        """It is counted on, and leads what nobody else in sync could lead."""
        epoch = self.image.brokers[broker_id].epoch
        records: list[MetadataRecord] = [
            BrokerRegistrationChangeRecord(broker_id=broker_id, broker_epoch=epoch, fenced=UNFENCE)
        ]
        for index, state in enumerate(self.states):
            if state.leader == NO_BROKER and broker_id in state.isr:
                records.append(self._change(index, leader=broker_id))
        self.commit(*records)

    # Partitions.

    def create_topic(self, placement: list[list[BrokerId]], **configs: str) -> None:
        records: list[MetadataRecord] = [TopicRecord(name=TOPIC, topic_id=TOPIC_ID)]
        for index, replicas in enumerate(placement):
            isr = [each for each in replicas if self.is_active(each)]
            records.append(
                PartitionRecord(
                    partition_id=index,
                    topic_id=TOPIC_ID,
                    replicas=replicas,
                    isr=isr,
                    leader=isr[0],
                    leader_epoch=0,
                    partition_epoch=0,
                )
            )
        self.commit(*records)
        for name, value in configs.items():
            self.configure(name.replace("_", "."), value)

    def configure(self, name: str, value: str) -> None:
        self.commit(ConfigRecord(resource_type=2, resource_name=TOPIC, name=name, value=value))

    def configure_brokers(self, name: str, value: str) -> None:
        self.commit(ConfigRecord(resource_type=4, resource_name="", name=name, value=value))

    def elect(self, index: int, leader: BrokerId) -> None:
        """A clean election of an in-sync replica, or of the same one anew."""
        assert leader in self.state(index).isr and self.is_active(leader)
        self.commit(self._change(index, leader=leader))

    def elect_uncleanly(self, index: int, leader: BrokerId) -> None:
        self.commit(self._change(index, leader=leader, isr=[leader], leader_recovery_state=1))

    def reassign(self, index: int, replicas: list[BrokerId]) -> None:
        """At once, and the leader stays if it is among them."""
        state = self.state(index)
        isr = [each for each in state.isr if each in replicas]
        if state.leader in replicas:
            self.commit(self._change(index, replicas=replicas, isr=isr))
        else:
            self.commit(self._change(index, replicas=replicas, isr=isr, leader=isr[0] if isr else NO_BROKER))

    def alter_partition(self, leader: BrokerId, wish: IsrWish) -> IsrOutcome:
        index = wish.topic_partition.partition
        state = self.state(index)
        error = ErrorCode.NONE
        if wish.leader_epoch != state.leader_epoch or leader != state.leader:
            error = ErrorCode.FENCED_LEADER_EPOCH
        elif wish.partition_epoch != state.partition_epoch:
            error = ErrorCode.INVALID_UPDATE_VERSION
        elif any(not self._is_eligible(broker_id, epoch) for broker_id, epoch in wish.isr):
            error = ErrorCode.INELIGIBLE_REPLICA
        if error:
            return IsrOutcome(wish.topic_id, index, error)
        if set(wish.members) != set(state.isr) or state.recovering:
            self.commit(self._change(index, isr=list(wish.members), leader_recovery_state=0))
            state = self.state(index)
        return IsrOutcome(
            wish.topic_id, index, ErrorCode.NONE, state.leader_epoch, state.partition_epoch, tuple(state.isr)
        )

    def _is_eligible(self, broker_id: BrokerId, epoch: int) -> bool:
        broker = self.image.brokers.get(broker_id)
        return broker is not None and broker.is_active and epoch in (-1, broker.epoch)

    def _change(self, index: int, **changed: object) -> PartitionChangeRecord:
        return PartitionChangeRecord(partition_id=index, topic_id=TOPIC_ID, **changed)  # type: ignore[arg-type]
