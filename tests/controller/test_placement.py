"""Rows S7 to S10 of the system: the ordered list, the table, evenness, tolerance of a lost rack."""

from collections import defaultdict

from hypothesis import given
from hypothesis import strategies as st

from klamm.controller.placement import Candidate, Load, Replicas, placements, ring
from klamm.controller.wishes import MorePartitions, TopicToDelete
from tests.controller.world import World

INVOICE_CLUSTER = [Candidate(broker, "R1" if broker < 3 else "R2") for broker in range(6)]


def test_s7_brokers_are_listed_alternating_the_racks() -> None:
    listed = [f"{candidate.rack}-B{candidate.broker_id}" for candidate in ring(INVOICE_CLUSTER)]
    assert " ".join(listed) == "R1-B0 R2-B3 R1-B1 R2-B4 R1-B2 R2-B5"


def test_s7_a_rack_that_runs_out_is_left_out_of_the_later_rounds() -> None:
    uneven = [Candidate(0, "a"), Candidate(1, "a"), Candidate(2, "a"), Candidate(3, "b"), Candidate(4)]
    assert [candidate.broker_id for candidate in ring(uneven)] == [4, 0, 3, 1, 2]


S8 = """
    R1-B0  P0 P6  P5     P4
    R2-B3  P1 P7  P0 P6  P5
    R1-B1  P2 P8  P1 P7  P0 P6
    R2-B4  P3 P9  P2 P8  P1 P7
    R1-B2  P4     P3 P9  P2 P8
    R2-B5  P5     P4     P3 P9
"""


def test_s8_the_table_of_invoice() -> None:
    placed = placements(INVOICE_CLUSTER, Load(), 10, 3)
    lines = []
    for candidate in ring(INVOICE_CLUSTER):
        cells = [
            " ".join(f"P{partition}" for partition, replicas in enumerate(placed) if replicas[role] == candidate[0])
            for role in range(3)
        ]
        lines.append(f"    {candidate.rack}-B{candidate.broker_id}  {cells[0]:5}  {cells[1]:5}  {cells[2]}".rstrip())
    assert "\n".join(lines) == S8.strip("\n")


def test_s8_replica_j_of_partition_p_sits_at_p_plus_j() -> None:
    order = [candidate.broker_id for candidate in ring(INVOICE_CLUSTER)]
    for partition, replicas in enumerate(placements(INVOICE_CLUSTER, Load(), 30, 4)):
        assert list(replicas) == [order[(partition + j) % 6] for j in range(4)]


def test_a_later_topic_starts_where_the_fewest_lead() -> None:
    load = Load(placements(INVOICE_CLUSTER, Load(), 10, 3))
    assert placements(INVOICE_CLUSTER, load, 2, 3)[0] == (2, 5, 0)


def test_a_topic_of_another_replication_factor_starts_where_the_fewest_lead_of_all() -> None:
    load = Load(placements(INVOICE_CLUSTER, Load(), 2, 3))
    assert placements(INVOICE_CLUSTER, load, 1, 1) == [(1,)]


def test_a_new_broker_gets_its_share_of_the_next_topic_and_not_all_of_it() -> None:
    old = [Candidate(broker) for broker in range(3)]
    load = Load(placements(old, Load(), 300, 2))
    placed = placements([*old, Candidate(3)], load, 9, 2)
    led = [sum(replicas[0] == broker for replicas in placed) for broker in range(4)]
    assert led == [2, 2, 2, 3]


def test_fenced_brokers_follow_where_they_must_and_never_lead() -> None:
    brokers = [Candidate(0), Candidate(1, active=False), Candidate(2)]
    assert {broker for replicas in placements(brokers, Load(), 9, 2) for broker in replicas} == {0, 2}
    placed = placements(brokers, Load(), 9, 3)
    assert {replicas[0] for replicas in placed} == {0, 2} and all(1 in replicas for replicas in placed)


def test_a_small_rack_that_every_partition_needs_has_its_share_of_every_role() -> None:
    brokers = [*(Candidate(broker, "big") for broker in range(5)), Candidate(5, "small")]
    load = Load(placements(brokers, Load(), 120, 3))
    assert [role[5] for role in load.roles(3)] == [20, 50, 50]


@st.composite
def clusters(draw: st.DrawFn, *, equal: bool) -> list[Candidate]:
    count = draw(st.integers(1, 4))
    size = draw(st.integers(1, 4))
    sizes = [size if equal else draw(st.integers(1, 5)) for _ in range(count)]
    ids = draw(st.permutations(range(sum(sizes))))
    racks = [None if draw(st.booleans()) and count == 1 else f"R{rack}" for rack, size in enumerate(sizes)]
    return [Candidate(ids.pop(), rack) for rack, size in zip(racks, sizes, strict=True) for _ in range(size)]


class Sequence:
    """A sequence of topics created and grown on one cluster."""

    def __init__(self, data: st.DataObject, brokers: list[Candidate]) -> None:
        self.data = data
        self.brokers = brokers
        self.load = Load()
        self.topics: list[list[Replicas]] = []

    def step(self) -> list[Replicas]:
        data = self.data
        topic: list[Replicas] = []
        if len(self.topics) > 0 and data.draw(st.booleans(), "grow"):
            topic = self.topics[data.draw(st.integers(0, len(self.topics) - 1), "which")]
        factor = len(topic[0]) if topic else data.draw(st.integers(1, min(5, len(self.brokers))), "replication factor")
        more = placements(self.brokers, self.load, data.draw(st.integers(1, 15), "partitions"), factor, topic)
        if not topic:
            self.topics.append(topic)
        topic += more
        for replicas in more:
            self.load.add(replicas)
        return more

    def spreads(self, factor: int) -> list[int]:
        """Most less fewest, for each role, over all brokers."""
        counts = [[role.get(broker.broker_id, 0) for broker in self.brokers] for role in self.load.roles(factor)]
        return [max(role) - min(role) for role in counts]


