"""Becoming what the cluster's metadata says: one image after the other, a few hundred partitions at a time.

A decision about ten thousand partitions is one image, and to become what it says takes a while. So it is a work that
pauses, and others are served in between. Meanwhile this broker is like one that lags: some of its partitions are what
the next image says, the others what they were, and `broker.image` is the old one until all is done. Whoever waits for
the metadata up to an offset (`Applied`) hears of it then, and the controller is told of nothing before.

What is deleted goes first, and with it what checkpoints say of it, so that nothing of that is believed of a topic of
the same name. Each partition that changes is seen by everybody concerned in the step in which it changes.
"""

from collections.abc import Generator
from functools import cache, partial
from typing import TYPE_CHECKING

from klamm.broker.announcing import announce_all, announce_to_followers
from klamm.controller.names import CONSUMER_OFFSETS
from klamm.ids import Now, TopicPartition
from klamm.metadata.delta import Changes
from klamm.metadata.image import Image, ResourceType
from klamm.partition.partition import Partition
from klamm.slicing import Pace

if TYPE_CHECKING:
    from klamm.broker.broker import Broker


class ImageChange:
    """One image on its way to be this broker's."""

    def __init__(self, broker: "Broker", image: Image, changes: Changes, pace: Pace) -> None:
        self._broker = broker
        self._image = image
        self._changes = changes
        self._pace = pace
        self._touched: list[Partition] = []
        self._gone: list[TopicPartition] = []

    def work(self, now: Now) -> Generator[None, Now, Now]:
        # A broker that has not opened its logs becomes what the image says when it opens them.
        if self._broker.is_open:
            now = yield from self._change_partitions(now)
        self._end(now)
        return now

    def _change_partitions(self, now: Now) -> Generator[None, Now, Now]:
        broker, partitions, image, changes = self._broker, self._broker.partitions, self._image, self._changes
        if any(resource.type == ResourceType.BROKER for resource in changes.configs_changed):
            broker.follow_config(image)
        if changes.brokers_changed:
            partitions.follow_brokers(image)
        for topic in changes.topics_deleted:
            for partition in partitions.delete(topic):
                now = yield from self._note(partition, now)
        self._settle(now)
        self._forget()
        settings_for = cache(partial(broker.settings_of, image))
        for topic in changes.topics_created:
            for index, state in enumerate(topic.partitions):
                touched = partitions.follow_state(topic, index, state, settings_for, now)
                now = yield from self._note(touched, now)
        for name in changes.partitions_changed:
            changed = image.topics[name.topic]
            state = changed.partitions[name.partition]
            touched = partitions.follow_state(changed, name.partition, state, settings_for, now)
            now = yield from self._note(touched, now)
        for resource in changes.configs_changed:
            for _ in partitions.follow_config(resource, settings_for):
                now = yield from self._note(None, now)
        self._settle(now)
        self._forget()
        return now

    def _note(self, partition: Partition | None, now: Now) -> Generator[None, Now, Now]:
        """One more was looked at, and perhaps changed."""
        if partition is not None:
            self._touched.append(partition)
        if self._pace.is_full():
            self._settle(now)
            now = yield
        return now

    def _settle(self, now: Now) -> None:
        """Everybody hears of the partitions that changed since it was settled last."""
        broker = self._broker
        touched, self._touched = self._touched, []
        self._gone += [partition.topic_partition for partition in touched if partition.deleted]
        for partition in touched:
            broker.replication.follow_leader(partition)
            if partition.deleted or not partition.is_leader:
                broker.waiting.failed(partition)
            if partition.topic_partition.topic == CONSUMER_OFFSETS:
                broker.coordination.look(partition, now)
        announce_all(touched, broker.waiting)
        announce_to_followers(touched, broker.waiting)

    def _forget(self) -> None:
        """What checkpoints say of partitions that are not ours any more."""
        gone, self._gone = self._gone, []
        if gone:
            self._broker.housekeeping.forget(gone)

    def _end(self, now: Now) -> None:
        broker, image, changes = self._broker, self._image, self._changes
        before, broker.image = broker.image, image
        if changes.brokers_changed:
            broker.absent.follow(before, image, changes.brokers_changed, now)
        if broker.is_open:
            broker.replication.follow(before, changes, now)
            broker.coordination.follow(changes, now)
        broker.waiting.applied(image.offset)
