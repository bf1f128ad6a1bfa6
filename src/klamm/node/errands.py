"""What this broker asks of the controller for its clients: blocks of producer ids, topics that were spoken of, and the
topic that the groups' offsets are kept in."""

from collections.abc import Callable, Sequence

from klamm.broker.broker import Broker
from klamm.controller.names import CONSUMER_OFFSETS
from klamm.errors import ErrorCode, error_code
from klamm.ids import Now
from klamm.node.peers import Peer, Peers, Purpose
from klamm.wire.apis import ALLOCATE_PRODUCER_IDS, CREATE_TOPICS
from klamm.wire.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from klamm.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

TIMEOUT_MS = 10_000.0
BROKERS_DEFAULT = -1
SMALLEST_SEGMENT_BYTES = 1 << 20
"""A topic takes no less, and one that cannot be created would be waited for without end."""
PASSING = (ErrorCode.NOT_CONTROLLER, ErrorCode.STALE_BROKER_EPOCH, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
"""Errors between us and the controller that are no affair of the client's: it asks again."""


class Errands:
    """Implements `broker.errands.Errands`."""

    def __init__(self, broker: Broker, peers: Peers, controller: Callable[[], Peer | None]) -> None:
        self._broker = broker
        self._peers = peers
        self._controller = controller
        self._creating: set[str] = set()

    def take_producer_ids(self, now: Now) -> None:
        broker, controller = self._broker, self._controller()
        if controller is None or broker.epoch is None:
            broker.producer_ids.refuse(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
            broker.waiting.changed(broker.producer_ids)
            return
        request = AllocateProducerIdsRequest(broker_id=broker.node_id, broker_epoch=broker.epoch)
        self._peers.ask(controller, Purpose.FORWARD, ALLOCATE_PRODUCER_IDS, 0, request, TIMEOUT_MS, self._granted, now)

    def _granted(self, answer: object, now: Now) -> None:
        ids = self._broker.producer_ids
        if not isinstance(answer, AllocateProducerIdsResponse) or answer.error_code in PASSING:
            ids.refuse(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        elif answer.error_code:
            ids.refuse(error_code(answer.error_code))
        else:
            ids.grant(range(answer.producer_id_start, answer.producer_id_start + answer.producer_id_len))
        self._broker.waiting.changed(ids)

    def create_topics(self, names: Sequence[str], now: Now) -> None:
        controller = self._controller()
        wanted = [name for name in names if name not in self._creating]
        if controller is None or not wanted:
            return
        self._creating.update(wanted)
        topics = [
            CreatableTopic(name=name, num_partitions=BROKERS_DEFAULT, replication_factor=BROKERS_DEFAULT)
            for name in wanted
        ]

        def then(answer: object, now: Now) -> None:
            self._creating.difference_update(wanted)
            if isinstance(answer, CreateTopicsResponse):
                for result in answer.topics:
                    self._broker.note_creation(result.name, error_code(result.error_code))

        request = CreateTopicsRequest(topics=topics, timeout_ms=int(TIMEOUT_MS))
        self._peers.ask(controller, Purpose.FORWARD, CREATE_TOPICS, 7, request, TIMEOUT_MS, then, now)

    def create_offsets_topic(self, replication_factor: int, now: Now) -> None:
        controller = self._controller()
        if controller is None:
            self._broker.coordination.offsets_topic.not_created(now, is_passing=True)
            return
        config = self._broker.config
        settings = {
            "cleanup.policy": "compact",
            "compression.type": "producer",
            "segment.bytes": str(max(config.integer("offsets.topic.segment.bytes"), SMALLEST_SEGMENT_BYTES)),
        }
        topic = CreatableTopic(
            name=CONSUMER_OFFSETS,
            num_partitions=config.integer("offsets.topic.num.partitions"),
            replication_factor=replication_factor,
            configs=[CreatableTopicConfig(name=name, value=value) for name, value in settings.items()],
        )

        def then(answer: object, now: Now) -> None:
            code = answer.topics[0].error_code if isinstance(answer, CreateTopicsResponse) else None
            if code not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
                # No answer is no refusal: the controller that was asked is gone, and another one will be.
                is_passing = code in (None, ErrorCode.NOT_CONTROLLER)
                self._broker.coordination.offsets_topic.not_created(now, is_passing=is_passing)

        request = CreateTopicsRequest(topics=[topic], timeout_ms=int(TIMEOUT_MS))
        self._peers.ask(controller, Purpose.FORWARD, CREATE_TOPICS, 7, request, TIMEOUT_MS, then, now)
