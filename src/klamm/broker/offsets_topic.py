"""The topic of the groups' offsets: which of its partitions a group belongs to, who leads that, and how it comes to be.

It is created when somebody asks for a coordinator first, with the replicas that `offsets.topic.replication.factor` asks
for, or as many as there are brokers. A broker that has just started waits for the others a little before it is content
with fewer.
"""

import sys
from array import array
from functools import lru_cache
from operator import mul
from typing import TYPE_CHECKING

from klamm.broker.topics import leader_of
from klamm.controller.names import CONSUMER_OFFSETS
from klamm.ids import NO_BROKER, BrokerId, Now

if TYPE_CHECKING:
    from klamm.broker.broker import Broker

FOR_THE_OTHERS_MS = 10_000.0
"""So long after its start a broker waits for the others before the offsets get fewer replicas than they should."""
CREATION_MS = 30_000.0
"""After this long without the topic, or a word of it, its creation is asked for again."""


class OffsetsTopic:
    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self.is_creating = False
        """Whether somebody was asked to create it."""
        self._created_by_ms = 0.0
        self._begun_ms = 0.0

    def partition_of(self, group_id: str) -> int:
        """Which partition a group belongs to: the hash is Java's, of the name's UTF-16 code units."""
        topic = self._broker.image.topics.get(CONSUMER_OFFSETS)
        if topic is None:
            return -1
        return (_java_hash(group_id) & 0x7FFFFFFF) % len(topic.partitions)

    def coordinator_of(self, group_id: str) -> BrokerId:
        """Who coordinates this group; NO_BROKER if nobody does at present."""
        state = self._broker.image.partition(CONSUMER_OFFSETS, self.partition_of(group_id))
        if state is None:
            return NO_BROKER
        return leader_of(state, self._broker.image, self._broker.absent.suspects)[1]

    def begin(self, now: Now) -> None:
        """This broker serves from now on."""
        self._begun_ms = now.monotonic_ms

    def wait_for(self, now: Now) -> bool:
        """Have the topic of the offsets created, unless it is there; whether it is worth waiting for."""
        image = self._broker.image
        if CONSUMER_OFFSETS in image.topics or (self.is_creating and now.monotonic_ms < self._created_by_ms):
            return True
        brokers = sum(broker.is_active for broker in image.brokers.values())
        wanted = self._broker.config.integer("offsets.topic.replication.factor")
        expected = max(len(self._broker.config.voters), len(image.brokers))
        if brokers < min(wanted, expected) and now.monotonic_ms < self._begun_ms + FOR_THE_OTHERS_MS:
            # They are just starting, and one replica is not what anybody wants for good.
            return False
        self.is_creating = True
        self._created_by_ms = now.monotonic_ms + CREATION_MS
        self._broker.errands.create_offsets_topic(max(1, min(wanted, brokers)), now)
        return self.is_creating

    def not_created(self, now: Now) -> None:
        self.is_creating = False
        self._broker.waiting.changed(self)

    def follow(self) -> None:
        """The metadata moved on: perhaps it is there."""
        if self.is_creating and CONSUMER_OFFSETS in self._broker.image.topics:
            self.is_creating = False
            self._broker.waiting.changed(self)


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
