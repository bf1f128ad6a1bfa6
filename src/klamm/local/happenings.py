"""What happened between two looks at a cluster, in sentences: who came and went, who leads, who fell behind.

What happens to many partitions at once is one sentence. Partitions of the brokers' own topics are counted, not named.
Nobody who does not run begins to lead or is in sync again: brokers that say so have not heard of it yet. And where
the quorum cannot decide, nobody leaves the ISR, although they are not there.
"""

from collections.abc import Iterable, Sequence
from itertools import chain

from klamm.escaping import one_line
from klamm.local.look import Look, named
from klamm.local.storage_seen import StorageSeen
from klamm.local.topology import voters_that_run
from klamm.local.view import PartitionSeen
from klamm.local.words import called, joined, listed, state_word, undecided

MOST_MOVES = 2
"""So many sentences say between whom leadership moved. More would push out why it did."""


def happenings(before: Look, after: Look) -> list[str]:
    """In an order in which it can have happened: a topic is made by a cluster that is well, then somebody dies, and the
    rest follows from that."""
    return [
        *_topics(before, after),
        *_nodes(before, after),
        *_quorum(before, after),
        *_disks(before, after),
        *_leaders(before, after),
        *_left(before, after),
        *_returned(before, after),
    ]


def roughly(records: int) -> str:
    """`870`, `12,400`: where sizes of logs are compared, more digits would be pretence."""
    unit = 10 ** max(0, len(str(records)) - 3)
    return f"{round(records / unit) * unit:,}"


def _nodes(before: Look, after: Look) -> Iterable[str]:
    for node in after.nodes:
        was, now = before.states.get(node.node_id), after.states[node.node_id]
        if was is None or was == now:
            continue
        if now == "running":
            yield f"{called(node)} {'runs again' if was == 'dead' else 'goes on'}"
        else:
            yield f"{called(node)} is {state_word(now, node.node_id in after.stopped)}"


def _quorum(before: Look, after: Look) -> Iterable[str]:
    if before.can_decide != after.can_decide:
        again = f"{voters_that_run(after.nodes, after.running)}: the quorum has its majority again"
        yield again if after.can_decide else undecided(after.nodes, after.running)
    if after.controller is None or (before.controller, before.quorum_epoch) == (after.controller, after.quorum_epoch):
        return
    name = next((called(node) for node in after.nodes if node.node_id == after.controller), f"node {after.controller}")
    if before.controller is not None:
        yield f"{name} leads the quorum now (epoch {after.quorum_epoch})"


def _topics(before: Look, after: Look) -> Iterable[str]:
    if not before.is_answered:
        return
    was, now = ({each.topic for each in look.own} for look in (before, after))
    for topic in sorted(now - was):
        partitions = [each for each in after.own if each.topic == topic]
        yield f"topic {one_line(topic)} is new: {_counted(len(partitions), 'partition')}, {_replicas(partitions)}"
    for topic in sorted(was - now):
        yield f"topic {one_line(topic)} is deleted"


def _disks(before: Look, after: Look) -> Iterable[str]:
    """Once when it begins: how much room is left changes all the time."""
    for broker_id in sorted(before.troubled_disks.keys() | after.troubled_disks.keys()):
        was, now = before.storage.get(broker_id, StorageSeen()), after.storage.get(broker_id)
        if now is None:
            continue
        if now.trouble and (was.is_full, was.takes_writes, was.offline) != (now.is_full, now.takes_writes, now.offline):
            yield f"broker {broker_id} {now.trouble}"
        elif was.trouble and not now.trouble:
            yield f"broker {broker_id} {'has room on its disk again' if was.is_full else 'takes writes again'}"


def _leaders(before: Look, after: Look) -> Iterable[str]:
    moved: dict[tuple[int, int], list[PartitionSeen]] = {}
    for place, each in after.partitions.items():
        was = before.partitions.get(place)
        if was is not None and was.leader != each.leader and (each.is_offline or after.state(each.leader) == "running"):
            moved.setdefault((was.leader, each.leader), []).append(each)
    lost = [each for (_, leader), partitions in sorted(moved.items()) for each in partitions if leader < 0]
    if lost:
        yield f"{listed(lost)} {_has(lost)} no leader"
    led = {pair: partitions for pair, partitions in sorted(moved.items()) if pair[1] >= 0}
    if len(led) > MOST_MOVES:
        everything = sorted(chain.from_iterable(led.values()), key=named)
        yield _moved({was for was, _ in led}, {leader for _, leader in led}, everything)
    else:
        for (was_leader, leader), partitions in led.items():
            yield _moved({was_leader}, {leader}, partitions)


def _moved(before: set[int], after: set[int], partitions: Sequence[PartitionSeen]) -> str:
    others = before - {-1}
    # Where some gave and took, to say who does not lead would be wrong of them.
    instead = f", not {_brokers(others)}" if others and not others & after else ""
    return f"{_brokers(after)} {'leads' if len(after) == 1 else 'lead'} {listed(partitions)} now{instead}"


def _brokers(broker_ids: set[int]) -> str:
    return f"{'broker' if len(broker_ids) == 1 else 'brokers'} {joined([str(each) for each in sorted(broker_ids)])}"


def _left(before: Look, after: Look) -> Iterable[str]:
    if not (before.can_decide and after.can_decide):
        return
    for broker_id, partitions in sorted(_changed(after, before).items()):
        worst = max(after.behind(broker_id, named(each)) for each in partitions)
        at_most = "up to " if len(partitions) > 1 else ""
        how_far = f": {at_most}{roughly(worst)} {'record' if worst == 1 else 'records'} behind" if worst else ""
        yield f"broker {broker_id} left the ISR of {listed(partitions)}{how_far}"


def _returned(before: Look, after: Look) -> Iterable[str]:
    if not (before.can_decide and after.can_decide):
        return
    for broker_id, partitions in sorted(_changed(before, after).items()):
        if after.state(broker_id) != "running":
            continue
        if after.out_of_sync(broker_id):
            yield f"broker {broker_id} is in sync again in {listed(partitions)}"
        else:
            yield f"broker {broker_id} is back in sync everywhere"


def _changed(less: Look, more: Look) -> dict[int, list[PartitionSeen]]:
    """By broker: the partitions in whose ISR it is in the one look, and was not, or is not, in the other."""
    found: dict[int, list[PartitionSeen]] = {}
    for place, each in less.partitions.items():
        other = more.partitions.get(place)
        for replica in () if other is None else set(other.in_sync) - set(each.in_sync):
            if replica in each.replicas:
                found.setdefault(replica, []).append(each)
    return found


def _has(partitions: Sequence[PartitionSeen]) -> str:
    return "has" if len(partitions) == 1 else "have"


def _replicas(partitions: Sequence[PartitionSeen]) -> str:
    return _counted(max(len(each.replicas) for each in partitions), "replica")


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
