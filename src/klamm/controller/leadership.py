"""Who leads a partition, who is in sync, who may lead later: one partition's next state, from values alone.

Whoever is in the in-sync replicas holds everything that was committed, so any of them may lead. When they become fewer
than `min.insync.replicas` nothing more is committed, and so those who leave from then on still hold everything: they
are the eligible leader replicas (KIP-966), and lead when no in-sync replica is left. A replica that went down uncleanly
may have lost what it held: it is distrusted and has neither right until it has caught up again. If that leaves nobody,
the last known leader comes back, and after it only an unclean election can help, where the topic or a person allows it;
both may lose records, so their leader begins in recovery. A replica whose directory is gone holds nothing, and leads
only when there is no other at all.

Of those who may lead, the leader there is stays. When it is lost the preferred replica takes over if it can, because
leadership would go back to it anyway; else the one that leads the fewest partitions, so that a lost broker's load
spreads (Kafka takes the first in the list, which hands all of it to one neighbour).

A leader epoch begins when the leader changes, when there is none any more, and when a replica is taken away, so that it
notices. Losing an in-sync replica begins none.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import NamedTuple

from klamm.ids import NO_BROKER, BrokerId, Uuid
from klamm.metadata.image import PartitionState, shared, shared_ids
from klamm.metadata.partitions import UNASSIGNED_DIRECTORY

Replicas = tuple[BrokerId, ...]
NOBODY: frozenset[BrokerId] = frozenset()


class Election(Enum):
    CLEAN = auto()
    """The leader stays if it may; else somebody who may lead."""
    PREFERRED = auto()
    """The first replica, if it may lead."""
    UNCLEAN = auto()
    """When nobody may lead: any replica that is there."""


class Rules(NamedTuple):
    """What a topic promises."""

    min_isr: int = 1
    unclean: bool = False
    elr: bool = True
    """Whether the cluster keeps eligible leader replicas. Without them the last in-sync replica is never given up."""


@dataclass(slots=True)
class Electorate:
    """Which brokers may lead, where they keep their replicas, and how many partitions each leads. Who decides about
    many partitions counts along."""

    active: Collection[BrokerId]
    homes: Mapping[BrokerId, Collection[Uuid]] = field(default_factory=dict)
    leads: dict[BrokerId, int] = field(default_factory=dict)

    def is_led(self, state: PartitionState) -> bool:
        return state.leader in self.active

    def has_moved(self, state: PartitionState, broker: BrokerId) -> bool:
        """Whether the broker keeps its replicas elsewhere than it kept this one: its disk was replaced."""
        homes = self.homes.get(broker, ())
        return bool(homes) and _directory_of(state, broker) not in (UNASSIGNED_DIRECTORY, *homes)

    def has_lost(self, state: PartitionState, broker: BrokerId) -> bool:
        """Whether it holds nothing, while others may hold something."""
        return len(state.replicas) > 1 and self.has_moved(state, broker)

    def note(self, before: PartitionState, after: PartitionState) -> None:
        if before.leader != after.leader:
            self.leads[before.leader] = self.leads.get(before.leader, 0) - 1
            self.leads[after.leader] = self.leads.get(after.leader, 0) + 1


class Wish(NamedTuple):
    """What is to be different; None stays as it is."""

    isr: Replicas | None = None
    replicas: Replicas | None = None
    adding: Replicas | None = None
    removing: Replicas | None = None
    recovering: bool | None = None
    distrusted: Collection[BrokerId] = NOBODY
    """Replicas that may have lost what they held."""
    election: Election = Election.CLEAN


class _Members(NamedTuple):
    """Who holds the partition from now on, and in which right."""

    replicas: Replicas
    isr: Replicas
    adding: Replicas
    removing: Replicas
    elr: Replicas = ()


def next_state(state: PartitionState, wish: Wish, electorate: Electorate, rules: Rules) -> PartitionState:
    """The partition as it becomes; the same state if nothing changes."""
    members = _reassigned(state, wish)
    if not members.isr and not rules.elr:
        members = members._replace(isr=tuple(broker for broker in state.isr if broker in members.replicas))
    members = members._replace(elr=_eligible(state, members, wish.distrusted, rules))
    election = Election.UNCLEAN if rules.unclean and wish.election is Election.CLEAN else wish.election
    leader, is_clean = _elected(state, members, electorate, election, rules)
    recovering = state.recovering if wish.recovering is None else wish.recovering
    isr, elr = members.isr, members.elr
    if not is_clean:
        isr, elr, recovering = (leader,), (), True
    elif leader in elr:
        isr = (leader,)
        elr = _eligible(state, members._replace(isr=isr), wish.distrusted, rules)
    new_epoch = leader != state.leader or not is_clean or not set(state.replicas) <= set(members.replicas)
    after = PartitionState(
        replicas=shared(members.replicas),
        isr=shared(isr),
        leader=leader,
        leader_epoch=state.leader_epoch + new_epoch,
        partition_epoch=state.partition_epoch,
        recovering=recovering,
        elr=shared(elr),
        last_known_elr=_last_known(state, members.replicas, isr, leader, rules),
        adding=shared(members.adding),
        removing=shared(members.removing),
        directories=_directories(state, members.replicas, set(isr).difference(state.isr), electorate),
    )
    return state if after == state else after._replace(partition_epoch=state.partition_epoch + 1)


def after_restart(
    state: PartitionState, broker: BrokerId, electorate: Electorate, rules: Rules, *, clean: bool
) -> PartitionState:
    """The partition when one of its replicas begins a new life; it is not active until its first heartbeat.

    It leaves the in-sync replicas like any broker that is lost. Only where it leads and nobody else ever could, there
    is nobody to hand over to: it keeps what it has. After an unclean end it may append other records at the offsets
    of those it lost, so a new leader epoch tells them apart.
    """
    has_lost = electorate.has_lost(state, broker)
    distrusted = NOBODY if clean and not has_lost else frozenset({broker})
    isr = tuple(each for each in state.isr if each != broker)
    after = next_state(state, Wish(isr=isr, distrusted=distrusted), electorate, rules)
    if state.leader != broker or after.leader != NO_BROKER or set(after.elr) - {broker}:
        return after
    if has_lost:
        # Others hold at least something. It would be lost if they followed an empty leader.
        return after
    if not distrusted:
        return state
    return state._replace(
        leader_epoch=state.leader_epoch + 1,
        partition_epoch=state.partition_epoch + 1,
        directories=_directories(state, state.replicas, {broker}, electorate),
    )


def _reassigned(state: PartitionState, wish: Wish) -> _Members:
    """A reassignment is done when all who stay are in sync."""
    replicas = state.replicas if wish.replicas is None else wish.replicas
    isr = state.isr if wish.isr is None else wish.isr
    adding = state.adding if wish.adding is None else wish.adding
    removing = state.removing if wish.removing is None else wish.removing
    staying = tuple(broker for broker in replicas if broker not in removing)
    if (adding or removing) and set(staying) <= set(isr):
        return _Members(staying, tuple(broker for broker in isr if broker in staying), (), ())
    return _Members(replicas, isr, adding, removing)


def _eligible(state: PartitionState, members: _Members, distrusted: Collection[BrokerId], rules: Rules) -> Replicas:
    """Those who were in sync, or eligible already, when the in-sync replicas became too few to commit anything."""
    # More than there are cannot be in sync.
    if not rules.elr or len(members.isr) >= min(rules.min_isr, len(members.replicas)):
        return ()
    trusted = {*state.isr, *state.elr}.difference(members.isr, distrusted)
    return tuple(broker for broker in members.replicas if broker in trusted)


def _elected(
    state: PartitionState, members: _Members, electorate: Electorate, election: Election, rules: Rules
) -> tuple[BrokerId, bool]:
    """The leader, and whether it surely holds everything that was committed."""
    eligible = members.isr or members.elr
    entitled = [
        broker
        for broker in members.replicas
        if broker in eligible
        and broker in electorate.active
        # Who comes into the in-sync replicas has caught up, whatever it lost before.
        and (not electorate.has_lost(state, broker) or broker not in (*state.isr, *state.elr))
    ]
    preferred = members.replicas[0]
    if entitled:
        if preferred in entitled and (election is Election.PREFERRED or state.leader not in entitled):
            return preferred, True
        if state.leader in entitled:
            return state.leader, True
        # The order of the replicas decides among equals: min() takes the first.
        return min(entitled, key=lambda broker: (broker in members.removing, electorate.leads.get(broker, 0))), True
    present = [broker for broker in members.replicas if broker in electorate.active]
    holding = [broker for broker in present if not electorate.has_lost(state, broker)]
    if rules.elr and not eligible:
        for last_known in state.last_known_elr[:1]:
            if last_known in holding:
                return last_known, False
    if election is Election.UNCLEAN and present:
        return (holding or present)[0], False
    return NO_BROKER, True


def _last_known(
    state: PartitionState, replicas: Replicas, isr: Replicas, leader: BrokerId, rules: Rules
) -> tuple[BrokerId, ...]:
    """Who led when the last in-sync replica was lost, for as long as nobody leads."""
    if leader != NO_BROKER or isr or not rules.elr:
        return ()
    remembered = () if state.isr else state.last_known_elr
    for broker in (*remembered, state.leader, *state.isr, *state.elr, replicas[0]):
        if broker in replicas:
            return shared((broker,))
    raise AssertionError("a partition without replicas")


def _directories(
    state: PartitionState, replicas: Replicas, caught_up: Collection[BrokerId], electorate: Electorate
) -> tuple[Uuid, ...]:
    """A replica stays where it is. A new one, and one that caught up after its disk was replaced, is where its broker
    has its only directory, if it has only one."""
    if replicas == state.replicas and not any(electorate.has_moved(state, broker) for broker in caught_up):
        return state.directories
    found = []
    for broker in replicas:
        directory = _directory_of(state, broker) if broker in state.replicas else None
        if directory is None or (broker in caught_up and electorate.has_moved(state, broker)):
            homes = electorate.homes.get(broker, ())
            directory = next(iter(homes)) if len(homes) == 1 else UNASSIGNED_DIRECTORY
        found.append(directory)
    return shared_ids(tuple(found))


def _directory_of(state: PartitionState, broker: BrokerId) -> Uuid:
    position = state.replicas.index(broker) if broker in state.replicas else len(state.replicas)
    # Logs of older versions know no directories.
    return state.directories[position] if position < len(state.directories) else UNASSIGNED_DIRECTORY
