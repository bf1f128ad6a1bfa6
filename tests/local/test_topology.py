"""Who stands where, and that a lost rack never takes the quorum with it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klamm.local.problems import BadLayout
from klamm.local.topology import PlannedNode, brokers_gone, has_majority, planned


def racks_of(nodes: tuple[PlannedNode, ...]) -> dict[str | None, list[int]]:
    racks: dict[str | None, list[int]] = {}
    for node in nodes:
        racks.setdefault(node.rack, []).append(node.node_id)
    return racks


def voters_of(nodes: tuple[PlannedNode, ...]) -> list[int]:
    return [node.node_id for node in nodes if node.is_voter]


def test_six_brokers_in_two_racks_stand_in_blocks_with_a_witness_outside() -> None:
    nodes = planned(6, 2)
    assert racks_of(nodes) == {"R1": [0, 1, 2], "R2": [3, 4, 5], None: [6]}
    assert voters_of(nodes) == [0, 3, 6]
    assert nodes[6].roles == ("controller",), "a witness decides with the others and holds nobody's records"


def test_with_three_racks_or_more_one_broker_in_each_of_three_votes() -> None:
    assert voters_of(planned(6, 3)) == [0, 2, 4]
    assert voters_of(planned(8, 4)) == [0, 2, 4]
    assert racks_of(planned(8, 4))["R4"] == [6, 7]


def test_in_one_rack_three_brokers_vote() -> None:
    assert voters_of(planned(5, 1)) == [0, 1, 2]
    assert voters_of(planned(3, 1)) == [0, 1, 2]


def test_where_three_cannot_vote_one_does() -> None:
    """Of two voters both are needed: the second would only be one more node that cannot be spared."""
    assert voters_of(planned(2, 1)) == [0]
    assert voters_of(planned(1, 1)) == [0]


def test_brokers_that_racks_do_not_divide() -> None:
    assert racks_of(planned(7, 3)) == {"R1": [0, 1, 2], "R2": [3, 4], "R3": [5, 6]}


@pytest.mark.parametrize(("brokers", "racks", "word"), [(0, 1, "at least"), (3, 0, "at least"), (2, 3, "3 racks")])
def test_what_cannot_be_is_said(brokers: int, racks: int, word: str) -> None:
    with pytest.raises(BadLayout, match=word):
        planned(brokers, racks)


clusters = st.integers(1, 12).flatmap(lambda racks: st.tuples(st.integers(racks, 40), st.just(racks)))


@given(clusters)
def test_a_lost_rack_never_takes_the_quorum(cluster: tuple[int, int]) -> None:
    brokers, racks = cluster
    nodes = planned(brokers, racks)
    everybody = {node.node_id for node in nodes}
    assert has_majority(nodes, everybody)
    for rack, lost in racks_of(nodes).items():
        survives = has_majority(nodes, everybody - set(lost))
        assert survives or racks == 1, f"rack {rack} took the quorum"


@given(clusters)
def test_with_three_voters_any_one_node_may_go(cluster: tuple[int, int]) -> None:
    nodes = planned(*cluster)
    everybody = {node.node_id for node in nodes}
    assert len(voters_of(nodes)) in (1, 3), "an even number of voters survives no more losses than one fewer"
    if len(voters_of(nodes)) == 3:
        assert all(has_majority(nodes, everybody - {lost}) for lost in everybody)


@given(clusters)
def test_brokers_are_numbered_in_even_blocks(cluster: tuple[int, int]) -> None:
    brokers, racks = cluster
    nodes = planned(brokers, racks)
    assert [node.node_id for node in nodes] == list(range(len(nodes)))
    assert [node.node_id for node in nodes if node.is_broker] == list(range(brokers))
    blocks = [ids for rack, ids in racks_of(nodes).items() if rack is not None]
    assert len(blocks) == racks and max(map(len, blocks)) - min(map(len, blocks)) <= 1
    assert all(ids == list(range(ids[0], ids[-1] + 1)) for ids in blocks)


@given(st.sets(st.integers(0, 6)))
def test_a_majority_is_more_than_half_of_the_voters(alive: set[int]) -> None:
    assert has_majority(planned(6, 2), alive) == (len(alive & {0, 3, 6}) >= 2)


def test_brokers_are_gone_where_nobody_decides_it() -> None:
    nodes = planned(6, 2)
    assert brokers_gone(nodes, {0, 1, 2, 6}) == [], "they are fenced, or about to be"
    assert brokers_gone(nodes, {0, 1, 2, 6}, is_undecided=True) == [3, 4, 5], "nobody has led since it was lost"
    assert brokers_gone(nodes, {1, 2, 6}) == [0, 3, 4, 5], "the witness is no broker"
    assert brokers_gone(nodes, set()) == [], "somebody answers, whom we do not see"
