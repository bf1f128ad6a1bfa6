"""Replica throttles: partitions that are moved may take only so much of the network (KIP-73).

A topic names replicas that are throttled, on the leader's side and on the follower's, as `partition:broker` pairs or
`*`; a broker has a rate for each side. Only what catches up is held back, never a replica that is in sync.

The rate is kept as a debt: what was sent takes its time at that rate, and while more than a second of it is open,
nothing more is given.
"""

from collections.abc import Iterable

from klamm.config.broker_config import BrokerConfig
from klamm.ids import BrokerId, Now, TopicPartition
from klamm.metadata.image import ConfigResource, Image, ResourceType

ALLOWED_DEBT_MS = 1_000.0
NO_LIMIT = 2**63 - 1
EVERYTHING = "*"


class Throttle:
    """One side: whom it holds back, and how much it has let through."""

    __slots__ = ("_all_of", "_paid_ms", "_rate", "_replicas", "topic_setting")

    def __init__(self, topic_setting: str) -> None:
        self.topic_setting = topic_setting
        self._rate = NO_LIMIT
        self._all_of: set[str] = set()
        self._replicas: set[TopicPartition] = set()
        self._paid_ms = 0.0
        """When all that was let through will have taken its time."""

    @property
    def is_limited(self) -> bool:
        return self._rate < NO_LIMIT and bool(self._all_of or self._replicas)

    def holds(self, partition: TopicPartition) -> bool:
        return partition in self._replicas or partition.topic in self._all_of

    def count(self, size_bytes: int, now: Now) -> None:
        # At a rate of nothing a byte takes for ever; for ever is looked at again after a while.
        self._paid_ms = max(self._paid_ms, now.monotonic_ms) + size_bytes / max(self._rate, 1) * 1_000

    def free_ms(self, now: Now) -> float | None:
        """When more may be let through; None if that is now."""
        free_ms = self._paid_ms - ALLOWED_DEBT_MS
        return free_ms if free_ms > now.monotonic_ms else None

    def follow(self, image: Image, rate: int, me: BrokerId, *, are_same: bool = False) -> bool:
        """Whether others are held back than before, or at another rate. No topic is looked at if they are the same."""
        before = self._rate, set(self._all_of), set(self._replicas)
        if rate != self._rate:
            # A debt at the old rate is no debt at the new one.
            self._rate, self._paid_ms = rate, 0.0
        if are_same:
            return before[0] != rate
        self._all_of.clear()
        self._replicas.clear()
        for resource, values in image.configs.items():
            text = values.get(self.topic_setting, "") if resource.type == ResourceType.TOPIC else ""
            for entry in filter(None, map(str.strip, text.split(","))):
                if entry == EVERYTHING:
                    self._all_of.add(resource.name)
                    continue
                index, _, broker_id = entry.partition(":")
                if int(broker_id) == me:
                    self._replicas.add(TopicPartition(resource.name, int(index)))
        return before != (self._rate, self._all_of, self._replicas)


class Throttles:
    def __init__(self) -> None:
        self.leader = Throttle("leader.replication.throttled.replicas")
        self.follower = Throttle("follower.replication.throttled.replicas")

    def follow(self, image: Image, config: BrokerConfig, me: BrokerId, *, are_same: bool = False) -> bool:
        """The settings are others, or may be. Whether we, as a follower, may ask for other things than before."""
        rate = config.integer("leader.replication.throttled.rate")
        self.leader.follow(image, rate, me, are_same=are_same)
        rate = config.integer("follower.replication.throttled.rate")
        return self.follower.follow(image, rate, me, are_same=are_same)

    def are_same(self, before: Image, after: Image, resources: Iterable[ConfigResource]) -> bool:
        """Whether nobody else is held back after these settings changed: there may be many, and hardly ever these."""
        names = (self.leader.topic_setting, self.follower.topic_setting)
        return not any(
            name in image.config_of(resource) for resource in resources for image in (before, after) for name in names
        )
