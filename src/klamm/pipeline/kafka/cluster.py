"""The cluster as one reader sees it: which brokers, which topics, who leads; and a connection to each that is asked.

Whoever does not answer costs a look around: the connection is closed, the metadata is asked again from anybody who is
known, bootstrap servers and brokers alike, and the question is put again, until it is answered or patience is over.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from klamm.errors import RETRIABLE, ErrorCode, error_code
from klamm.ids import NO_BROKER
from klamm.pipeline.kafka.connection import Address, Connection
from klamm.pipeline.kafka.problems import ClusterProblem, NoAnswer, Refused
from klamm.pipeline.kafka.settings import ClusterSettings
from klamm.wire.apis import METADATA
from klamm.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse, MetadataResponseTopic

FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.02, 1.0

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class TopicSeen:
    """`leaders` has every partition; its leader is NO_BROKER while there is none."""

    name: str
    topic_id: bytes
    leaders: dict[int, int]
    is_internal: bool = False


@dataclass(frozen=True, slots=True)
class ClusterSeen:
    cluster_id: str
    brokers: dict[int, Address]
    topics: dict[str, TopicSeen]
    refused: dict[str, ErrorCode]
    """Topics that were asked for by name, and why there is nothing to say about them."""


class Cluster:
    def __init__(self, settings: ClusterSettings) -> None:
        self.settings = settings
        self.seen: ClusterSeen | None = None
        self._connections: dict[Address, Connection] = {}
        self._no_later_than = math.inf

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    def look(self, topics: Sequence[str] | None) -> ClusterSeen:
        """The metadata of these topics, or of all. Nothing is created by asking."""
        return self.patiently(lambda: self.look_once(topics), "metadata")

    def look_once(self, topics: Sequence[str] | None) -> ClusterSeen:
        """The same in one attempt, for those who try again themselves."""
        connection = self.anybody()
        asked = None if topics is None else [MetadataRequestTopic(name=name) for name in topics]
        try:
            request = MetadataRequest(topics=asked, allow_auto_topic_creation=False)
            response: MetadataResponse = connection.ask(METADATA, request)
        except NoAnswer:
            self.forget(connection)
            raise
        if not response.brokers:
            raise NoAnswer(f"{connection.address} knows no brokers yet")
        self.seen = _seen(response)
        return self.seen

    def patiently(self, action: Callable[[], T], what: str, patience_seconds: float | None = None) -> T:
        """`action` until it is not answered with a problem that may pass. Where `patience_seconds` is given no answer
        is waited for any longer either."""
        patience = self.patience_seconds if patience_seconds is None else patience_seconds
        deadline = time.monotonic() + patience
        if patience_seconds is None:
            return self._until(deadline, action, what, patience)
        self._no_later_than = deadline
        try:
            return self._until(deadline, action, what, patience)
        finally:
            self._no_later_than = math.inf

    def _until(self, deadline: float, action: Callable[[], T], what: str, patience_seconds: float) -> T:
        pause, problem = FIRST_PAUSE_SECONDS, ""
        while True:
            try:
                return action()
            except NoAnswer as error:
                problem = str(error)
            except Refused as error:
                if error.code not in RETRIABLE:
                    raise
                problem = str(error)
            if time.monotonic() + pause > deadline:
                raise NoAnswer(self._gave_up(what, problem, patience_seconds))
            time.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE_SECONDS)

    @property
    def patience_seconds(self) -> float:
        return self.settings.first_patience_seconds if self.seen is None else self.settings.patience_seconds

    def connection(self, address: Address) -> Connection:
        found = self._connections.get(address)
        if found is None:
            settings = self.settings
            found = Connection(address, settings.request_timeout_seconds, settings.client_id, self._no_later_than)
            self._connections[address] = found
        found.no_later_than = self._no_later_than
        return found

    def broker(self, broker_id: int) -> Connection:
        seen = self.seen
        if seen is None or broker_id not in seen.brokers:
            raise NoAnswer(f"broker {broker_id} is not among the cluster's brokers")
        return self.connection(seen.brokers[broker_id])

    def forget(self, connection: Connection) -> None:
        """After a problem: the next one who asks connects anew."""
        connection.close()
        if self._connections.get(connection.address) is connection:
            del self._connections[connection.address]

    def anybody(self) -> Connection:
        """A connection to some broker: one that is open, or the first that takes one."""
        for connection in self._connections.values():
            if not connection.has_unanswered:
                return self.connection(connection.address)
        problems = []
        for address in self._known_addresses():
            try:
                return self.connection(address)
            except NoAnswer as error:
                problems.append(str(error))
        raise NoAnswer("; ".join(problems))

    def _known_addresses(self) -> list[Address]:
        brokers = () if self.seen is None else self.seen.brokers.values()
        return list(dict.fromkeys((*brokers, *self.settings.bootstrap)))

    def _gave_up(self, what: str, problem: str, patience_seconds: float) -> str:
        if self.seen is None:
            servers = ",".join(map(str, self.settings.bootstrap))
            return (
                f"No cluster answers at {servers} ({problem}). Check that it runs and that kafka.bootstrap.servers "
                "names its brokers as this machine reaches them; every executor has to reach them too."
            )
        return (
            f"The cluster stopped answering ({what}: {problem}); this was tried again for "
            f"{patience_seconds:.0f} s. Check its brokers; the query can be restarted and goes on where "
            "it was. kafkaConsumer.pollTimeoutMs sets how long to wait."
        )


def _seen(response: MetadataResponse) -> ClusterSeen:
    named = [topic for topic in response.topics if topic.name is not None]
    return ClusterSeen(
        cluster_id=response.cluster_id or "",
        brokers={broker.node_id: Address(broker.host, broker.port) for broker in response.brokers},
        topics={str(topic.name): _topic(topic) for topic in named if topic.error_code == ErrorCode.NONE},
        refused={str(topic.name): error_code(topic.error_code) for topic in named if topic.error_code},
    )


def _topic(topic: MetadataResponseTopic) -> TopicSeen:
    leaders = {part.partition_index: part.leader_id if not part.error_code else NO_BROKER for part in topic.partitions}
    # An offline replica elsewhere is an error code too, but the leader serves.
    leaders |= {part.partition_index: part.leader_id for part in topic.partitions if part.leader_id >= 0}
    return TopicSeen(str(topic.name), bytes(topic.topic_id), dict(sorted(leaders.items())), topic.is_internal)


def refused(code: int, what: str) -> ClusterProblem:
    known = error_code(code)
    return Refused(known, f"{what}: {known.name}")
