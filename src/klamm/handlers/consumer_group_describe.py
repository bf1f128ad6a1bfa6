"""ConsumerGroupDescribe (0-1): groups of the newer protocol, with what their members have and are to have.

A classic group does not exist for this API; DescribeGroups shows it. From version 1 on members of the classic protocol
in such a group are marked as such.
"""

from collections.abc import Mapping
from functools import partial

from klamm.broker.answer import Answer
from klamm.broker.call import Call
from klamm.coordinator.shard import Shard
from klamm.coordinator.wishes import DescribedConsumerGroup, DescribedMember, Ticket, Verdict
from klamm.errors import KafkaError
from klamm.handlers.operations import NOT_ASKED, ON_GROUP
from klamm.ids import Now, Uuid
from klamm.metadata.image import Image
from klamm.wire.messages.consumer_group_describe import (
    Assignment,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
    Member,
    TopicPartitions,
)

CLASSIC_MEMBER, CONSUMER_MEMBER = 0, 1


def handle(request: ConsumerGroupDescribeRequest, call: Call) -> Answer:
    operations = ON_GROUP if request.include_authorized_operations else NOT_ASKED
    image = call.broker.image

    def respond(replies: list[object]) -> ConsumerGroupDescribeResponse:
        return ConsumerGroupDescribeResponse(
            groups=[
                _described(group_id, reply, image, operations)
                for group_id, reply in zip(request.group_ids, replies, strict=True)
            ]
        )

    asked = [(group_id, partial(_describe, group_id)) for group_id in request.group_ids]
    return call.broker.coordination.ask_each(asked, respond, call.now)


def _describe(group_id: str, shard: Shard, ticket: Ticket, now: Now) -> Verdict:
    return shard.describe_consumer(group_id, ticket, now)


def _described(group_id: str, reply: object, image: Image, operations: int) -> DescribedGroup:
    if isinstance(reply, KafkaError):
        return DescribedGroup(error_code=reply.code, error_message=reply.message, group_id=group_id)
    assert isinstance(reply, DescribedConsumerGroup)
    return DescribedGroup(
        group_id=group_id,
        group_state=reply.state,
        group_epoch=reply.group_epoch,
        assignment_epoch=reply.assignment_epoch,
        assignor_name=reply.assignor,
        members=[_member(each, image) for each in reply.members],
        authorized_operations=operations,
    )


def _member(member: DescribedMember, image: Image) -> Member:
    return Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=list(member.subscribed_topic_names),
        subscribed_topic_regex=member.subscribed_topic_regex or "",
        assignment=_assignment(member.assignment, image),
        target_assignment=_assignment(member.target_assignment, image),
        member_type=CLASSIC_MEMBER if member.is_classic else CONSUMER_MEMBER,
    )


def _assignment(partitions: Mapping[Uuid, frozenset[int]], image: Image) -> Assignment:
    """Topics that are gone have no name, and are left out."""
    return Assignment(
        topic_partitions=[
            TopicPartitions(topic_id=topic_id, topic_name=topic.name, partitions=sorted(found))
            for topic_id, found in sorted(partitions.items())
            if (topic := image.topic_with_id(topic_id)) is not None
        ]
    )
