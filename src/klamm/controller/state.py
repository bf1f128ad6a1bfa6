"""What the controller knows: an image ahead of the committed one, and what it counts along for quick decisions.

`replay` is the only place where any of it changes. The image is made when somebody looks at it, so that a decision of
ten thousand records is replayed into one delta. (What is new and large is a `Draft` before: read and counted in slices,
and then taken up at once.) What is counted along is there so that a lost broker costs its own
partitions and not everybody's, and a quiet cluster nothing.
"""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import TypeAlias

from klamm.controller.names import can_collide, collision_key
from klamm.controller.placement import Load
from klamm.ids import NO_BROKER, BrokerId, Uuid
from klamm.metadata.delta import Delta
from klamm.metadata.image import Image, PartitionState
from klamm.metadata.partitions import new_partition
from klamm.metadata.records import (
    ConfigRecord,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)

PartitionKey: TypeAlias = tuple[Uuid, int]


class Counts:
    """What is counted along of partitions, wherever they stand."""

    __slots__ = ("_held", "eligible", "leaderless", "leads", "load", "misled", "reassigning")

    def __init__(self) -> None:
        self.load = Load()
        self.leads: dict[BrokerId, int] = {}
        """How many partitions each broker leads."""
        self.leaderless: dict[PartitionKey, None] = {}
        self.eligible: dict[PartitionKey, None] = {}
        """Partitions that have eligible leader replicas."""
        self.misled: dict[PartitionKey, None] = {}
        """Partitions that are led, but not by their preferred replica."""
        self.reassigning: dict[PartitionKey, None] = {}
        self._held: dict[BrokerId, dict[PartitionKey, None]] = {}

    def held_by(self, *brokers: BrokerId) -> list[PartitionKey]:
        """The partitions that have a replica on one of these brokers, in the order in which they came there."""
        if len(brokers) == 1:
            return list(self._held.get(brokers[0], ()))
        return list(dict.fromkeys(key for broker in sorted(brokers) for key in self._held.get(broker, ())))

    def count(self, key: PartitionKey, old: PartitionState | None, new: PartitionState | None) -> None:
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
                keys[key] = None
            else:
                keys.pop(key, None)

    def merge(self, other: "Counts") -> None:
        """Partitions that were not there before, counted elsewhere."""
        self.load.merge(other.load)
        for leader, count in other.leads.items():
            self.leads[leader] = self.leads.get(leader, 0) + count
        self.leaderless |= other.leaderless
        self.eligible |= other.eligible
        self.misled |= other.misled
        self.reassigning |= other.reassigning
        for broker, keys in other._held.items():
            self._held.setdefault(broker, {}).update(keys)

    def _count_replicas(self, key: PartitionKey, before: tuple[BrokerId, ...], after: tuple[BrokerId, ...]) -> None:
        if before:
            self.load.remove(before)
        if after:
            self.load.add(after)
        for broker in before:
            if broker not in after:
                self._held[broker].pop(key, None)
        for broker in after:
            if broker not in before:
                self._held.setdefault(broker, {})[key] = None


class Draft(Counts):
    """New topics and partitions before they are proposed: read and counted as their records are decided, so that
    thousands of them become part of the state at once."""

    __slots__ = ("configs", "partitions", "topics")

    def __init__(self) -> None:
        super().__init__()
        self.topics: dict[Uuid, str] = {}
        self.partitions: dict[Uuid, list[tuple[int, PartitionState]]] = {}
        self.configs: list[ConfigRecord] = []

    def replay(self, record: MetadataRecord) -> None:
        if isinstance(record, PartitionRecord):
            state = new_partition(record)
            self.partitions.setdefault(record.topic_id, []).append((record.partition_id, state))
            self.count((record.topic_id, record.partition_id), None, state)
        elif isinstance(record, TopicRecord):
            self.topics[record.topic_id] = record.name
        else:
            assert isinstance(record, ConfigRecord), "a draft holds what is new"
            self.configs.append(record)


class State(Counts):
    __slots__ = ("_collisions", "_delta", "_image", "_leaving")

    def __init__(self, image: Image) -> None:
        super().__init__()
        self._image = image
        self._delta: Delta | None = None
        self._leaving: list[BrokerId] = []
        self._collisions = {collision_key(name): name for name in image.topics if can_collide(name)}
        for topic in image.topics.values():
            for index, state in enumerate(topic.partitions):
                self.count((topic.topic_id, index), None, state)

    @property
    def image(self) -> Image:
        if self._delta is not None:
            # Offset and epoch are the log's affair. Uncommitted, this image is nobody else's.
            self._image, _ = self._delta.finished(self._image.offset, self._image.epoch)
            self._delta = None
        return self._image

    @property
    def leaving(self) -> frozenset[BrokerId]:
        """Brokers whose partitions are being handed over, some at a time. They may not lead any more, nor join."""
        return frozenset(self._leaving)

    @contextmanager
    def without(self, brokers: Collection[BrokerId]) -> Iterator[None]:
        """While these are on their way out."""
        self._leaving += brokers
        try:
            yield
        finally:
            for broker in brokers:
                self._leaving.remove(broker)

    def colliding(self, name: str) -> str | None:
        """An existing topic that differs from this name in dots and underscores alone."""
        return self._collisions.get(collision_key(name)) if can_collide(name) else None

    def replay(self, record: MetadataRecord) -> None:
        if self._delta is None:
            self._delta = Delta(self._image)
        delta = self._delta
        if isinstance(record, PartitionRecord | PartitionChangeRecord):
            key = (record.topic_id, record.partition_id)
            old = delta.partition(*key) if isinstance(record, PartitionChangeRecord) else None
            delta.replay(record)
            self.count(key, old, delta.partition(*key))
            return
        if isinstance(record, TopicRecord):
            self._note_name(record.name)
        elif isinstance(record, RemoveTopicRecord):
            self._forget(record)
        delta.replay(record)

    def adopt(self, draft: Draft) -> None:
        """Replay all records of a draft."""
        if self._delta is None:
            self._delta = Delta(self._image)
        for topic_id, name in draft.topics.items():
            self._note_name(name)
            self._delta.add_topic(name, topic_id)
        for topic_id, partitions in draft.partitions.items():
            self._delta.add_partitions(topic_id, partitions)
        for record in draft.configs:
            self._delta.replay(record)
        self.merge(draft)

    def _note_name(self, name: str) -> None:
        if can_collide(name):
            self._collisions[collision_key(name)] = name

    def _forget(self, record: RemoveTopicRecord) -> None:
        assert self._delta is not None
        topic = self._delta.topic(record.topic_id)
        assert topic is not None, "a topic that does not exist was removed"
        for index, state in enumerate(topic.partitions):
            self.count((topic.topic_id, index), state, None)
        self._collisions.pop(collision_key(topic.name), None)
