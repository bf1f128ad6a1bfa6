"""OffsetFetch (1-10): how far groups have read.

A partition without an offset has offset -1 and no error. From version 2 on a group may be asked for all its
partitions, from 8 on several groups at once; then topics have names up to version 9, and ids from 10 on. There are no
transactions, so every offset is stable.

An error of the whole group, which versions 2 to 7 have a field for, is said of each partition as well. Kafka leaves the
partitions out then; aiokafka, which does not look at that field, takes it that nothing was committed, and begins anew.
"""

from collections.abc import Mapping, Sequence
from itertools import groupby

from klamm.broker.answer import Answer
from klamm.broker.call import Call
from klamm.coordinator.shard import Shard
from klamm.coordinator.wishes import CommittedOffset, OffsetsWish, Ticket, Verdict
from klamm.errors import ErrorCode, KafkaError
from klamm.ids import NO_EPOCH, NO_OFFSET, ZERO_UUID, Now
from klamm.metadata.image import Image
from klamm.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

FIRST_VERSION_WITH_GROUPS = 8
FIRST_VERSION_WITH_IDS = 10
FIRST_VERSION_WITH_AN_ERROR = 2
IN_PARTITIONS = {ErrorCode.COORDINATOR_NOT_AVAILABLE: ErrorCode.NOT_COORDINATOR}
"""Whoever looks there knows how to go on from these, and from loading; the former is fatal to it."""
NOTHING = CommittedOffset(NO_OFFSET, NO_EPOCH, "")


def handle(request: OffsetFetchRequest, call: Call) -> Answer:
    if call.version >= FIRST_VERSION_WITH_GROUPS:
        return _handle_groups(request, call)
    asked = None
    if request.topics is not None:
        asked = [(topic.name, index) for topic in request.topics for index in topic.partition_indexes]
    wish = OffsetsWish(request.group_id, partitions=asked)

    def respond(reply: object) -> OffsetFetchResponse:
        error = reply.code if isinstance(reply, KafkaError) else ErrorCode.NONE
        in_partitions = IN_PARTITIONS.get(error, error) if call.version >= FIRST_VERSION_WITH_AN_ERROR else error
        offsets: Mapping[tuple[str, int], CommittedOffset] = reply if isinstance(reply, Mapping) else {}
        places = sorted(offsets) if asked is None else asked
        return OffsetFetchResponse(
            error_code=error,
            topics=[
                OffsetFetchResponseTopic(
                    name=name,
                    partitions=[
                        OffsetFetchResponsePartition(
                            partition_index=index,
                            committed_offset=offset.offset,
                            committed_leader_epoch=offset.leader_epoch,
                            metadata=offset.metadata,
                            error_code=in_partitions,
                        )
                        for _, index in indexes
                        for offset in (offsets.get((name, index), NOTHING),)
                    ],
                )
                for name, indexes in groupby(places, key=lambda place: place[0])
            ],
        )

    return call.broker.coordination.ask(
        request.group_id, lambda shard, ticket, now: shard.offsets(wish, ticket, now), respond, call.now
    )


def _handle_groups(request: OffsetFetchRequest, call: Call) -> Answer:
    asked = [_Asked(group, call) for group in request.groups]

    def respond(replies: list[object]) -> OffsetFetchResponse:
        return OffsetFetchResponse(groups=[each.answered(reply) for each, reply in zip(asked, replies, strict=True)])

    return call.broker.coordination.ask_each([(each.wish.group_id, each.decide) for each in asked], respond, call.now)


class _Asked:
    """One group of a request, and how its topics are called."""

    def __init__(self, group: OffsetFetchRequestGroup, call: Call) -> None:
        self._image: Image = call.broker.image
        self._by_id = call.version >= FIRST_VERSION_WITH_IDS
        self._topics: list[tuple[str | None, bytes, Sequence[int]]] | None = None
        places = None
        if group.topics is not None:
            self._topics = []
            for topic in group.topics:
                known = self._image.topic_with_id(topic.topic_id) if self._by_id else None
                name = (None if known is None else known.name) if self._by_id else topic.name
                self._topics.append((name, topic.topic_id, topic.partition_indexes))
            places = [(name, index) for name, _, indexes in self._topics if name is not None for index in indexes]
        self.wish = OffsetsWish(group.group_id, group.member_id, group.member_epoch, places)

    def decide(self, shard: Shard, ticket: Ticket, now: Now) -> Verdict:
        return shard.offsets(self.wish, ticket, now)

    def answered(self, reply: object) -> OffsetFetchResponseGroup:
        if isinstance(reply, KafkaError):
            return OffsetFetchResponseGroup(group_id=self.wish.group_id, error_code=reply.code)
        assert isinstance(reply, Mapping)
        topics = [
            OffsetFetchResponseTopics(
                name=name or "",
                topic_id=topic_id,
                partitions=[self._partition(name, index, reply) for index in indexes],
            )
            for name, topic_id, indexes in (self._all(reply) if self._topics is None else self._topics)
        ]
        return OffsetFetchResponseGroup(group_id=self.wish.group_id, topics=topics)

    def _all(self, offsets: Mapping[tuple[str, int], CommittedOffset]) -> list[tuple[str | None, bytes, Sequence[int]]]:
        found: list[tuple[str | None, bytes, Sequence[int]]] = []
        for name, places in groupby(sorted(offsets), key=lambda place: place[0]):
            topic = self._image.topics.get(name)
            topic_id = ZERO_UUID if topic is None else topic.topic_id
            if topic_id != ZERO_UUID or not self._by_id:
                found.append((name, topic_id, [index for _, index in places]))
        return found

    def _partition(
        self, name: str | None, index: int, offsets: Mapping[tuple[str, int], CommittedOffset]
    ) -> OffsetFetchResponsePartitions:
        offset = NOTHING if name is None else offsets.get((name, index), NOTHING)
        return OffsetFetchResponsePartitions(
            partition_index=index,
            committed_offset=offset.offset,
            committed_leader_epoch=offset.leader_epoch,
            metadata=offset.metadata,
            error_code=ErrorCode.UNKNOWN_TOPIC_ID if name is None else ErrorCode.NONE,
        )
