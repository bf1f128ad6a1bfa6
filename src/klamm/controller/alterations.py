"""The leader of a partition asks for other in-sync replicas.

It knows who has caught up and who has fallen behind; the controller knows who is alive and who leads. So a leader asks,
and it is so when the record is committed. It asks about the partition as it saw it: leader epoch and partition epoch
have to be the present ones, and a replica that is to come in must be active, in the very life that caught up.
"""

from collections.abc import Collection, Sequence

from klamm.controller.brokers import checked_broker
from klamm.controller.changes import Changes, Pieces, Place
from klamm.controller.configs import Configs
from klamm.controller.leadership import Wish
from klamm.controller.state import State
from klamm.controller.wishes import AlteredPartition, PartitionAlteration
from klamm.errors import ErrorCode, KafkaError
from klamm.ids import BrokerId
from klamm.machine import Piece
from klamm.metadata.image import Image, PartitionState
from klamm.slicing import in_slices

EPOCH_NOT_KNOWN = -1


def alter(
    state: State, configs: Configs, broker_id: BrokerId, broker_epoch: int, wishes: Sequence[PartitionAlteration]
) -> Pieces[list[AlteredPartition]]:
    results: list[AlteredPartition] = []
    for some, is_last in in_slices(wishes):
        checked_broker(state.image, broker_id, broker_epoch)
        changes = Changes(state, configs)
        for wish in some:
            result = AlteredPartition(wish.topic_id, wish.index)
            try:
                _alter(changes, state.leaving, broker_id, wish, result)
            except KafkaError as refused:
                result.error, result.message = refused.code, refused.message
            results.append(result)
        yield Piece(changes.records, is_last=is_last)
    return results


def _alter(
    changes: Changes,
    leaving: Collection[BrokerId],
    broker_id: BrokerId,
    wish: PartitionAlteration,
    result: AlteredPartition,
) -> None:
    topic = changes.image.topic_with_id(wish.topic_id)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, "There is no topic with this id.")
    if not 0 <= wish.index < len(topic.partitions):
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Topic {topic.name} has no partition {wish.index}.")
    place = Place(topic, wish.index)
    _check_epochs(changes.state(place), broker_id, wish)
    _check_members(changes.state(place), broker_id, wish)
    _check_alive(changes.image, leaving, wish)
    isr = tuple(member for member, _ in wish.isr)
    after = changes.change(place, Wish(isr=isr, recovering=wish.recovering))
    if after.leader != broker_id:
        # It completed a reassignment, and its own replica is one of those that go. The record stands all the same.
        raise KafkaError(ErrorCode.NEW_LEADER_ELECTED, f"Broker {after.leader} leads now.")
    result.leader, result.leader_epoch = after.leader, after.leader_epoch
    result.isr, result.recovering, result.partition_epoch = after.isr, after.recovering, after.partition_epoch


def _check_epochs(state: PartitionState, broker_id: BrokerId, wish: PartitionAlteration) -> None:
    if wish.leader_epoch > state.leader_epoch or wish.partition_epoch > state.partition_epoch:
        # It has seen records that we have not: somebody else is the controller, and we shall hear of it.
        raise KafkaError(ErrorCode.NOT_CONTROLLER, f"It knows more of the partition than {state}.")
    if wish.leader_epoch < state.leader_epoch:
        raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH, f"The leader epoch is {state.leader_epoch}.")
    if broker_id != state.leader:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Broker {state.leader} leads the partition.")
    if wish.partition_epoch < state.partition_epoch:
        raise KafkaError(ErrorCode.INVALID_UPDATE_VERSION, f"The partition epoch is {state.partition_epoch}.")


def _check_members(state: PartitionState, broker_id: BrokerId, wish: PartitionAlteration) -> None:
    members = [member for member, _ in wish.isr]
    if len(set(members)) != len(members) or not set(members) <= set(state.replicas):
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"In-sync replicas {members} of a partition with {state}.")
    if broker_id not in members:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "A leader is in sync with itself.")
    if wish.recovering and len(members) > 1:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Nobody is in sync with a leader that still recovers.")
    if wish.recovering and not state.recovering:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "A leader that has recovered does not recover again.")


def _check_alive(image: Image, leaving: Collection[BrokerId], wish: PartitionAlteration) -> None:
    for member, epoch in wish.isr:
        broker = image.brokers.get(member)
        is_active = broker is not None and broker.is_active and member not in leaving
        if broker is None or not is_active or epoch not in (EPOCH_NOT_KNOWN, broker.epoch):
            reason = f"Broker {member} is not there, or not in its life of epoch {epoch}."
            raise KafkaError(ErrorCode.INELIGIBLE_REPLICA, reason)
