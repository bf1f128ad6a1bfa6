"""What is seen of a change once it was made: a broker hears of it a moment later than the controller has decided it.

The broker that we ask is given some seconds. One that has not heard of it by then may be cut off from the controller:
the others are asked, and if one of them has heard of it, it was done.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence

from klamm.cli.group_asking import Cluster
from klamm.cli.saying import say
from klamm.cli.topic_extents import place_of
from klamm.ids import TopicPartition
from klamm.local.asking import Address, Conversation, NoAnswer
from klamm.local.view import ClusterSeen, PartitionSeen, UnknownTopic, placement_seen_by

HEARD_SECONDS = 10.0
PAUSE_SECONDS = 0.05

Seen = Mapping[TopicPartition, PartitionSeen]


def partitions_once(cluster: Cluster, topics: Sequence[str], is_heard: Callable[[Seen], bool]) -> Seen:
    """Those of these topics, or of all, as soon as a broker has heard of a change; who has not is named, if another one
    had to be asked. If nobody has, as they are."""
    deadline = time.monotonic() + HEARD_SECONDS
    while True:
        seen = cluster.seen(topics or None)
        now = _by_place(seen)
        if is_heard(now):
            return now
        if time.monotonic() > deadline:
            break
        time.sleep(PAUSE_SECONDS)
    asked = cluster.asked
    for others in _seen_by_others(cluster, asked, topics):
        if is_heard(others):
            say(f"done; {_name_of(asked, seen)} has not heard of it yet")
            return others
    return now


def _seen_by_others(cluster: Cluster, asked: Address, topics: Sequence[str]) -> Iterator[Seen]:
    others = {number: address for number, address in cluster.brokers().items() if address != asked}
    for said in cluster.of_brokers(others, lambda _, broker: _seen_by(broker, topics)).values():
        if not isinstance(said, NoAnswer) and said:
            yield said


def _seen_by(broker: Conversation, topics: Sequence[str]) -> Seen:
    try:
        return _by_place(placement_seen_by(broker, topics or None))
    except UnknownTopic:
        return {}


def _by_place(seen: ClusterSeen) -> Seen:
    return {place_of(each): each for each in seen.partitions}


def _name_of(address: Address, seen: ClusterSeen) -> str:
    numbers = {(each.host, each.port): f"broker {each.broker_id}" for each in seen.brokers}
    return numbers.get(address, str(address))
