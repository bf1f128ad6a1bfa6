"""Whoever follows waits for a leader, and is told so once; everybody else is told in the end."""

from collections.abc import Iterator, Mapping
from types import SimpleNamespace

import pytest

from klamm.cli import consume_waiting
from klamm.cli.consume_bounds import NoLeader
from klamm.cli.consume_reading import Reading
from klamm.cli.consume_waiting import PATIENCE_SECONDS, Waiting, once_led
from klamm.cli.group_asking import Refused
from klamm.cli.progress import Progress
from klamm.local.asking import NoAnswer
from tests.cli.conftest import Klamm

LONG = PATIENCE_SECONDS + 1
FORMER = "it waits for 1 other member"
STUCK = (
    "partition 3 of t has no leader that answers; `klamm topic describe t` shows why, --partition reads others; "
    "waiting for it"
)


class World:
    """A cluster that tells where the partitions end, or what is in the way."""

    def __init__(self, *, follows: bool) -> None:
        self.problem: Exception | None = None
        self.said: list[str] = []
        self.waiting = Waiting(self._stops, self.said.append, follows=follows)

    def _stops(self) -> Mapping[int, int]:
        if self.problem is not None:
            raise self.problem
        return {3: 7}


def test_whoever_follows_waits_and_is_told_once() -> None:
    """It ended with exit code 1 after three quarters of a minute."""
    world = World(follows=True)
    world.problem = NoLeader("t", 3)
    assert [world.waiting.look(seconds) for seconds in (5.0, LONG, 10 * LONG)] == [None] * 3
    assert world.said == [STUCK]
    world.problem = None
    assert world.waiting.look(5.0) == {3: 7}
    world.waiting.look(10.0)
    assert world.said == [STUCK, "it goes on"]


def test_whoever_begins_to_follow_where_nobody_leads_waits_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consume_waiting, "PAUSE_SECONDS", 0.0)
    answers: Iterator[NoLeader | str] = iter([NoLeader("t", 1), NoLeader("t", 1), NoLeader("t", 2), "led"])
    said: list[str] = []

    def ask() -> str:
        answer = next(answers)
        if isinstance(answer, NoLeader):
            raise answer
        return answer

    assert once_led(ask, said.append) == "led"
    assert [text.partition(" of")[0] for text in said] == ["partition 1", "partition 2", "it goes on"]


def test_whoever_waits_for_a_leader_waits_also_while_nobody_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """It had said "waiting for it", and ended when the broker that it asked went as well."""
    monkeypatch.setattr(consume_waiting, "PAUSE_SECONDS", 0.0)
    answers: Iterator[NoLeader | NoAnswer | str] = iter([NoLeader("t", 1), NoAnswer("b:1"), NoAnswer("b:1"), "led"])
    said: list[str] = []

    def ask() -> str:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    assert once_led(ask, said.append) == "led"
    assert said[1:] == ["no broker answers: b:1; waiting for it", "it goes on"]


def test_an_address_where_nobody_has_ever_answered_is_not_waited_for() -> None:
    def ask() -> str:
        raise NoAnswer("b:1")

    with pytest.raises(NoAnswer):
        once_led(ask, pytest.fail)


def test_records_of_that_partition_tell_that_it_goes_on() -> None:
    world = World(follows=True)
    world.problem = NoLeader("t", 3)
    world.waiting.look(5.0)
    world.waiting.heard([SimpleNamespace(partition=lambda: 1)])
    assert world.said == [STUCK], "that is another one"
    world.waiting.heard([SimpleNamespace(partition=lambda: 3)])
    assert world.said == [STUCK, "it goes on"]


def test_any_record_tells_that_somebody_answers_again() -> None:
    world = World(follows=True)
    world.problem = NoAnswer("b:1: timed out")
    world.waiting.look(5.0)
    world.waiting.heard([])
    world.waiting.heard([SimpleNamespace(partition=lambda: 0)])
    assert world.said == ["no broker answers: b:1: timed out; waiting for it", "it goes on"]


