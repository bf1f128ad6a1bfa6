"""Long work of one request leaves room for everybody else, and its connection waits for it."""

from collections.abc import Callable, Generator
from typing import Any

import pytest

from klamm.broker.answer import Answer, Changed, Finished, Later, Wait
from klamm.broker.call import Call
from klamm.broker.slices import Slices, Work
from klamm.broker.waiting import Waiting
from klamm.ids import Now
from klamm.node.events import Yielded
from klamm.node.facts import HandlerFailed
from klamm.wire.apis import METADATA
from klamm.wire.messages.api_versions import ApiVersionsRequest
from klamm.wire.messages.metadata import MetadataRequest, MetadataResponse
from tests.node.world import Client, World

NOW = Now(0.0, 0)


def nobody_waits(wait: Wait, go_on: Callable[[], None], connection: int) -> None:
    raise AssertionError("nobody waits here")


def counting(name: str, slices: int, log: list[str]) -> Work:
    for number in range(slices):
        log.append(f"{name}{number}")
        yield


def ended(log: list[str], name: str) -> Callable[[Exception | None, Now], None]:
    return lambda error, now: log.append(f"{name} ends" if error is None else f"{name} fails: {error}")


def test_works_take_turns() -> None:
    slices, log = Slices(nobody_waits), list[str]()
    slices.add(counting("a", 2, log), ended(log, "a"))
    slices.add(counting("b", 1, log), ended(log, "b"))
    while slices:
        slices.run_slice(NOW)
    assert log == ["a0", "b0", "a1", "b ends", "a ends"]


def test_each_slice_is_told_its_time() -> None:
    seen = []

    def work() -> Work:
        seen.append((yield))

    slices = Slices(nobody_waits)
    slices.add(work(), lambda error, now: None)
    slices.run_slice(Now(1.0, 1))
    slices.run_slice(Now(2.0, 2))
    assert seen == [Now(2.0, 2)]


def test_a_work_that_fails_ends_alone() -> None:
    def failing() -> Work:
        yield
        raise ValueError("no")

    slices, log = Slices(nobody_waits), list[str]()
    slices.add(failing(), ended(log, "a"))
    slices.add(counting("b", 2, log), ended(log, "b"))
    while slices:
        slices.run_slice(NOW)
    assert log == ["b0", "a fails: no", "b1", "b ends"]


def test_an_abandoned_work_is_closed_and_costs_no_slice() -> None:
    slices, log = Slices(nobody_waits), list[str]()
    slices.add(counting("a", 2, log), ended(log, "a"), is_abandoned=lambda: True)
    slices.add(counting("b", 1, log), ended(log, "b"))
    slices.run_slice(NOW)
    assert log == ["b0"]


# Waiting in between.


class Door:
    is_open = False


def entering(door: Door, log: list[str], deadline_ms: float = 100.0) -> Work:
    log.append("before")
    now = yield Wait(Changed([door], lambda: door.is_open), deadline_ms)
    log.append(f"open at {now.monotonic_ms:.0f}" if door.is_open else "too late")


def released(waiting: Waiting, now: Now) -> None:
    for waiter, in_time in waiting.take_released():
        waiter.deliver(now, in_time)


def test_a_work_waits_without_costing_slices() -> None:
    waiting, door, log = Waiting(), Door(), list[str]()
    waiting.slices.add(entering(door, log), ended(log, "it"))
    waiting.slices.run_slice(NOW)
    assert not waiting.slices
    door.is_open = True
    waiting.changed(door)
    released(waiting, Now(7.0, 7))
    waiting.slices.run_slice(Now(7.0, 7))
    assert log == ["before", "open at 7", "it ends"]


def test_a_work_that_waited_too_long_goes_on_as_well() -> None:
    waiting, door, log = Waiting(), Door(), list[str]()
    waiting.slices.add(entering(door, log), ended(log, "it"))
    waiting.slices.run_slice(NOW)
    waiting.expire(Now(100.0, 100))
    released(waiting, Now(100.0, 100))
    waiting.slices.run_slice(Now(100.0, 100))
    assert log == ["before", "too late", "it ends"]


def test_a_work_that_waits_ends_with_its_connection() -> None:
    waiting, door, log = Waiting(), Door(), list[str]()
    waiting.slices.add(entering(door, log), ended(log, "it"), connection=7)
    waiting.slices.run_slice(NOW)
    waiting.connection_closed(7)
    waiting.changed(door)
    released(waiting, NOW)
    assert not waiting.slices and log == ["before"]


# At a node.


class Sliced:
    """In the place of the handler of Metadata: so many slices, then an answer."""

    def __init__(self, world: World, client: Client, slices: int = 3, error: Exception | None = None) -> None:
        client.ask(MetadataRequest(topics=[]))
        self.log: list[str] = []
        self._slices = slices
        self._error = error
        world.node._dispatch.counts[METADATA].handle = self.handle  # type: ignore[method-assign]

    def handle(self, request: Any, call: Call) -> Answer:
        def work() -> Generator[None, Now, None]:
            yield from counting("", self._slices, self.log)
            if self._error is not None:
                raise self._error

        return Later(Finished(work()), call.now.monotonic_ms + 1_000, lambda now, in_time: MetadataResponse())


@pytest.fixture
def world() -> World:
    return World()


def posted(world: World, client: Client, *requests: Any) -> None:
    """Post it all, but let nothing happen that belongs to a later turn."""
    world._settle = lambda: None  # type: ignore[method-assign]
    client.post(*requests)


def test_others_are_answered_between_the_slices(world: World) -> None:
    client, other = world.connect(), world.connect()
    sliced = Sliced(world, client)
    posted(world, client, MetadataRequest(topics=[]))
    assert not client.answers and not sliced.log
    world.step(Yielded())
    assert sliced.log == ["0"]
    other.ask(ApiVersionsRequest())
    for _ in range(9):
        world.step(Yielded())
    assert client.take() == MetadataResponse()


def test_what_comes_behind_it_on_its_connection_waits(world: World) -> None:
    client = world.connect()
    sliced = Sliced(world, client)
    client.post(MetadataRequest(topics=[]), ApiVersionsRequest())
    assert client.pauses == 1
    assert sliced.log == ["0", "1", "2"]
    assert client.answered == [1, 2, 3]
    assert not client.is_paused


def test_its_failure_closes_its_connection(world: World) -> None:
    client = world.connect()
    Sliced(world, client, error=ValueError("no"))
    client.post(MetadataRequest(topics=[]))
    assert not client.is_open
    assert "ValueError" in world.told_of(HandlerFailed)[0].traceback


def test_nobody_works_for_a_connection_that_is_gone(world: World) -> None:
    client = world.connect()
    sliced = Sliced(world, client)
    posted(world, client, MetadataRequest(topics=[]))
    client.close()
    world.step(Yielded())
    assert sliced.log == []
    assert not world.broker.slices
