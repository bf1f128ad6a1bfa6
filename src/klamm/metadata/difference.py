"""What is different between two images, when there are no records that say so: a snapshot took their place."""

from collections.abc import Generator

from klamm.ids import TopicPartition
from klamm.metadata.delta import Changes
from klamm.metadata.image import Image


def changes_between(old: Image, new: Image) -> Generator[None, None, Changes]:
    """Pausing after each topic: there may be many."""
    changes = Changes(features_changed=old.features != new.features)
    for name in sorted({*old.topics, *new.topics}):
        before, after = old.topics.get(name), new.topics.get(name)
        if before is not None and (after is None or after.topic_id != before.topic_id):
            changes.topics_deleted.append(before)
        if after is not None and (before is None or after.topic_id != before.topic_id):
            changes.topics_created.append(after)
        elif before is not None and after is not None:
            changes.partitions_changed += [
                TopicPartition(name, index)
                for index, state in enumerate(after.partitions)
                if index >= len(before.partitions) or before.partitions[index] != state
            ]
        yield
    changes.configs_changed = sorted(
        resource for resource in {*old.configs, *new.configs} if old.config_of(resource) != new.config_of(resource)
    )
    changes.brokers_changed = sorted(
        broker for broker in {*old.brokers, *new.brokers} if old.brokers.get(broker) != new.brokers.get(broker)
    )
    return changes
