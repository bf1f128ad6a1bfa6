"""What every client needs: connections to brokers, answers or their absence, and who leads what.

A request is answered once: with the response, or with None if there is none in time, or the connection broke. A client
that waited in vain closes the connection, as real ones do: what comes late is not heard. A client may be paused: what
happens meanwhile, and what it meant to do, comes about when it goes on.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from klamm.ids import NO_BROKER, BrokerId, Epoch, Uuid
from klamm.node.events import Closed, Event, Opened, Received, Refused
from klamm.sim.network import Host, Network
from klamm.sim.world import World
from klamm.wire.apis import METADATA
from klamm.wire.client_connection import ClientConnection
from klamm.wire.headers import NO_TAGS
from klamm.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse

METADATA_VERSION = 12
METADATA_MS = 2_000.0
REQUEST_MS = 3_000.0

Then: TypeAlias = Callable[[Any], None]
Line: TypeAlias = tuple[BrokerId, bool]
"""A connection: to whom, and whether apart."""


@dataclass(slots=True)
class Lead:
    """Who leads a partition, as the client knows it."""

    leader: BrokerId
    epoch: Epoch


@dataclass(slots=True)
class KnownTopic:
    topic_id: Uuid
    partitions: dict[int, Lead] = field(default_factory=dict)


class Desk(NamedTuple):
    """Where a client is, and which brokers it knows of."""

    world: World
    network: Network
    name: str
    port: int
    brokers: dict[BrokerId, int]


class Client(Host):
    def __init__(self, desk: Desk) -> None:
        super().__init__(desk.name, desk.port)
        self.world = desk.world
        self.chance = desk.world.chance(desk.name)
        self.brokers = desk.brokers
        self.topics: dict[str, KnownTopic] = {}
        self.has_ended = False
        self.is_paused = False
        self._missed: list[Callable[[], None]] = []
        self._network = desk.network
        self._connections: dict[Line, ClientConnection] = {}
        self._lines: dict[int, Line] = {}
        self._next_number = 0

    def end(self) -> None:
        """Nothing more is asked, and nothing more is heard."""
        self.has_ended = True
        for connection in list(self._connections.values()):
            self._network.close(self, connection.id)
        self._connections.clear()

    def pause(self) -> None:
        self.is_paused = True

    def resume(self) -> None:
        """It hears what it has missed, and does what it meant to, in the order in which it was due."""
        self.is_paused = False
        missed, self._missed = self._missed, []
        for call in missed:
            self._when_awake(call)

    def later(self, delay_ms: float, call: Callable[[], None]) -> None:
        self.world.after(delay_ms, lambda: self._when_awake(call))

    def _when_awake(self, call: Callable[[], None]) -> None:
        if self.is_paused:
            self._missed.append(call)
        elif not self.has_ended:
            call()

    # Asking.

    def ask(
        self,
        broker: BrokerId,
        api: int,
        version: int,
        request: object,
        then: Then,
        within_ms: float = REQUEST_MS,
        *,
        apart: bool = False,
        tags: bytes = NO_TAGS,
    ) -> None:
        """`apart` from other talk with this broker, over a connection of its own: answers come in the order of asking,
        and some take long."""
        line = (broker, apart)
        connection = self._connections.get(line) or self._dial(line)
        deadline_ms = self.world.now_ms + within_ms
        connection.ask(api, version, request, deadline_ms, lambda answer, now: then(answer), tags=tags)
        asked = connection.asked[-1]

        def late() -> None:
            if asked in connection.asked:
                self._give_up(line, connection)

        self.world.at(deadline_ms, lambda: self._when_awake(late))
        if connection.is_open:
            self._send(connection)

    def say(self, broker: BrokerId, api: int, version: int, request: object) -> None:
        """What is not answered (acks=0)."""
        line = (broker, False)
        connection = self._connections.get(line) or self._dial(line)
        connection.ask(api, version, request, 0.0, lambda answer, now: None)
        connection.asked.pop()
        if connection.is_open:
            self._send(connection)

    def hang_up(self, broker: BrokerId) -> None:
        """What is asked of it next goes over a new connection."""
        connection = self._connections.get((broker, False))
        if connection is not None:
            self._give_up((broker, False), connection)

    def any_broker(self) -> BrokerId:
        return self.chance.choice(sorted(self.brokers))

    def refresh(self, names: list[str], then: Callable[[], None]) -> None:
        """Who leads these topics now, if anybody answers; `then` in any case."""
        request = MetadataRequest(
            topics=[MetadataRequestTopic(name=name) for name in names], allow_auto_topic_creation=False
        )

        def heard(answer: MetadataResponse | None) -> None:
            for topic in answer.topics if answer is not None else ():
                assert topic.name is not None
                if topic.error_code:
                    self.topics.pop(topic.name, None)
                else:
                    self._learn(topic)
            then()

        self.ask(self.any_broker(), METADATA, METADATA_VERSION, request, heard, METADATA_MS)

    def _learn(self, topic: Any) -> None:
        known = self.topics.get(topic.name)
        if known is None or known.topic_id != topic.topic_id:
            known = self.topics[topic.name] = KnownTopic(topic.topic_id)
        for partition in topic.partitions:
            old = known.partitions.get(partition.partition_index)
            if old is None or partition.leader_epoch >= old.epoch:
                # What an older broker says of an older leader is not believed.
                known.partitions[partition.partition_index] = Lead(partition.leader_id, partition.leader_epoch)

    def leader_of(self, topic: str, index: int) -> BrokerId:
        known = self.topics.get(topic)
        lead = known.partitions.get(index) if known is not None else None
        return NO_BROKER if lead is None else lead.leader

    # Connections.

    def _dial(self, line: Line) -> ClientConnection:
        self._next_number -= 1
        connection = self._connections[line] = ClientConnection(self._next_number, self.name)
        self._lines[connection.id] = line
        self._network.dial(self, connection.id, self.brokers[line[0]])
        return connection

    def _send(self, connection: ClientConnection) -> None:
        pieces = connection.take_outgoing()
        self._network.send(self, connection.id, b"".join(bytes(piece) for piece in pieces))  # type: ignore[call-overload]

    def _give_up(self, line: Line, connection: ClientConnection) -> None:
        self._network.close(self, connection.id)
        self._lost(line, connection)

    def _lost(self, line: Line, connection: ClientConnection) -> None:
        if self._connections.get(line) is connection:
            del self._connections[line]
        self._lines.pop(connection.id, None)
        asked, connection.is_open = list(connection.asked), False
        connection.asked.clear()
        for each in asked:
            if not self.has_ended:
                each.then(None, None)

    def hear(self, event: Event) -> None:
        assert isinstance(event, Opened | Refused | Closed | Received)
        if self.is_paused:
            self._missed.append(lambda: self.hear(event))
            return
        line = self._lines.get(event.connection)
        connection = self._connections.get(line) if line is not None else None
        if line is None or connection is None or connection.id != event.connection or self.has_ended:
            return
        if isinstance(event, Received):
            for frame in event.frames:
                asked, answer = connection.answered(frame)
                asked.then(answer, None)
        elif isinstance(event, Opened):
            connection.is_open = True
            self._send(connection)
        else:
            self._lost(line, connection)
