"""A controller with brokers, and what it decided replayed at once: the log of a quorum that always agrees."""

from collections.abc import Callable
from random import Random
from typing import TypeVar

from klamm.config import BrokerConfig
from klamm.controller.brokers import BrokerHeartbeat, BrokerRegistration, HeartbeatReply
from klamm.controller.controller import Controller
from klamm.controller.features import SUPPORTED
from klamm.controller.wishes import AlteredPartition, NewTopic, PartitionAlteration
from klamm.errors import ErrorCode
from klamm.ids import Now, Offset
from klamm.machine import Decision, Plan, in_one_piece
from klamm.metadata.image import EMPTY, Broker, Endpoint, PartitionState, Topic
from klamm.metadata.records import MetadataRecord

Response = TypeVar("Response")

CLUSTER = "a-cluster"
START = Now(1_000.0, 1_700_000_000_000)


class World:
    """The node that runs the controller is broker 0; `brokers` says how many there are, `racks` where."""

    def __init__(self, brokers: int = 1, racks: dict[int, str] | None = None, **settings: str) -> None:
        overrides = {"node.id": "0"} | {name.replace("_", "."): value for name, value in settings.items()}
        self.config = BrokerConfig.from_properties([], overrides)
        self.now = START
        self.on_pause: Callable[[], object] = lambda: None
        """What happens between two pieces of a plan."""
        self.controller = Controller(self.config, CLUSTER, Random(7), EMPTY, self.now)
        self.log: list[MetadataRecord] = []
        self.run(self.controller.activate(self.now))
        for broker in range(brokers):
            self.join(broker, (racks or {}).get(broker))

    @property
    def next_offset(self) -> Offset:
        return len(self.log)

    def run(self, decided: Decision[MetadataRecord, Response] | Plan[MetadataRecord, Response]) -> Response:
        plan = in_one_piece(decided) if isinstance(decided, Decision) else decided
        batch: list[MetadataRecord] = []
        while (piece := plan.next_piece()) is not None:
            batch = [] if piece.is_void else batch + piece.records
            if piece.ends_batch:
                self.commit(batch)
                batch = []
            if not piece.is_last:
                self.on_pause()
        return plan.response

    def commit(self, batch: list[MetadataRecord]) -> None:
        self.log += batch
        for record in batch:
            self.controller.replay(record)

    # Time.

    def wait(self, milliseconds: float) -> None:
        self.now = Now(self.now.monotonic_ms + milliseconds, self.now.wall_ms + int(milliseconds))

    def tick(self) -> list[MetadataRecord]:
        """What the controller does by itself, as often as it wants to."""
        begin = len(self.log)
        while (due_ms := self.controller.next_deadline_ms) is not None and due_ms <= self.now.monotonic_ms:
            self.run(self.controller.tick(self.now))
        return self.log[begin:]

    # Brokers.

    def broker(self, broker: int) -> Broker:
        return self.controller.image.brokers[broker]

    def registration(
        self, broker: int, rack: str | None = None, life: int = 1, previous: int = -1, directory: int | None = None
    ) -> BrokerRegistration:
        return BrokerRegistration(
            broker_id=broker,
            incarnation_id=bytes([life]) * 16,
            cluster_id=CLUSTER,
            endpoints=[Endpoint("PLAINTEXT", "127.0.0.1", 9092 + broker)],
            directories=[bytes([broker + 1 if directory is None else directory]) * 16],
            features=SUPPORTED,
            rack=rack,
            previous_broker_epoch=previous,
        )

    def register(
        self, broker: int, rack: str | None = None, life: int = 1, previous: int = -1, directory: int | None = None
    ) -> int:
        registration = self.registration(broker, rack, life, previous, directory)
        return self.run(self.controller.register_broker(registration, lambda: self.next_offset, self.now)).broker_epoch

    def beat(
        self, broker: int, offset: Offset | None = None, *, want_fence: bool = False, want_shut_down: bool = False
    ) -> HeartbeatReply:
        """A heartbeat of a broker that has seen everything, unless its offset is given."""
        seen = self.next_offset - 1 if offset is None else offset
        beat = BrokerHeartbeat(broker, self.broker(broker).epoch, seen, want_fence, want_shut_down)
        return self.run(self.controller.heartbeat(beat, lambda: self.next_offset, self.now))

    def join(self, broker: int, rack: str | None = None) -> None:
        self.register(broker, rack)
        self.beat(broker)

    def die(self, *brokers: int) -> None:
        for broker in brokers:
            self.wait(1_000)
            self.run(self.controller.broker_is_gone(broker, self.now))

    def restart(self, broker: int, life: int, *, clean: bool = True, directory: int | None = None) -> None:
        """A new life, registered and not yet active."""
        known = self.broker(broker)
        self.register(broker, known.rack, life, known.epoch if clean else -1, directory)

    # Topics.

    def create(
        self,
        name: str,
        partitions: int = -1,
        replication_factor: int = -1,
        *,
        assignments: list[tuple[int, list[int]]] | None = None,
        configs: list[tuple[str, str | None]] | None = None,
    ) -> Topic:
        wish = NewTopic(name, partitions, replication_factor, assignments or [], configs or [])
        (created,) = self.run(self.controller.create_topics([wish]))
        assert created.error == ErrorCode.NONE, created.message
        return self.topic(name)

    def refusal(self, wish: NewTopic) -> ErrorCode:
        decision = self.controller.create_topics([wish])
        assert not decision.records and decision.response[0].message
        return decision.response[0].error

    def topic(self, name: str) -> Topic:
        return self.controller.image.topics[name]

    def partition(self, name: str = "invoice", index: int = 0) -> PartitionState:
        return self.topic(name).partitions[index]

    def alteration(self, isr: list[int], name: str = "invoice", index: int = 0) -> PartitionAlteration:
        """What its leader would ask for, having seen everything."""
        state = self.partition(name, index)
        brokers = self.controller.image.brokers
        members = [(broker, brokers[broker].epoch if broker in brokers else -1) for broker in isr]
        return PartitionAlteration(self.topic(name).topic_id, index, state.leader_epoch, state.partition_epoch, members)

    def alter(self, isr: list[int], name: str = "invoice", index: int = 0) -> AlteredPartition:
        leader = self.partition(name, index).leader
        wish = self.alteration(isr, name, index)
        (result,) = self.run(self.controller.alter_partition(leader, self.broker(leader).epoch, [wish]))
        return result
