"""The topic of the groups' offsets: which of its partitions a group belongs to, who leads that, and how it comes to be.

It is created when somebody asks for a coordinator first, with the replicas that `offsets.topic.replication.factor` asks
for, or as many as there are registered brokers. A broker that has just started waits a little for those that may be
starting as well. It does not wait for one that was active and is gone: a dead broker is given its replicas like
everybody else and catches up when it returns, as in Kafka.
"""

import sys
from array import array
from collections.abc import Collection
from functools import lru_cache
from operator import mul
from typing import TYPE_CHECKING

from klamm.broker.topics import leader_of
from klamm.controller.names import CONSUMER_OFFSETS
from klamm.ids import NO_BROKER, BrokerId, Now
from klamm.metadata.delta import Changes

if TYPE_CHECKING:
    from klamm.broker.broker import Broker

FOR_THE_OTHERS_MS = 10_000.0
"""So long after its start a broker waits for the others before the offsets get fewer replicas than they should."""
CREATION_MS = 30_000.0
"""After this long without the topic, or a word of it, its creation is asked for again."""
PATIENCE_MS = 1_000.0
"""So long may somebody wait for the topic; then he is told to ask again. librdkafka asks again after a second."""
RETRY_MS = 30.0
"""Between two tries, as long as somebody waits and there is no controller to be asked."""


class OffsetsTopic:
    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self.is_creating = False
        """Whether somebody was asked to create it."""
        self._created_by_ms = 0.0
        self.was_seen = False
        """Whether this broker has ever heard of it, since it began."""
        self._wanted_until_ms = 0.0
        """Until then somebody waits for it."""
        self._retry_ms: float | None = None
        self._begun_ms = 0.0
        self._seen_active: set[BrokerId] = set()
        """Since this broker began: who is of these has started, whatever became of it."""

    def partition_of(self, group_id: str) -> int:
        """Which partition a group belongs to: the hash is Java's, of the name's UTF-16 code units."""
        topic = self._broker.image.topics.get(CONSUMER_OFFSETS)
        if topic is None:
            return -1
        return (_java_hash(group_id) & 0x7FFFFFFF) % len(topic.partitions)

    def coordinator_of(self, group_id: str, now: Now) -> BrokerId:
        """Who coordinates this group; NO_BROKER if nobody does at present."""
        state = self._broker.image.partition(CONSUMER_OFFSETS, self.partition_of(group_id))
        if state is None:
            return NO_BROKER
        return leader_of(state, self._broker.image, self._doubted(now))[1]

    def is_moving(self, group_id: str, now: Now) -> bool:
        """Whether its coordinator is dead, or may be, and the controller has not said yet who is the next."""
        state = self._broker.image.partition(CONSUMER_OFFSETS, self.partition_of(group_id))
        return state is not None and state.leader in self._doubted(now)

    def _doubted(self, now: Now) -> Collection[BrokerId]:
        absent = self._broker.absent
        return absent.among(self._broker.image, now) | absent.suspects

    def begin(self, now: Now) -> None:
        """This broker serves from now on."""
        self._begun_ms = now.monotonic_ms
        self.was_seen = CONSUMER_OFFSETS in self._broker.image.topics
        self._note_active()

    def wait_for(self, now: Now) -> bool:
        """Have the topic of the offsets created, unless it is there; whether it is worth waiting for."""
        if CONSUMER_OFFSETS in self._broker.image.topics:
            return True
        self._wanted_until_ms = now.monotonic_ms + PATIENCE_MS
        if self.is_creating and now.monotonic_ms < self._created_by_ms:
            return True
        if self._others_may_be_starting(now):
            # One replica is not what anybody wants for good.
            return False
        self._created_by_ms = now.monotonic_ms + CREATION_MS
        self._create(now)
        return self.is_creating

    def not_created(self, now: Now, *, is_passing: bool = False) -> None:
        """What is in the way may be passing, as that no controller is there: then it is tried again for who waits."""
        if is_passing and now.monotonic_ms < self._wanted_until_ms:
            self._retry_ms = now.monotonic_ms + RETRY_MS
            self._broker.coordination.wake_at(self._retry_ms)
            return
        self.is_creating = False
        self._broker.waiting.changed(self)

    def tick(self, now: Now) -> None:
        if self._retry_ms is None:
            return
        if self._retry_ms > now.monotonic_ms:
            self._broker.coordination.wake_at(self._retry_ms)
            return
        self._retry_ms = None
        if self.is_creating:
            self._create(now)

    def follow(self, changes: Changes) -> None:
        """The metadata moved on: perhaps it is there."""
        if changes.brokers_changed:
            self._note_active()
        if CONSUMER_OFFSETS in self._broker.image.topics:
            self.was_seen, self.is_creating = True, False
        if changes.topics_created or changes.partitions_changed:
            self._broker.waiting.changed(self)

    def _create(self, now: Now) -> None:
        wanted = self._broker.config.integer("offsets.topic.replication.factor")
        self.is_creating = True
        self._broker.errands.create_offsets_topic(max(1, min(wanted, len(self._broker.image.brokers))), now)

    def _others_may_be_starting(self, now: Now) -> bool:
        """Fewer than are wanted have been active yet, and it is early."""
        config, registered = self._broker.config, len(self._broker.image.brokers)
        expected = min(config.integer("offsets.topic.replication.factor"), max(len(config.voters), registered))
        return len(self._seen_active) < expected and now.monotonic_ms < self._begun_ms + FOR_THE_OTHERS_MS

    def _note_active(self) -> None:
        self._seen_active |= {broker.broker_id for broker in self._broker.image.brokers.values() if broker.is_active}


_powers = [1]
"""Of 31, modulo 2 to the 32nd: as many as the longest name so far needed."""


@lru_cache(4_096)
def _java_hash(text: str) -> int:
    """As one sum, because a name may have thousands of letters."""
    units = array("H", text.encode("utf-16-le" if sys.byteorder == "little" else "utf-16-be", "surrogatepass"))
    while len(_powers) < len(units):
        _powers.append(_powers[-1] * 31 & 0xFFFFFFFF)
    found: int = sum(map(mul, reversed(units), _powers))
    return found & 0xFFFFFFFF
