"""Which brokers hold which partition.

The brokers stand in a ring, alternating the racks, and replica j of partition p sits at position (start + p + j). In
equal racks that gives all we promise: neighbours are in different racks, so replicas cover as many racks as they can
(S10), and every partition is the same pattern turned, so that as soon as leaders are even, first, second, … followers
are too (S9). A new cluster starts at position 0; later topics continue where the fewest partitions lead.

Uneven racks have no such ring. So placement is told as a choice, one replica at a time, of the broker that holds this
role least often, nearest in the ring among equals, as long as all racks can still be covered. In equal racks that
choice *is* the ring; elsewhere S10 comes first, and the rest is as even as it allows.

Counts are kept apart by replication factor, because a mix of them turns by no common pattern. While a role is even we
keep it even. When history made it uneven (a broker came, topics went) a topic is first spread evenly in itself and then
leans towards those who have less: else a new broker would get every partition of the next topic.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from klamm.ids import BrokerId

Replicas = tuple[BrokerId, ...]


class Candidate(NamedTuple):
    broker_id: BrokerId
    rack: str | None = None
    active: bool = True


class Load:
    """How often each broker is replica 0, 1, 2, … of a partition, for every replication factor."""

    __slots__ = ("_roles",)

    def __init__(self, placed: Iterable[Replicas] = ()) -> None:
        self._roles: dict[int, list[dict[BrokerId, int]]] = {}
        for replicas in placed:
            self.add(replicas)

    def add(self, replicas: Replicas, times: int = 1) -> None:
        roles = self._roles.get(len(replicas))
        if roles is None:
            roles = self._roles[len(replicas)] = [{} for _ in replicas]
        for role, broker in zip(roles, replicas, strict=True):
            role[broker] = role.get(broker, 0) + times

    def remove(self, replicas: Replicas) -> None:
        self.add(replicas, -1)

    def merge(self, other: "Load") -> None:
        for factor, roles in other._roles.items():
            known = self._roles.setdefault(factor, [{} for _ in roles])
            for role, more in zip(known, roles, strict=True):
                for broker, times in more.items():
                    role[broker] = role.get(broker, 0) + times

    def copy(self) -> "Load":
        other = Load()
        other._roles = {factor: [role.copy() for role in roles] for factor, roles in self._roles.items()}
        return other

    def roles(self, replication_factor: int) -> Sequence[Mapping[BrokerId, int]]:
        return self._roles.get(replication_factor) or [{}] * replication_factor

    def leads(self, broker: BrokerId) -> int:
        """Of how many partitions, whatever their replication factor, it is the preferred leader."""
        return sum(roles[0].get(broker, 0) for roles in self._roles.values() if roles)


def ring(candidates: Iterable[Candidate]) -> list[Candidate]:
    """The ordered list of brokers (S7): one of each rack in turn, by id within the rack, racks by name."""
    racks: dict[str, list[Candidate]] = {}
    for candidate in sorted(candidates):
        racks.setdefault(candidate.rack or "", []).append(candidate)
    queues = [racks[name] for name in sorted(racks)]
    rounds = max(map(len, queues), default=0)
    return [queue[turn] for turn in range(rounds) for queue in queues if turn < len(queue)]


def placements(
    candidates: Sequence[Candidate],
    load: Load,
    partitions: int,
    replication_factor: int,
    existing: Iterable[Replicas] = (),
) -> list[Replicas]:
    """Replicas for so many more partitions of a topic that has the `existing` ones. `load` is not changed."""
    return list(placed(candidates, load, partitions, replication_factor, existing))


def placed(
    candidates: Sequence[Candidate],
    load: Load,
    partitions: int,
    replication_factor: int,
    existing: Iterable[Replicas] = (),
) -> Iterator[Replicas]:
    """The same, one after the other as they are asked for.

    Brokers that are not active lead nothing, and follow only where the active ones are too few.
    """
    active = [candidate for candidate in candidates if candidate.active]
    usable = active if len(active) >= replication_factor else candidates
    assert active and 1 <= replication_factor <= len(usable)
    chooser = _Chooser(ring(usable), load, replication_factor, existing)
    return (chooser.next() for _ in range(partitions))


class _Chooser:
    """Chooses partition after partition. Everything is counted by position in the ring: `counts[role][position]` for
    all topics of this replication factor, `own[role][position]` for this topic."""

    def __init__(self, brokers: list[Candidate], load: Load, factor: int, existing: Iterable[Replicas]) -> None:
        self._brokers = brokers
        self._factor = factor
        self._racks = [candidate.rack or "" for candidate in brokers]
        self._rack_count = min(factor, len(set(self._racks)))
        topic = Load(replicas for replicas in existing if len(replicas) == factor)
        self._counts = [[role.get(b.broker_id, 0) for b in brokers] for role in load.roles(factor)]
        self._own = [[role.get(b.broker_id, 0) for b in brokers] for role in topic.roles(factor)]
        self._leads = [load.leads(b.broker_id) for b in brokers]
        self._last_leader = -1

    def next(self) -> Replicas:
        chosen: list[int] = [self._leader()]
        for role in range(1, self._factor):
            chosen.append(self._follower(role, chosen))
        self._exchange_roles(chosen)
        for role, position in enumerate(chosen):
            self._counts[role][position] += 1
            self._own[role][position] += 1
        self._leads[chosen[0]] += 1
        self._last_leader = chosen[0]
        return tuple(self._brokers[position].broker_id for position in chosen)

    def _leader(self) -> int:
        """Anybody may lead: the other replicas can cover the other racks. Among equals, who leads least of all
        topics; then the next in the ring."""
        burden, n = self._burden(0), len(self._brokers)
        return min(
            (position for position in range(n) if self._brokers[position].active),
            key=lambda position: (burden[position], self._leads[position], (position - self._last_leader - 1) % n),
        )

    def _follower(self, role: int, chosen: list[int]) -> int:
        """Of those that leave enough replicas to cover all racks, active ones first."""
        burden, n, last = self._burden(role), len(self._brokers), chosen[-1]
        covered = {self._racks[position] for position in chosen}
        must_be_new = self._rack_count - len(covered) == self._factor - role
        return min(
            (
                position
                for position in range(n)
                if position not in chosen and not (must_be_new and self._racks[position] in covered)
            ),
            key=lambda position: (not self._brokers[position].active, burden[position], (position - last - 1) % n),
        )

    def _burden(self, role: int) -> list[tuple[int, int]]:
        """What each position carries in this role, the weightier count first."""
        counts, own = self._counts[role], self._own[role]
        is_even = max(counts) - min(counts) <= 1
        return list(zip(counts, own, strict=True) if is_even else zip(own, counts, strict=True))

    def _exchange_roles(self, chosen: list[int]) -> None:
        """A rack with few brokers is needed by nearly every partition, and would fill the last role, where it is
        forced, and no other. Two followers change places where that evens their roles; in equal racks it never does.
        """
        for one in range(1, self._factor):
            for other in range(one + 1, self._factor):
                here, there = self._counts[one], self._counts[other]
                a, b = chosen[one], chosen[other]
                if here[b] + there[a] < here[a] + there[b]:
                    chosen[one], chosen[other] = b, a
