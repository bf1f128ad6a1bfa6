"""Partitions move to other brokers: add, catch up, switch, remove.

First the new replicas are added, and follow. When all that shall be there are in sync, as an AlterPartition tells, the
others are removed in the same change, and if one of them led, leadership moves. Until then everything can be taken
back: who was added goes, who was there stays. A wish for yet another place begins from who was there, too, so that
taking it back always leads home.

    replicas 1 2 3    wish 4 5 1    replicas 4 5 1 2 3, adding 4 5, removing 2 3    in sync 1 4 5    replicas 4 5 1
"""

from collections.abc import Sequence

from klamm.controller.changes import Changes, Pieces, Place
from klamm.controller.configs import Configs
from klamm.controller.creation import checked_replicas
from klamm.controller.leadership import Wish
from klamm.controller.state import State
from klamm.controller.wishes import OngoingReassignment, Reassignment, ReassignmentResult
from klamm.errors import ErrorCode, KafkaError
from klamm.ids import TopicPartition
from klamm.machine import Piece
from klamm.metadata.image import Image, PartitionState
from klamm.slicing import in_slices


def reassign(
    state: State, configs: Configs, wishes: Sequence[Reassignment], *, allow_replication_factor_change: bool = True
) -> Pieces[list[ReassignmentResult]]:
    results: list[ReassignmentResult] = []
    for some, is_last in in_slices(wishes):
        changes = Changes(state, configs)
        for wish in some:
            result = ReassignmentResult(wish.partition)
            try:
                _reassign(changes, wish, allow_replication_factor_change)
            except KafkaError as refused:
                result.error, result.message = refused.code, refused.message
            results.append(result)
        yield Piece(changes.records, is_last=is_last)
    return results


def ongoing(state: State, partitions: Sequence[TopicPartition] | None) -> list[OngoingReassignment]:
    """Those under way, of these partitions or of all."""
    image = state.image
    if partitions is None:
        places = sorted(TopicPartition(image.topic_names[topic_id], index) for topic_id, index in state.reassigning)
    else:
        places = list(dict.fromkeys(partitions))
    found = ((place, image.partition(*place)) for place in places)
    return [
        OngoingReassignment(place, partition.replicas, partition.adding, partition.removing)
        for place, partition in found
        if partition is not None and (partition.adding or partition.removing)
    ]


def _reassign(changes: Changes, wish: Reassignment, allow_replication_factor_change: bool) -> None:
    place = _place(changes.image, wish.partition)
    before = changes.state(place)
    were_there = tuple(broker for broker in before.replicas if broker not in before.adding)
    if wish.replicas is not None:
        target = checked_replicas(changes.image, wish.replicas, None)
        if not allow_replication_factor_change:
            _check_same_factor(before, len(target))
    elif before.adding or before.removing:
        target = were_there
    else:
        raise KafkaError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, f"{wish.partition} is not moving.")
    removing = tuple(broker for broker in were_there if broker not in target)
    replicas = target + removing
    if not _has_heir(before, replicas) and not changes.rules(place.topic).unclean:
        reason = f"Only replicas that would go hold {wish.partition}: that takes an unclean election."
        raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, reason)
    adding = tuple(broker for broker in target if broker not in were_there)
    isr = tuple(broker for broker in before.isr if broker in replicas)
    changes.change(place, Wish(isr=isr, replicas=replicas, adding=adding, removing=removing))


def _place(image: Image, partition: TopicPartition) -> Place:
    topic = image.topics.get(partition.topic)
    if topic is None or not 0 <= partition.partition < len(topic.partitions):
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no partition {partition}.")
    return Place(topic, partition.partition)


def _check_same_factor(state: PartitionState, wanted: int) -> None:
    """Compared with what it will have when the present reassignment is done."""
    factor = len([broker for broker in state.replicas if broker not in state.removing])
    if wanted != factor:
        reason = f"The replication factor is {factor}, and {wanted} replica(s) were given."
        raise KafkaError(ErrorCode.INVALID_REPLICATION_FACTOR, reason)


def _has_heir(state: PartitionState, replicas: tuple[int, ...]) -> bool:
    """Whether one of those who may lead stays."""
    heirs = state.isr or state.elr or state.last_known_elr
    return any(broker in replicas for broker in heirs)
