"""What one frame costs: how much work the longest of its steps is, and how much memory it adds."""

import sys
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType
from typing import Any

from klamm.ids import Now
from klamm.node.effects import Effect
from klamm.node.events import Closed, Event, Received
from tests.node.world import World


@dataclass(slots=True)
class Cost:
    steps: int = 0
    longest: float = 0.0
    """The largest of its steps, in what the meter measures."""
    peak_bytes: int = 0


class CallMeter:
    """Counts the functions that are called, of Python's and of C's: the same on every machine."""

    def __init__(self) -> None:
        self._calls = 0

    def measured(self, step: Callable[[], list[Effect]]) -> tuple[list[Effect], float]:
        self._calls = 0
        sys.setprofile(self._called)
        try:
            return step(), self._calls
        finally:
            sys.setprofile(None)

    def _called(self, frame: FrameType, event: str, argument: Any) -> None:
        if event in ("call", "c_call"):
            self._calls += 1


class Clock:
    """Milliseconds of processor time."""

    def measured(self, step: Callable[[], list[Effect]]) -> tuple[list[Effect], float]:
        began = time.process_time()
        effects = step()
        return effects, (time.process_time() - began) * 1000.0


def cost_of(world: World, body: bytes, meter: CallMeter | Clock | None) -> Cost:
    """Of this frame, until nothing is left to do. Without a meter memory is measured, which would disturb it."""
    client = world.connect()
    client.perform = lambda effect: None  # type: ignore[method-assign]
    client._frames = [memoryview(bytearray(body))]
    cost = Cost()
    node_step = world.node.step

    def step(event: Event, now: Now) -> list[Effect]:
        cost.steps += 1
        if meter is None:
            return node_step(event, now)
        effects, amount = meter.measured(lambda: node_step(event, now))
        cost.longest = max(cost.longest, amount)
        return effects

    world.node.step = step  # type: ignore[method-assign]
    if meter is None:
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
    try:
        world.step(Received(client.id, client._frames))
        world.effects.clear()
    finally:
        if meter is None:
            cost.peak_bytes = tracemalloc.get_traced_memory()[1] - before
            tracemalloc.stop()
        world.node.step = node_step  # type: ignore[method-assign]
    if client.is_open:
        world.step(Closed(client.id))
    return cost
