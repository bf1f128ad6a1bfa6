"""A controller with brokers, and what it decided replayed at once: the log of a quorum that always agrees."""

from random import Random
from typing import TypeVar

from klamm.config import BrokerConfig
from klamm.controller.brokers import BrokerHeartbeat, BrokerRegistration
from klamm.controller.controller import Controller
from klamm.controller.features import SUPPORTED
from klamm.controller.wishes import NewTopic
from klamm.errors import ErrorCode
from klamm.ids import Offset
from klamm.machine import Decision
from klamm.metadata.image import Endpoint, Topic
from klamm.metadata.records import MetadataRecord

Response = TypeVar("Response")

CLUSTER = "a-cluster"


class World:
    """The node that runs the controller is broker 0; `brokers` says how many more there are, `racks` where."""

    def __init__(self, brokers: int = 1, racks: dict[int, str] | None = None, **settings: str) -> None:
        overrides = {"node.id": "0"} | {name.replace("_", "."): value for name, value in settings.items()}
        self.controller = Controller(BrokerConfig.from_properties([], overrides), CLUSTER, Random(7))
        self.log: list[MetadataRecord] = []
        self.run(self.controller.activate())
        for broker in range(brokers):
            self.join(broker, (racks or {}).get(broker))

    @property
    def next_offset(self) -> Offset:
        return len(self.log)

    def run(self, decision: Decision[MetadataRecord, Response]) -> Response:
        for record in decision.records:
            self.log.append(record)
            self.controller.replay(record)
        return decision.response

    def register(self, broker: int, rack: str | None = None, life: int = 1, previous: int = -1) -> int:
        registration = BrokerRegistration(
            broker_id=broker,
            incarnation_id=bytes([life]) * 16,
            cluster_id=CLUSTER,
            endpoints=[Endpoint("PLAINTEXT", "127.0.0.1", 9092 + broker)],
            directories=[bytes([broker + 1]) * 16],
            features=SUPPORTED,
            rack=rack,
            previous_broker_epoch=previous,
        )
        return self.run(self.controller.register_broker(registration, self.next_offset)).broker_epoch

    def join(self, broker: int, rack: str | None = None) -> None:
        epoch = self.register(broker, rack)
        self.run(self.controller.heartbeat(BrokerHeartbeat(broker, epoch, self.next_offset)))

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
