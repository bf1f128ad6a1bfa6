"""Who leads next: one partition at a time, values in, values out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klamm.controller.leadership import Election, Electorate, Rules, Wish, next_state
from klamm.ids import NO_BROKER
from klamm.metadata.image import PartitionState
from klamm.metadata.partitions import change_record, changed_partition

TWO = Rules(min_isr=2)
UNCLEAN = Rules(unclean=True)
WITHOUT_ELR = Rules(elr=False)


def led(*replicas: int, isr: tuple[int, ...] | None = None, **more: object) -> PartitionState:
    in_sync = replicas if isr is None else isr
    leader = in_sync[0] if in_sync else NO_BROKER
    return PartitionState(replicas, in_sync, leader, 3, 7)._replace(**more)  # type: ignore[arg-type]


def lost(state: PartitionState, broker: int, active: set[int], rules: Rules = TWO, **leads: int) -> PartitionState:
    isr = tuple(each for each in state.isr if each != broker)
    counts = {int(name[1:]): count for name, count in leads.items()}
    return next_state(state, Wish(isr=isr), Electorate(active - {broker}, {}, counts), rules)


def test_s21_when_the_leader_is_lost_an_in_sync_follower_leads_in_a_new_epoch() -> None:
    after = lost(led(1, 2, 3), 1, {1, 2, 3})
    assert (after.leader, after.isr) == (2, (2, 3))
    assert (after.leader_epoch, after.partition_epoch) == (4, 8)


def test_the_follower_that_leads_the_fewest_takes_over_and_the_first_of_equals() -> None:
    assert lost(led(1, 2, 3), 1, {1, 2, 3}, b2=5, b3=4).leader == 3
    assert lost(led(1, 2, 3), 1, {1, 2, 3}, b2=4, b3=4).leader == 2


def test_leadership_goes_to_the_preferred_replica_if_it_can_because_it_would_go_there_anyway() -> None:
    assert lost(led(1, 2, 3, leader=2), 2, {1, 2, 3}, b1=99).leader == 1


def test_a_follower_that_is_lost_leaves_the_in_sync_replicas_and_the_leader_epoch_alone() -> None:
    after = lost(led(1, 2, 3), 3, {1, 2, 3})
    assert (after.leader, after.isr, after.leader_epoch, after.partition_epoch) == (1, (1, 2), 3, 8)


def test_who_leaves_when_nothing_is_committed_any_more_stays_eligible() -> None:
    after = lost(led(1, 2, 3, isr=(1, 2)), 2, {1, 2})
    assert (after.isr, after.elr) == ((1,), (2,))
    again = lost(after, 1, {1})
    assert (again.isr, again.elr, again.leader, again.last_known_elr) == ((), (1, 2), NO_BROKER, (1,))


def test_an_eligible_replica_leads_when_no_in_sync_one_is_left() -> None:
    after = lost(led(1, 2, 3, isr=(1,), elr=(2, 3)), 1, {1, 2, 3})
    assert (after.leader, after.isr, after.elr, after.recovering) == (2, (2,), (1, 3), False)


def test_enough_in_sync_replicas_need_no_eligible_ones() -> None:
    state = led(1, 2, 3, isr=(1,), elr=(2, 3))
    after = next_state(state, Wish(isr=(1, 3)), Electorate({1, 2, 3}), TWO)
    assert (after.isr, after.elr) == ((1, 3), ())


def test_more_than_all_replicas_are_never_demanded_in_sync() -> None:
    after = lost(led(1, 2), 2, {1, 2}, Rules(min_isr=5))
    assert after.elr == (2,), "of two, two are demanded"
    alone = lost(led(1), 1, {1}, Rules(min_isr=5))
    assert (alone.isr, alone.elr) == ((), (1,))


def test_a_distrusted_replica_is_neither_in_sync_nor_eligible() -> None:
    state = led(1, 2, isr=(1,), elr=(2,))
    after = next_state(state, Wish(distrusted={2}), Electorate({1}), TWO)
    assert (after.isr, after.elr, after.leader) == ((1,), (), 1)


def test_nobody_is_elected_who_is_out_of_sync_unless_that_is_allowed() -> None:
    state = led(1, 2, isr=(1,))
    assert lost(state, 1, {1, 2}, Rules()).leader == NO_BROKER
    after = lost(state, 1, {1, 2}, UNCLEAN)
    assert (after.leader, after.isr, after.elr, after.recovering) == (2, (2,), (), True)


def test_an_unclean_election_asked_for_prefers_those_who_may_lead() -> None:
    leaderless = led(1, 2, 3, isr=(), elr=(3,), last_known_elr=(1,))
    asked = Wish(election=Election.UNCLEAN)
    assert next_state(leaderless, asked, Electorate({2, 3}), TWO).leader == 3
    assert not next_state(leaderless, asked, Electorate({2, 3}), TWO).recovering
    assert next_state(leaderless, asked, Electorate({1, 2}), TWO).leader == 1, "the first replica that is there"
    assert next_state(leaderless, asked, Electorate(set()), TWO) is leaderless


def test_the_last_known_leader_leads_when_nobody_else_may() -> None:
    forgotten = led(1, 2, 3, isr=(), last_known_elr=(2,))
    after = next_state(forgotten, Wish(), Electorate({1, 2, 3}), TWO)
    assert (after.leader, after.isr, after.recovering, after.last_known_elr) == (2, (2,), True, ())
    assert next_state(forgotten, Wish(), Electorate({1, 3}), TWO) is forgotten
    assert next_state(forgotten, Wish(), Electorate({1, 2, 3}), WITHOUT_ELR).leader == NO_BROKER


def test_without_eligible_leader_replicas_the_last_in_sync_replica_is_never_given_up() -> None:
    after = lost(led(1, 2, isr=(1,)), 1, {1, 2}, WITHOUT_ELR)
    assert (after.isr, after.elr, after.leader) == ((1,), (), NO_BROKER)
    back = next_state(after, Wish(), Electorate({1, 2}), WITHOUT_ELR)
    assert (back.leader, back.isr) == (1, (1,))


def test_a_preferred_election_moves_leadership_only_to_who_is_in_sync() -> None:
    state = led(1, 2, isr=(2, 1))
    asked = Wish(election=Election.PREFERRED)
    assert next_state(state, asked, Electorate({1, 2}), TWO).leader == 1
    assert next_state(state, asked, Electorate({2}), TWO) is state
    lagging = led(1, 2, isr=(2,))
    assert next_state(lagging, asked, Electorate({1, 2}), TWO) is lagging


def test_a_replica_whose_directory_is_gone_leads_only_when_there_is_no_other() -> None:
    here, there = bytes([1]) * 16, bytes([2]) * 16
    state = led(1, 2, isr=(), last_known_elr=(1,), directories=(here, here))
    replaced = {1: (there,), 2: (here,)}
    assert next_state(state, Wish(), Electorate({1}, replaced), TWO) is state
    asked = Wish(election=Election.UNCLEAN)
    assert next_state(state, asked, Electorate({1, 2}, replaced), TWO).leader == 2
    last = next_state(state, asked, Electorate({1}, replaced), TWO)
    assert (last.leader, last.directories) == (1, (there, here))


@pytest.mark.parametrize(
    ("wish", "expected"),
    [
        (Wish(), ((4, 5, 1, 2, 3), (1, 2, 3), (4, 5), (2, 3), 1)),
        (Wish(isr=(1, 2, 3, 4)), ((4, 5, 1, 2, 3), (1, 2, 3, 4), (4, 5), (2, 3), 1)),
        (Wish(isr=(1, 2, 3, 4, 5)), ((4, 5, 1), (1, 4, 5), (), (), 1)),
        (Wish(isr=(1, 4, 5)), ((4, 5, 1), (1, 4, 5), (), (), 1)),
    ],
)
def test_a_reassignment_is_done_when_all_who_stay_are_in_sync(wish: Wish, expected: object) -> None:
    moving = led(4, 5, 1, 2, 3, isr=(1, 2, 3), adding=(4, 5), removing=(2, 3))
    after = next_state(moving, wish, Electorate({1, 2, 3, 4, 5}), TWO)
    assert (after.replicas, after.isr, after.adding, after.removing, after.leader) == expected


def test_a_leader_that_is_reassigned_away_hands_over_in_a_new_epoch() -> None:
    moving = led(4, 1, isr=(1,), adding=(4,), removing=(1,))
    after = next_state(moving, Wish(isr=(1, 4)), Electorate({1, 4}), TWO)
    assert (after.replicas, after.leader, after.isr, after.leader_epoch) == ((4,), 4, (4,), 4)


def test_replicas_that_are_taken_away_notice_by_a_new_leader_epoch() -> None:
    moving = led(1, 2, 3, removing=(3,))
    after = next_state(moving, Wish(isr=(1, 2)), Electorate({1, 2, 3}), TWO)
    assert (after.replicas, after.leader, after.leader_epoch) == ((1, 2), 1, 4)


brokers = st.integers(0, 5)
some = st.lists(brokers, unique=True, max_size=4).map(tuple)


@st.composite
def states(draw: st.DrawFn) -> PartitionState:
    replicas = tuple(draw(st.lists(brokers, unique=True, min_size=1, max_size=5)))
    isr = tuple(each for each in replicas if draw(st.booleans()))
    elr = tuple(each for each in replicas if each not in isr and draw(st.booleans()))
    leader = draw(st.sampled_from(isr)) if isr and draw(st.booleans()) else NO_BROKER
    known = () if isr else (draw(st.sampled_from(replicas)),)
    removing = tuple(each for each in replicas[1:] if draw(st.booleans()))
    adding = tuple(each for each in replicas if each not in removing and draw(st.booleans()))
    directories = tuple(bytes([each]) * 16 for each in replicas)
    epochs = draw(st.integers(0, 9)), draw(st.integers(0, 9))
    recovering = draw(st.booleans())
    return PartitionState(replicas, isr, leader, *epochs, recovering, elr, known, adding, removing, directories)


@given(states(), st.data())
def test_the_record_of_a_change_makes_the_change(state: PartitionState, data: st.DataObject) -> None:
    """What is decided as a state and written as a record is replayed as that state."""
    wish = Wish(
        isr=data.draw(st.none() | some.map(lambda isr: tuple(each for each in isr if each in state.replicas))),
        election=data.draw(st.sampled_from(Election)),
        recovering=data.draw(st.none() | st.booleans()),
        distrusted=data.draw(some),
    )
    rules = Rules(data.draw(st.integers(1, 4)), data.draw(st.booleans()), data.draw(st.booleans()))
    after = next_state(state, wish, Electorate(data.draw(some)), rules)
    record = change_record(bytes(16), 0, state, after)
    if record is None:
        assert after is state
    else:
        assert changed_partition(state, record) == after != state
