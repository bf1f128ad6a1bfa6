"""What a client has to hear if it is not the member it says it is, or not as far as it should be."""

from klamm.coordinator.groups.consumer_member import Held, Member, Partitions
from klamm.coordinator.groups.consumer_state import ConsumerState
from klamm.coordinator.settings import GroupSettings
from klamm.coordinator.wishes import (
    JOINS,
    LEAVES,
    LEAVES_FOR_A_WHILE,
    CommitWish,
    HeartbeatWish,
    OffsetsWish,
    OffsetToCommit,
)
from klamm.errors import ErrorCode, KafkaError
from klamm.ids import ZERO_UUID, Epoch
from klamm.metadata.image import Image


def check_heartbeat(wish: HeartbeatWish, settings: GroupSettings) -> None:
    """What no member could mean."""
    reason = _impossible(wish)
    if reason is not None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, reason)
    if wish.server_assignor is not None and wish.server_assignor not in settings.assignors:
        known = ", ".join(settings.assignors)
        reason = f"ServerAssignor {wish.server_assignor} is not supported. Supported assignors: {known}."
        raise KafkaError(ErrorCode.UNSUPPORTED_ASSIGNOR, reason)


def _impossible(wish: HeartbeatWish) -> str | None:
    must_have_id = wish.gives_its_id or wish.member_epoch > 0 or wish.member_epoch == LEAVES
    if must_have_id and not wish.member_id.strip():
        return "MemberId can't be empty."
    if not wish.group_id.strip():
        return "GroupId can't be empty."
    if wish.instance_id is not None and not wish.instance_id.strip():
        return "InstanceId can't be empty."
    if wish.rack_id is not None and not wish.rack_id.strip():
        return "RackId can't be empty."
    if wish.member_epoch < LEAVES_FOR_A_WHILE:
        return "MemberEpoch is invalid."
    if wish.member_epoch == LEAVES_FOR_A_WHILE and wish.instance_id is None:
        return "InstanceId can't be null."
    return _impossible_join(wish) if wish.member_epoch == JOINS else None


def _impossible_join(wish: HeartbeatWish) -> str | None:
    if wish.rebalance_timeout_ms == -1:
        return "RebalanceTimeoutMs must be provided in first request."
    if wish.owned is None or wish.owned:
        return "TopicPartitions must be empty when (re-)joining."
    if wish.subscribed_topic_names is None and wish.subscribed_topic_regex is None:
        return "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining."
    return None


def member_of(state: ConsumerState, member_id: str, instance_id: str | None) -> Member:
    if instance_id is None:
        member = state.members.get(member_id)
        if member is None:
            reason = f"Member {member_id} is not a member of group {state.group_id}."
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, reason)
        return member
    member = state.static_member(instance_id)
    if member is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if member.member_id != member_id:
        reason = f"Static member {member_id} with instance id {instance_id} was fenced by member {member.member_id}."
        raise KafkaError(ErrorCode.FENCED_INSTANCE_ID, reason)
    return member


def check_epoch(member: Member, epoch: Epoch, owned: Partitions | None) -> None:
    """The epoch before is good enough if the reply with the next one may have been lost: the member comes with that,
    and with nothing that is not its own."""
    if epoch == member.epoch:
        return
    if epoch < member.epoch and epoch == member.previous_epoch and _is_within(owned, member.assigned):
        return
    than = "greater" if epoch > member.epoch else "smaller"
    reason = f"The member has a {than} epoch ({epoch}) than the one known by the group coordinator ({member.epoch})."
    raise KafkaError(ErrorCode.FENCED_MEMBER_EPOCH, f"{reason} The member must abandon all its partitions and rejoin.")


def _is_within(owned: Partitions | None, held: Held) -> bool:
    if owned is None:
        return False
    return all(topic in held and partitions <= held[topic].keys() for topic, partitions in owned.items())


def check_commit_epoch(state: ConsumerState, image: Image, wish: CommitWish) -> None:
    """A commit at an epoch that is over is good for partitions the member has had since then (KIP-1251)."""
    if wish.generation < 0 and not state.members:
        return
    member = member_of(state, wish.member_id, None)
    if not member.is_classic and not wish.knows_epochs:
        reason = "OffsetCommit version 9 or above must be used by members of the consumer group protocol."
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, reason)
    if wish.generation > member.epoch:
        raise _stale(member, f"{wish.generation} is newer than the member's epoch {member.epoch}.")
    if wish.generation < member.epoch:
        for offset in wish.offsets:
            _check_had_since(member, wish.generation, offset, image)


def _check_had_since(member: Member, epoch: Epoch, offset: OffsetToCommit, image: Image) -> None:
    topic_id = offset.topic_id
    if topic_id == ZERO_UUID:
        topic = image.topics.get(offset.topic)
        topic_id = ZERO_UUID if topic is None else topic.topic_id
    since = member.epoch_of(topic_id, offset.partition)
    if since is None:
        raise _stale(member, f"Partition {offset.topic}-{offset.partition} is not the member's.")
    if epoch < since:
        raise _stale(member, f"The member has {offset.topic}-{offset.partition} since epoch {since}, after {epoch}.")


def check_reading_epoch(state: ConsumerState, wish: OffsetsWish) -> None:
    if wish.member_id is None and wish.member_epoch < 0:
        return
    member = member_of(state, wish.member_id or "", None)
    if wish.member_epoch != member.epoch:
        raise _stale(member, f"{wish.member_epoch} is not the member's epoch {member.epoch}.")


def _stale(member: Member, reason: str) -> KafkaError:
    return KafkaError(ErrorCode.ILLEGAL_GENERATION if member.is_classic else ErrorCode.STALE_MEMBER_EPOCH, reason)