@pytest.mark.parametrize("problem", [NoLeader("t", 3), NoAnswer("b:1: timed out")])
def test_whoever_wants_to_be_at_the_end_is_told_that_it_cannot_be_reached(problem: Exception) -> None:
    world = World(follows=False)
    world.problem = problem
    assert world.waiting.look(PATIENCE_SECONDS) is None
    with pytest.raises((Refused, NoAnswer)):
        world.waiting.look(LONG)
    assert world.said == []


def test_whoever_follows_what_does_not_come_back_is_told() -> None:
    world = World(follows=True)
    world.problem = NoLeader("t", 3)
    world.waiting.look(10 * LONG)
    world.problem = Refused("there is no topic t")
    assert world.waiting.look(11 * LONG) is None, "it may come back as well as a leader"
    assert world.waiting.look(11 * LONG + PATIENCE_SECONDS) is None
    with pytest.raises(Refused):
        world.waiting.look(12 * LONG)
    assert world.said == [STUCK, "there is no topic t; waiting for it"]


def test_another_obstacle_is_told_as_well() -> None:
    world = World(follows=True)
    for problem in (NoLeader("t", 3), NoLeader("t", 3), NoLeader("t", 4)):
        world.problem = problem
        world.waiting.look(5.0)
    assert world.said == [STUCK, STUCK.replace("3", "4")]


def test_a_group_that_lets_nobody_in_is_said_once() -> None:
    world, asked = World(follows=False), []

    def why() -> str:
        asked.append(True)
        return "2 of 3 nodes are dead"

    for _ in range(2):
        world.waiting.tell_of_group("g", why)
    assert world.said == ["waiting to join group g: 2 of 3 nodes are dead"]
    assert asked == [True], "it takes a second for every node that is dead"


def test_after_an_outage_a_group_may_have_to_let_us_in_again() -> None:
    """It said "it goes on", and nothing came for as long as the member it had been before was waited for."""
    world, is_in = World(follows=True), False
    world.waiting = Waiting(world._stops, world.said.append, lambda: is_in, follows=True)
    for _ in range(2):
        world.problem = NoLeader("t", 3)
        world.waiting.look(5.0)
        world.problem = None
        world.waiting.look(5.0)
        world.waiting.tell_of_group("g", lambda: FORMER)
        world.waiting.tell_of_group("g", lambda: FORMER)
    assert world.said == [STUCK, "what was in the way is over", f"waiting to join group g: {FORMER}"] * 2
    world.waiting.maybe_tell_of_entry()
    assert world.said[-1].startswith("waiting"), "not yet"
    is_in = True
    for _ in range(2):
        world.waiting.heard([SimpleNamespace(partition=lambda: 3)])
    assert world.said[-2:] == [f"waiting to join group g: {FORMER}", "joined group g"]
    world.problem = NoLeader("t", 3)
    world.waiting.look(5.0)
    world.problem = None
    world.waiting.look(5.0)
    assert world.said[-1] == "it goes on"


def test_the_counter_is_cleared_before_anything_is_said(
    klamm_command: Klamm, counted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It said "2,751 a secondklamm consume: partition 0 …"."""

    class OnATerminal(Progress):
        def __init__(self, wanted: bool = True) -> None:
            super().__init__(wanted)
            self._is_terminal, self._is_shown, self._next = True, True, 0.0

    def fails(reading: Reading, _: int | None) -> Iterator[list[object]]:
        yield []
        raise NoLeader("t", 3)

    monkeypatch.setattr("klamm.cli.consume.Progress", OnATerminal)
    monkeypatch.setattr(Reading, "batches", fails)
    code, _, err = klamm_command("consume", counted)
    assert code == 1 and "a second\r\x1b[Kklamm consume: partition 3 of t has no leader" in err
