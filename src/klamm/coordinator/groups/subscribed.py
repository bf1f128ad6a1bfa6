"""Which topics a group reads, and whether they are still the same.

Members name topics, or give a pattern; what a pattern matches is written down, so that every member with the same
pattern means the same topics, and the next coordinator too. Of all topics together the group remembers a hash: their
ids, partitions and racks. When it is another one, there is something to assign anew.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import chain

from klamm.coordinator.groups.assignors import TopicSpec
from klamm.coordinator.groups.consumer_member import Member
from klamm.coordinator.groups.patterns import matching
from klamm.coordinator.records import (
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    GroupRecord,
)
from klamm.ids import Now, Uuid
from klamm.metadata.image import Image, Topic

NO_TOPICS_HASH = 0


@dataclass(frozen=True, slots=True)
class Resolved:
    """What a pattern matched, in the image of this offset, at this wall time."""

    topics: frozenset[str]
    version: int
    at_ms: int


def resolved(pattern: str, image: Image, now: Now) -> Resolved:
    """Raises KafkaError if it is no pattern."""
    return Resolved(matching(pattern, image.topics), image.offset, now.wall_ms)


def pattern_record(group_id: str, pattern: str, found: Resolved | None) -> GroupRecord:
    key = ConsumerGroupRegularExpressionKey(group=group_id, regular_expression=pattern)
    if found is None:
        return GroupRecord(key, None)
    value = ConsumerGroupRegularExpressionValue(
        topics=sorted(found.topics), version=found.version, timestamp=found.at_ms
    )
    return GroupRecord(key, value)


def names_of(member: Member, patterns: Mapping[str, Resolved]) -> frozenset[str]:
    """All topics the member means, whether they exist or not."""
    names = frozenset(member.profile.topic_names)
    found = patterns.get(member.profile.topic_regex or "")
    return names if found is None else names | found.topics


def ids_of(names: Iterable[str], image: Image) -> frozenset[Uuid]:
    """Those that exist."""
    return frozenset(topic.topic_id for topic in map(image.topics.get, names) if topic is not None)


def existing(members: Iterable[Member], patterns: Mapping[str, Resolved], image: Image) -> list[Topic]:
    """The topics the members mean and that exist, by name."""
    names = set(chain.from_iterable(names_of(member, patterns) for member in members))
    return [image.topics[name] for name in sorted(names) if name in image.topics]


def spec_of(topic: Topic, image: Image) -> TopicSpec:
    return TopicSpec(len(topic.partitions), _racks(topic, image))


def topics_hash(topics: Sequence[Topic], image: Image) -> int:
    """Sixty-four bits that are others when a topic is new, gone, recreated, has grown or moved between racks."""
    if not topics:
        return NO_TOPICS_HASH
    digest = blake2b(digest_size=8)
    for topic in topics:
        name = topic.name.encode()
        digest.update(len(name).to_bytes(4, "big") + name + topic.topic_id + len(topic.partitions).to_bytes(4, "big"))
        for racks in _racks(topic, image):
            digest.update(repr(sorted(racks)).encode())
    return int.from_bytes(digest.digest(), "big", signed=True)


def _racks(topic: Topic, image: Image) -> list[frozenset[str]]:
    """Of each partition; empty where no broker says in which it stands."""
    rack_of = {broker.broker_id: broker.rack for broker in image.brokers.values() if broker.rack is not None}
    if not rack_of:
        return []
    return [
        frozenset(rack_of[replica] for replica in partition.replicas if replica in rack_of)
        for partition in topic.partitions
    ]
