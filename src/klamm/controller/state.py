"""What the controller knows: an image ahead of the committed one, and what it counts along for quick decisions.

`replay` is the only place where any of it changes. The image is made when somebody looks at it, so that a decision of
ten thousand records is replayed into one delta.
"""

from klamm.controller.names import can_collide, collision_key
from klamm.controller.placement import Load
from klamm.metadata.delta import Delta
from klamm.metadata.image import Image
from klamm.metadata.records import (
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)


class State:
    __slots__ = ("_collisions", "_delta", "_image", "load")

    def __init__(self, image: Image) -> None:
        self._image = image
        self._delta: Delta | None = None
        self.load = Load(state.replicas for topic in image.topics.values() for state in topic.partitions)
        self._collisions = {collision_key(name): name for name in image.topics if can_collide(name)}

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

    def replay(self, record: MetadataRecord) -> None:
        if self._delta is None:
            self._delta = Delta(self._image)
        if isinstance(record, PartitionRecord):
            self.load.add(tuple(record.replicas))
        elif isinstance(record, PartitionChangeRecord):
            if record.replicas is not None:
                self.load.remove(self._delta.partition(record.topic_id, record.partition_id).replicas)
                self.load.add(tuple(record.replicas))
        elif isinstance(record, TopicRecord):
            if can_collide(record.name):
                self._collisions[collision_key(record.name)] = record.name
        elif isinstance(record, RemoveTopicRecord):
            self._forget(record)
        self._delta.replay(record)

    def _forget(self, record: RemoveTopicRecord) -> None:
        assert self._delta is not None
        topic = self._delta.topic(record.topic_id)
        assert topic is not None, "a topic that does not exist was removed"
        for state in topic.partitions:
            self.load.remove(state.replicas)
        self._collisions.pop(collision_key(topic.name), None)
