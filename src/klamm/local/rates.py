"""How quickly records come and go, from looks at a cluster some seconds apart.

What comes in is how far the ends of the partitions moved, counted for who leads them now; its bytes are those on disk.
What goes out are the bytes that a broker has given to consumers, as it counts them itself; it does not count records.
Consumer groups say how many records they have read, every few seconds, so that is taken over a longer while.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from klamm.local.look import Look, Offsets, named
from klamm.local.view import PartitionSeen

LATELY_SECONDS, GROUPS_SECONDS = 4.0, 12.0


@dataclass(slots=True)
class Rates:
    """Of one broker, each a second."""

    records_in: float = 0.0
    bytes_in: float = 0.0
    bytes_out: float = 0.0

    def add(self, other: "Rates") -> None:
        self.records_in += other.records_in
        self.bytes_in += other.bytes_in
        self.bytes_out += other.bytes_out


class Recently:
    """The looks of the last seconds."""

    def __init__(self) -> None:
        self._looks: deque[Look] = deque()

    def note(self, look: Look) -> None:
        self._looks.append(look)
        while len(self._looks) > 2 and look.at_seconds - self._looks[1].at_seconds >= GROUPS_SECONDS:
            self._looks.popleft()

    def rates(self) -> dict[int, Rates]:
        """By broker; of those that lead something or gave something."""
        return rates(tuple(self._looks))

    def reading(self) -> dict[str, float]:
        return reading(tuple(self._looks))


def rates(looks: Sequence[Look]) -> dict[int, Rates]:
    if len(looks) < 2:
        return {}
    now = looks[-1]
    found: dict[int, Rates] = {}
    lately = next(look for look in looks if now.at_seconds - look.at_seconds <= LATELY_SECONDS or look is looks[-2])
    for each in now.own:
        if not each.is_offline:
            _add_in(found.setdefault(each.leader, Rates()), each, lately, now)
    for broker_id in now.figures:
        found.setdefault(broker_id, Rates()).bytes_out += _bytes_out(broker_id, lately, now)
    return found


def reading(looks: Sequence[Look]) -> dict[str, float]:
    """By consumer group: how many records a second it says it has read."""
    if len(looks) < 2:
        return {}
    before, now = looks[0], looks[-1]
    seconds = _seconds(before, now)
    return {group: _read(before.committed.get(group, {}), told) / seconds for group, told in now.committed.items()}


def total(of_brokers: dict[int, Rates]) -> Rates:
    found = Rates()
    for each in of_brokers.values():
        found.add(each)
    return found


def _add_in(found: Rates, partition: PartitionSeen, before: Look, now: Look) -> None:
    place, seconds = named(partition), _seconds(before, now)
    if place in before.partitions:
        found.records_in += max(0, now.ends.get(place, 0) - before.ends.get(place, 0)) / seconds
        found.bytes_in += max(0, _size(now, partition) - _size(before, partition)) / seconds


def _bytes_out(broker_id: int, before: Look, now: Look) -> float:
    """Of people's topics, to whoever reads them. A broker that was started again counts from nothing."""
    if broker_id not in before.figures:
        return 0.0
    then, given = before.figures[broker_id].bytes_out, now.figures[broker_id].bytes_out
    own = {each.topic for each in now.own}
    grown = (bytes_out - then.get(topic, 0) for topic, bytes_out in given.items() if topic in own)
    return sum(max(0, each) for each in grown) / _seconds(before, now)


def _read(before: Offsets, now: Offsets) -> int:
    """What was committed for the first time may have been read long ago, and is not counted."""
    return sum(max(0, offset - before[place]) for place, offset in now.items() if place in before)


def _size(look: Look, partition: PartitionSeen) -> int:
    """Of the log of who leads now, also where it did not lead then: copies are equal."""
    return look.sizes.get(partition.leader, {}).get(named(partition), 0)


def _seconds(before: Look, now: Look) -> float:
    return max(1e-3, now.at_seconds - before.at_seconds)
