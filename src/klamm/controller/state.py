"""What the controller knows: an image ahead of the committed one, and what it counts along for quick decisions.

`replay` is the only place where any of it changes. The image is made when somebody looks at it, so that a decision of
ten thousand records is replayed into one delta. What is counted along is there so that a lost broker costs its own
partitions and not everybody's, and a quiet cluster nothing.
"""

from typing import TypeAlias

from klamm.controller.names import can_collide, collision_key
from klamm.controller.placement import Load
from klamm.ids import NO_BROKER, BrokerId, Uuid
from klamm.metadata.delta import Delta
from klamm.metadata.image import Image, PartitionState
from klamm.metadata.records import (
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)

PartitionKey: TypeAlias = tuple[Uuid, int]


class State:
    __slots__ = (
        "_collisions",
        "_delta",
        "_held",
        "_image",
        "eligible",
        "leaderless",
        "leads",
        "load",
        "misled",
        "reassigning",
    )

    def __init__(self, image: Image) -> None:
        self._image = image
        self._delta: Delta | None = None
        self.load = Load()
        self.leads: dict[BrokerId, int] = {}
        """How many partitions each broker leads."""
        self.leaderless: set[PartitionKey] = set()
        self.eligible: set[PartitionKey] = set()
        """Partitions that have eligible leader replicas."""
        self.misled: set[PartitionKey] = set()
        """Partitions that are led, but not by their preferred replica."""
        self.reassigning: set[PartitionKey] = set()
        self._held: dict[BrokerId, set[PartitionKey]] = {}
        self._collisions = {collision_key(name): name for name in image.topics if can_collide(name)}
        for topic in image.topics.values():
            for index, state in enumerate(topic.partitions):
                self._count((topic.topic_id, index), None, state)

    @property
    def image(self) -> Image:
        if self._delta is not None:
            # Offset and epoch are the log's affair. Uncommitted, this image is nobody else's.
            self._image, _ = self._delta.finished(self._image.offset, self._image.epoch)
            self._delta = None
        return self._image

    def colliding(self, name: str) -> str | None:
        """An existing topic that differs from this name in dots and underscores alone."""
        return self._collisions.get(collision_key(name)) if can_collide(name) else None

    def held_by(self, *brokers: BrokerId) -> list[PartitionKey]:
        """The partitions that have a replica on one of these brokers, in an order that is the same everywhere."""
        return sorted(set().union(*(self._held.get(broker, ()) for broker in brokers)))

    def replay(self, record: MetadataRecord) -> None:
        if self._delta is None:
            self._delta = Delta(self._image)
        delta = self._delta
        if isinstance(record, PartitionRecord | PartitionChangeRecord):
            key = (record.topic_id, record.partition_id)
            old = delta.partition(*key) if isinstance(record, PartitionChangeRecord) else None
            delta.replay(record)
            self._count(key, old, delta.partition(*key))
            return
        if isinstance(record, TopicRecord):
            if can_collide(record.name):
                self._collisions[collision_key(record.name)] = record.name
        elif isinstance(record, RemoveTopicRecord):
            self._forget(record)
        delta.replay(record)

    def _forget(self, record: RemoveTopicRecord) -> None:
        assert self._delta is not None
        topic = self._delta.topic(record.topic_id)
        assert topic is not None, "a topic that does not exist was removed"
        for index, state in enumerate(topic.partitions):
            self._count((topic.topic_id, index), state, None)
        self._collisions.pop(collision_key(topic.name), None)

    def _count(self, key: PartitionKey, old: PartitionState | None, new: PartitionState | None) -> None:
        """One partition is another than it was; None is one that is not there."""
        before = old.replicas if old is not None else ()
        after = new.replicas if new is not None else ()
        if before != after:
            self._count_replicas(key, before, after)
        led_before = old.leader if old is not None else NO_BROKER
        led_after = new.leader if new is not None else NO_BROKER
        if led_before != led_after:
            for leader, change in ((led_before, -1), (led_after, 1)):
                if leader != NO_BROKER:
                    self.leads[leader] = self.leads.get(leader, 0) + change
        is_led = led_after != NO_BROKER
        for keys, belongs in (
            (self.leaderless, new is not None and not is_led),
            (self.eligible, new is not None and bool(new.elr)),
            (self.misled, is_led and led_after != after[0]),
            (self.reassigning, new is not None and bool(new.adding or new.removing)),
        ):
            if belongs:
                keys.add(key)
            else:
                keys.discard(key)

    def _count_replicas(self, key: PartitionKey, before: tuple[BrokerId, ...], after: tuple[BrokerId, ...]) -> None:
        if before:
            self.load.remove(before)
        if after:
            self.load.add(after)
        for broker in before:
            if broker not in after:
                self._held[broker].discard(key)
        for broker in after:
            if broker not in before:
                self._held.setdefault(broker, set()).add(key)