def tolerates_the_loss_of_a_rack(brokers: list[Candidate], placed: list[Replicas]) -> None:
    rack_of = {broker.broker_id: broker.rack for broker in brokers}
    for replicas in placed:
        assert len(set(replicas)) == len(replicas), "no broker holds two replicas of a partition"
        covered = {rack_of[broker] for broker in replicas}
        assert len(covered) == min(len(replicas), len(set(rack_of.values()))), "as many racks as they can"


@given(st.data(), clusters(equal=True))
def test_s9_leaders_and_followers_are_even_over_any_sequence_of_topics_in_equal_racks(
    data: st.DataObject, brokers: list[Candidate]
) -> None:
    """'Leaders, and first, second, … followers, per broker each differ by at most one.'"""
    sequence = Sequence(data, brokers)
    for _ in range(data.draw(st.integers(1, 8))):
        tolerates_the_loss_of_a_rack(brokers, sequence.step())
        for topic in sequence.topics:
            assert max(sequence.spreads(len(topic[0]))) <= 1


@given(st.data(), clusters(equal=False))
def test_s10_holds_over_any_sequence_in_uneven_racks_and_leaders_are_even_still(
    data: st.DataObject, brokers: list[Candidate]
) -> None:
    """'Elsewhere S10 comes first, then as even as it allows.' Anybody may lead, so S10 allows even leaders."""
    sequence = Sequence(data, brokers)
    for _ in range(data.draw(st.integers(1, 8))):
        tolerates_the_loss_of_a_rack(brokers, sequence.step())
        for topic in sequence.topics:
            assert sequence.spreads(len(topic[0]))[0] <= 1


@given(clusters(equal=False), st.integers(1, 60), st.data())
def test_within_an_uneven_rack_brokers_carry_alike(
    brokers: list[Candidate], partitions: int, data: st.DataObject
) -> None:
    factor = data.draw(st.integers(1, min(5, len(brokers))))
    load = Load(placements(brokers, Load(), partitions, factor))
    for role in load.roles(factor):
        by_rack = defaultdict(list)
        for broker in brokers:
            by_rack[broker.rack].append(role.get(broker.broker_id, 0))
        assert all(max(counts) - min(counts) <= 3 for counts in by_rack.values())


@given(st.data(), clusters(equal=False), clusters(equal=False))
def test_s10_holds_whatever_the_history_of_brokers_and_deleted_topics(
    data: st.DataObject, before: list[Candidate], after: list[Candidate]
) -> None:
    sequence = Sequence(data, before)
    for _ in range(3):
        sequence.step()
    for replicas in sequence.topics.pop(0):
        sequence.load.remove(replicas)
    sequence.brokers, sequence.topics = after, []
    for _ in range(3):
        tolerates_the_loss_of_a_rack(after, sequence.step())


@given(clusters(equal=False), st.integers(1, 20), st.data())
def test_fenced_brokers_lead_nothing_and_follow_no_more_than_they_must(
    brokers: list[Candidate], partitions: int, data: st.DataObject
) -> None:
    active = data.draw(st.sets(st.sampled_from([each.broker_id for each in brokers]), min_size=1))
    brokers = [each._replace(active=each.broker_id in active) for each in brokers]
    factor = data.draw(st.integers(1, min(5, len(brokers))))
    placed = placements(brokers, Load(), partitions, factor)
    usable = brokers if len(active) < factor else [each for each in brokers if each.active]
    tolerates_the_loss_of_a_rack(usable, placed)
    racks = min(factor, len({each.rack for each in usable}))
    for replicas in placed:
        assert replicas[0] in active
        present = [broker for broker in replicas if broker in active]
        # One of a rack is enough to cover it; all other places go to those who are there.
        assert len(present) >= min(len(active), factor - racks + 1)


@given(clusters(equal=False), st.data())
def test_s10_a_whole_rack_goes_and_every_partition_that_can_still_has_a_leader(
    brokers: list[Candidate], data: st.DataObject
) -> None:
    """'A whole rack can go and every partition still has a leader', whatever was created, grown and deleted before,
    and wherever leaders were by then."""
    world = World(brokers=0, broker_session_timeout_ms="60000")
    for broker in brokers:
        world.join(broker.broker_id, broker.rack)
    for name in ("invoice", "orders", "stores"):
        factor = data.draw(st.integers(1, min(4, len(brokers))), "replication factor")
        world.create(name, data.draw(st.integers(1, 12), "partitions"), factor)
    grown = data.draw(st.sampled_from(["invoice", "orders"]))
    more = len(world.topic(grown).partitions) + 3
    world.run(world.controller.create_partitions([MorePartitions(grown, more)]))
    world.run(world.controller.delete_topics([TopicToDelete("stores")]))
    early = data.draw(st.sampled_from(brokers), "dies before").broker_id
    world.die(early)
    rack = data.draw(st.sampled_from(brokers), "in the rack that is lost").rack
    lost = [each.broker_id for each in brokers if each.rack == rack]
    world.wait(59_000)
    for broker in brokers:
        if broker.rack != rack and broker.broker_id != early:
            world.beat(broker.broker_id)
    world.tick()
    for name in ("invoice", "orders"):
        for state in world.topic(name).partitions:
            left = set(state.replicas).difference(lost, {early})
            assert (state.leader in left) == bool(left)
