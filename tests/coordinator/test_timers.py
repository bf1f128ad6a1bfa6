"""Deadlines with names, against a dict and `min`."""

from hypothesis import given
from hypothesis import strategies as st

from klamm.coordinator.timers import STALE, Timers
from klamm.ids import Now

NAMES = st.sampled_from("abcde")
ACTIONS = st.one_of(
    st.tuples(st.just("set"), NAMES, st.integers(0, 30)),
    st.tuples(st.just("off"), NAMES, st.just(0)),
    st.tuples(st.just("due"), st.just(""), st.integers(0, 30)),
)


def at(ms: float) -> Now:
    return Now(ms, 0)


@given(st.lists(ACTIONS, max_size=80))
def test_any_history(actions: list[tuple[str, str, int]]) -> None:
    timers: Timers[str] = Timers()
    naive: dict[str, float] = {}
    for action, name, ms in actions:
        if action == "set":
            timers.set(name, ms)
            naive[name] = ms
        elif action == "off":
            timers.take_off(name)
            naive.pop(name, None)
        else:
            rang = timers.take_due(at(ms))
            soonest = min(naive.values(), default=None)
            assert (rang is None) == (soonest is None or soonest > ms)
            if rang is not None:
                assert naive.pop(rang) == soonest
        assert timers.next_due_ms == min(naive.values(), default=None)
        assert len(timers) == len(naive)
        assert {each for each in "abcde" if timers.is_set(each)} == set(naive)


def test_who_is_set_first_rings_first() -> None:
    timers: Timers[str] = Timers()
    for name in "cab":
        timers.set(name, 5)
    assert [timers.take_due(at(5)) for _ in range(4)] == ["c", "a", "b", None]


def test_due_is_due() -> None:
    timers: Timers[str] = Timers()
    timers.set("a", 5)
    assert timers.take_due(at(4.999)) is None
    assert timers.take_due(at(5)) == "a"
    assert timers.take_due(at(5)) is None


def test_heartbeats_cost_nothing_and_what_moves_to_and_fro_is_tidied() -> None:
    timers: Timers[str] = Timers()
    for ms in range(10_000):
        timers.set("beats", ms)
        timers.set("moves", 10_000 - ms % 2 * 5_000)
    assert len(timers._heap) <= 2 * 2 + STALE
    assert timers.next_due_ms == 5_000
