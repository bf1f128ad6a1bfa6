"""A partition's state from its records, and back.

A change begins a new partition epoch; one that names a leader begins a new leader epoch too, even when it is the same
broker: everything that leader appends afterwards can be told from what it appended before.
"""

from klamm.ids import ZERO_UUID, BrokerId, Uuid
from klamm.metadata.image import PartitionState, shared, shared_ids
from klamm.metadata.records import SAME_LEADER, PartitionChangeRecord, PartitionRecord

# What a replica's directory is called until its broker has said where it put it.
UNASSIGNED_DIRECTORY: Uuid = ZERO_UUID


def new_partition(record: PartitionRecord) -> PartitionState:
    return PartitionState(
        shared(tuple(record.replicas)),
        shared(tuple(record.isr)),
        record.leader,
        record.leader_epoch,
        record.partition_epoch,
        record.leader_recovery_state == 1,
        shared(tuple(record.eligible_leader_replicas or ())),
        shared(tuple(record.last_known_elr or ())),
        shared(tuple(record.adding_replicas)),
        shared(tuple(record.removing_replicas)),
        shared_ids(tuple(record.directories)),
    )


def changed_partition(old: PartitionState, record: PartitionChangeRecord) -> PartitionState:
    same_leader = record.leader == SAME_LEADER
    replicas = _or_old(record.replicas, old.replicas)
    if record.directories is not None:
        directories = shared_ids(tuple(record.directories))
    else:
        directories = _carried_over(old, replicas)
    return PartitionState(
        replicas,
        _or_old(record.isr, old.isr),
        old.leader if same_leader else record.leader,
        old.leader_epoch if same_leader else old.leader_epoch + 1,
        old.partition_epoch + 1,
        old.recovering if record.leader_recovery_state == -1 else record.leader_recovery_state == 1,
        _or_old(record.eligible_leader_replicas, old.elr),
        _or_old(record.last_known_elr, old.last_known_elr),
        _or_old(record.adding_replicas, old.adding),
        _or_old(record.removing_replicas, old.removing),
        directories,
    )


def change_record(topic_id: Uuid, index: int, old: PartitionState, new: PartitionState) -> PartitionChangeRecord | None:
    """The record that makes the old state the new one; None if they are the same."""
    if new == old:
        return None
    assert new.partition_epoch == old.partition_epoch + 1, "every change is a new partition epoch"
    assert new.leader_epoch - old.leader_epoch in (0, 1), "leader epochs go forward one by one"
    assert new.leader == old.leader or new.leader_epoch > old.leader_epoch, "a new leader is a new leader epoch"
    return PartitionChangeRecord(
        partition_id=index,
        topic_id=topic_id,
        isr=_if_new(new.isr, old.isr),
        leader=new.leader if new.leader_epoch > old.leader_epoch else SAME_LEADER,
        replicas=_if_new(new.replicas, old.replicas),
        removing_replicas=_if_new(new.removing, old.removing),
        adding_replicas=_if_new(new.adding, old.adding),
        leader_recovery_state=int(new.recovering) if new.recovering != old.recovering else -1,
        directories=list(new.directories) if new.directories != old.directories else None,
        eligible_leader_replicas=_if_new(new.elr, old.elr),
        last_known_elr=_if_new(new.last_known_elr, old.last_known_elr),
    )


def partition_record(topic_id: Uuid, index: int, state: PartitionState) -> PartitionRecord:
    """The record that makes this partition out of nothing."""
    return PartitionRecord(
        partition_id=index,
        topic_id=topic_id,
        replicas=list(state.replicas),
        isr=list(state.isr),
        removing_replicas=list(state.removing),
        adding_replicas=list(state.adding),
        leader=state.leader,
        leader_recovery_state=int(state.recovering),
        leader_epoch=state.leader_epoch,
        partition_epoch=state.partition_epoch,
        directories=list(state.directories),
        eligible_leader_replicas=list(state.elr) or None,
        last_known_elr=list(state.last_known_elr) or None,
    )


def _if_new(new: tuple[BrokerId, ...], old: tuple[BrokerId, ...]) -> list[BrokerId] | None:
    return None if new == old else list(new)


def _or_old(new: list[BrokerId] | None, old: tuple[BrokerId, ...]) -> tuple[BrokerId, ...]:
    return old if new is None else shared(tuple(new))


def _carried_over(old: PartitionState, replicas: tuple[BrokerId, ...]) -> tuple[Uuid, ...]:
    """A replica that stays, stays where it is."""
    if replicas == old.replicas:
        return old.directories
    known = dict(zip(old.replicas, old.directories, strict=False))
    return shared_ids(tuple(known.get(broker, UNASSIGNED_DIRECTORY) for broker in replicas))
