"""Whatever happens to a cluster: nothing that was committed is lost unless somebody wanted it so, nothing waits without
need, what is counted along is true, and in the end everything is as it should be."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from hypothesis import given, settings
from hypothesis import strategies as st

from klamm import slicing
from klamm.controller.controller import Controller
from klamm.controller.placement import Load
from klamm.controller.state import State
from klamm.ids import NO_BROKER
from klamm.metadata import records
from klamm.metadata.image import EMPTY, Image
from tests.controller.histories import BROKERS, History
from tests.controller.world import CLUSTER, START

STEPS = 40


@settings(max_examples=150)
@given(st.integers(0, 2**32))
def test_i12_i19_only_who_holds_everything_is_elected_over_any_history(seed: int) -> None:
    history = History(seed)
    for _ in range(STEPS):
        history.step()
    counts_are_true(history.controller._state, history.controller.image)
    history.heal()
    for topic in history.controller.image.topics.values():
        for state in topic.partitions:
            assert state.leader == state.replicas[0], "leadership is back where it belongs"
            assert set(state.isr) == set(state.replicas) and not state.elr and not state.last_known_elr
            assert not state.recovering and not state.adding and not state.removing


@settings(max_examples=60)
@given(st.integers(0, 2**32))
def test_the_same_when_every_partition_is_decided_by_itself_and_others_are_heard_in_between(seed: int) -> None:
    with one_at_a_time():
        history = History(seed)
        history.on_pause = history.interfere
        for _ in range(STEPS):
            history.step()
        counts_are_true(history.controller._state, history.controller.image)
        history.on_pause = lambda: None
        history.heal()
    for topic in history.controller.image.topics.values():
        for state in topic.partitions:
            assert state.leader == state.replicas[0] and set(state.isr) == set(state.replicas)


@contextmanager
def one_at_a_time() -> Iterator[None]:
    before, slicing.ELEMENTS_A_SLICE = slicing.ELEMENTS_A_SLICE, 1
    try:
        yield
    finally:
        slicing.ELEMENTS_A_SLICE = before


@settings(max_examples=20)
@given(st.integers(0, 2**32))
def test_who_replays_the_log_knows_what_its_writer_knew(seed: int) -> None:
    history = History(seed)
    for _ in range(STEPS):
        history.step()
    replayed = Controller(history.config, CLUSTER, history.random, EMPTY, START)
    for record in history.log:
        replayed.replay(records.decode(records.encode(record)))
    assert replayed.image == history.controller.image
    resumed = State(history.controller.image)
    for state in (replayed._state, resumed):
        counts_are_true(state, history.controller.image)


def test_the_histories_reach_what_they_are_for() -> None:
    seen: Counter[str] = Counter()
    for seed in range(100):
        history = History(seed)
        for _ in range(STEPS):
            history.step()
        seen += history.seen
    assert len(seen) == 8, f"only these happened: {sorted(seen)}"


def counts_are_true(state: State, image: Image) -> None:
    """What was counted along is what a beginner counts."""
    partitions = {
        (topic.topic_id, index): partition
        for topic in image.topics.values()
        for index, partition in enumerate(topic.partitions)
    }
    leads = Counter(each.leader for each in partitions.values() if each.leader != NO_BROKER)
    assert {broker: count for broker, count in state.leads.items() if count} == leads
    assert state.leaderless.keys() == {key for key, each in partitions.items() if each.leader == NO_BROKER}
    assert state.eligible.keys() == {key for key, each in partitions.items() if each.elr}
    assert state.reassigning.keys() == {key for key, each in partitions.items() if each.adding or each.removing}
    assert state.misled.keys() == {
        key for key, each in partitions.items() if each.leader not in (NO_BROKER, each.replicas[0])
    }
    for broker in range(BROKERS):
        assert sorted(state.held_by(broker)) == sorted(
            key for key, each in partitions.items() if broker in each.replicas
        )
    anew = Load(each.replicas for each in partitions.values())
    for factor in range(1, BROKERS + 1):
        assert [{b: n for b, n in role.items() if n} for role in state.load.roles(factor)] == [
            {b: n for b, n in role.items() if n} for role in anew.roles(factor)
        ]
