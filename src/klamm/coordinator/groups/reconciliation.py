"""A member is led to its target, and a partition is never with two members at once.

What the member has and is not meant to have it gives up first; while it still reports such a partition it stays at its
epoch. Then it comes to the target's epoch, and gets what is free. What somebody else still holds it gets later, when
that is given up: it waits, at its new epoch, and asks again with each heartbeat.

A target is as old as its epoch. A member that has just unsubscribed from a topic gives it up at once, whatever a target
from before may say, and is not given partitions of it.
"""

from collections.abc import Callable, Set
from typing import TypeAlias

from klamm.coordinator.groups.consumer_member import Held, Member, MemberState, Partitions
from klamm.errors import ErrorCode, KafkaError
from klamm.ids import Epoch, Uuid

IsFree: TypeAlias = Callable[[Uuid, int], bool]
"""Whether nobody but the member itself holds a partition."""


def reconciled(
    member: Member,
    epoch: Epoch,
    target: Partitions,
    *,
    subscribed: Set[Uuid],
    subscription_changed: bool,
    owned: Partitions | None,
    is_free: IsFree,
) -> Member:
    """The member one step on, or the same one. `owned` is what it reports to have, None if it does not say."""
    if member.is_reconciled_to(epoch) or (member.state == MemberState.UNREVOKED and _has_any(member.revoking, owned)):
        return _without_unsubscribed(member, subscribed, owned) if subscription_changed else member
    if member.state == MemberState.UNKNOWN and owned != {}:
        reason = "The member is in a state that is not known here. It must abandon all its partitions and rejoin."
        raise KafkaError(ErrorCode.FENCED_MEMBER_EPOCH, reason)
    return _towards(member, epoch, {topic: target[topic] for topic in target if topic in subscribed}, owned, is_free)


def _towards(member: Member, epoch: Epoch, target: Partitions, owned: Partitions | None, is_free: IsFree) -> Member:
    kept: dict[Uuid, dict[int, Epoch]] = {}
    surplus: dict[Uuid, dict[int, Epoch]] = {}
    for topic, held in member.assigned.items():
        for partition, since in held.items():
            side = kept if partition in target.get(topic, ()) else surplus
            side.setdefault(topic, {})[partition] = since
    if surplus and _has_any(surplus, owned):
        staying = member.epoch if member.state != MemberState.UNKNOWN else epoch
        return member.at_epoch(staying, MemberState.UNREVOKED, kept, surplus)
    waits = False
    for topic, partitions in target.items():
        for partition in sorted(partitions - kept.get(topic, {}).keys()):
            if is_free(topic, partition):
                kept.setdefault(topic, {})[partition] = epoch
            else:
                waits = True
    return member.at_epoch(epoch, MemberState.UNRELEASED if waits else MemberState.STABLE, kept, {})


def _without_unsubscribed(member: Member, subscribed: Set[Uuid], owned: Partitions | None) -> Member:
    surplus = {topic: held for topic, held in member.assigned.items() if topic not in subscribed}
    if not surplus:
        return member
    kept = {topic: held for topic, held in member.assigned.items() if topic in subscribed}
    revoking = {topic: dict(held) for topic, held in member.revoking.items()}
    for topic, held in surplus.items():
        revoking.setdefault(topic, {}).update(held)
    if _has_any(revoking, owned):
        return member.at_epoch(member.epoch, MemberState.UNREVOKED, kept, revoking)
    return member.at_epoch(member.epoch, member.state, kept, member.revoking)


def _has_any(held: Held, owned: Partitions | None) -> bool:
    """Whether the member still has one of these. One that does not say still has them all."""
    if owned is None:
        return True
    return any(not held.get(topic, {}).keys().isdisjoint(partitions) for topic, partitions in owned.items())
