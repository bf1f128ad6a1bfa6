"""OffsetCommit (2-10): a group writes down how far it has read.

Up to version 9 topics have names, from 10 on ids. A topic that does not exist is refused by itself; the other
partitions are committed. Versions 2 to 4 may say how long the offsets are to be kept. From version 9 on the generation
may be a member epoch of the newer protocol.
"""

from klamm.broker.answer import Answer, Reply
from klamm.broker.call import Call
from klamm.coordinator.wishes import CommitWish, OffsetToCommit
from klamm.errors import ErrorCode, KafkaError
from klamm.metadata.image import Topic
from klamm.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

FIRST_VERSION_WITH_EPOCHS = 9
FIRST_VERSION_WITH_IDS = 10


def handle(request: OffsetCommitRequest, call: Call) -> Answer:
    response = OffsetCommitResponse()
    offsets: list[OffsetToCommit] = []
    committed: list[OffsetCommitResponsePartition] = []
    for topic in request.topics:
        known = _known(topic, call)
        answers = []
        for each in topic.partitions:
            answer = OffsetCommitResponsePartition(partition_index=each.partition_index)
            answers.append(answer)
            if isinstance(known, ErrorCode):
                answer.error_code = known
                continue
            if not 0 <= each.partition_index < len(known.partitions):
                answer.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                continue
            committed.append(answer)
            offsets.append(
                OffsetToCommit(
                    known.name,
                    each.partition_index,
                    each.committed_offset,
                    each.committed_leader_epoch,
                    each.committed_metadata or "",
                    known.topic_id,
                )
            )
        response.topics.append(OffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id, partitions=answers))
    if not offsets:
        return Reply(response)
    wish = CommitWish(
        request.group_id,
        request.generation_id_or_member_epoch,
        request.member_id,
        request.group_instance_id,
        offsets,
        request.retention_time_ms,
        call.version >= FIRST_VERSION_WITH_EPOCHS,
    )

    def respond(reply: object) -> OffsetCommitResponse:
        codes = [reply.code] * len(committed) if isinstance(reply, KafkaError) else reply
        assert isinstance(codes, list)
        for answer, code in zip(committed, codes, strict=True):
            answer.error_code = code
        return response

    return call.broker.coordination.ask(
        request.group_id, lambda shard, ticket, now: shard.commit(wish, ticket, now), respond, call.now
    )


def _known(topic: OffsetCommitRequestTopic, call: Call) -> Topic | ErrorCode:
    """The topic, or why there is none."""
    image = call.broker.image
    if call.version >= FIRST_VERSION_WITH_IDS:
        return image.topic_with_id(topic.topic_id) or ErrorCode.UNKNOWN_TOPIC_ID
    return image.topics.get(topic.name) or ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
