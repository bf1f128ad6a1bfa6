"""Where partitions shall move to: on which brokers, and who of them is preferred to lead.

Said outright for a partition or some, or spread over brokers as the controller spreads a new topic: over racks, leaders
and followers evenly, leaning towards who has less of other topics. Each partition gets that of the
places of which it has most already, so that little is copied, and a topic that is spread like this stays as it is.
"""

import argparse
from collections import Counter
from collections.abc import Mapping, Sequence

from klamm.cli.options import Misused
from klamm.controller.placement import Candidate, Load, Replicas, placements
from klamm.local.view import ClusterSeen

Held = Mapping[int, Replicas]
"""The replicas of each partition of a topic, by its number."""


def brokers_of(text: str) -> Replicas:
    """`1,2,3`"""
    try:
        brokers = tuple(int(part) for part in text.split(","))
    except ValueError:
        brokers = ()
    if not brokers or min(brokers) < 0:
        raise argparse.ArgumentTypeError(f"{text}: expected the numbers of brokers, as in 1,2,3")
    if len(set(brokers)) < len(brokers):
        raise argparse.ArgumentTypeError(f"{text}: a broker holds a partition once")
    return brokers


def check_known(seen: ClusterSeen, brokers: Sequence[int]) -> None:
    there = [each.broker_id for each in seen.brokers]
    missing = sorted(set(brokers).difference(there))
    if missing:
        raise Misused(f"there is no broker {missing[0]}; there are {listed(there)}")


def outright(topic: str, held: Held, replicas: Replicas, *, is_whole_topic: bool) -> dict[int, Replicas]:
    if is_whole_topic and len(held) > 1:
        raise Misused(
            f"--replicas would make broker {replicas[0]} lead all {len(held)} partitions of {topic}: --to spreads them "
            "over these brokers, --partition N chooses one"
        )
    return dict.fromkeys(held, replicas)


def spread(
    seen: ClusterSeen, topic: str, held: Held, brokers: Replicas, replication: int | None
) -> dict[int, Replicas]:
    """With as many replicas as each partition has, or as many as were asked for."""
    factors = {number: replication or len(replicas) for number, replicas in held.items()}
    _check_enough(max(factors.values()), brokers)
    candidates = [
        Candidate(each.broker_id, each.rack, not each.is_fenced) for each in seen.brokers if each.broker_id in brokers
    ]
    if not any(each.active for each in candidates):
        raise Misused("all of these brokers are down")
    staying = [each for each in seen.partitions if each.topic != topic or each.partition not in held]
    load = Load(each.replicas for each in staying)
    existing = [each.replicas for each in staying if each.topic == topic]
    targets: dict[int, Replicas] = {}
    for factor in sorted(set(factors.values())):
        alike = {number: held[number] for number, its_own in factors.items() if its_own == factor}
        targets |= _shared_out(alike, placements(candidates, load, len(alike), factor, existing))
    return dict(sorted(targets.items()))


def _check_enough(factor: int, brokers: Replicas) -> None:
    if factor > len(brokers):
        raise Misused(
            f"{factor} replicas of a partition need {factor} brokers, and there are {len(brokers)} in --to; "
            f"--replication {len(brokers)} asks for fewer"
        )


def _shared_out(held: Held, places: Sequence[Replicas]) -> dict[int, Replicas]:
    """Each place to one partition, those first that have most of it."""
    left = Counter(places)
    pairs = sorted(
        ((number, place) for number in held for place in left), key=lambda pair: _copied(held[pair[0]], pair[1])
    )
    found: dict[int, Replicas] = {}
    for number, place in pairs:
        if number not in found and left[place]:
            found[number] = place
            left[place] -= 1
    assert found.keys() == held.keys()
    return found


def _copied(replicas: Replicas, place: Replicas) -> tuple[bool, int, bool]:
    """How much a partition would have to do to get there, the weightier first."""
    return replicas != place, len(set(place).difference(replicas)), replicas[:1] != place[:1]


def listed(brokers: Sequence[int]) -> str:
    return ", ".join(map(str, brokers)) or "-"
