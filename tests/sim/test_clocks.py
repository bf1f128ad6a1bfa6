"""A machine's clocks: the monotonic one goes on from where it is, however fast it runs."""

from itertools import pairwise

import pytest

from klamm.sim.machine import Machine
from klamm.sim.network import Network
from klamm.sim.world import World


def test_a_clock_that_drifts_never_jumps() -> None:
    world = World(1)
    machine = Machine(world, Network(world), 0, 9_000, {})
    shown = [machine.now.monotonic_ms]
    for speed in (1.1, 0.9, 1.0):
        world.run_until(world.now_ms + 1_000)
        before = machine.now.monotonic_ms
        machine.run_clock_at(speed)
        assert machine.now.monotonic_ms == pytest.approx(before)
        shown.append(before)
    world.run_until(world.now_ms + 1_000)
    shown.append(machine.now.monotonic_ms)
    passed = [after - before for before, after in pairwise(shown)]
    usual = passed[0]
    assert passed == pytest.approx([usual, usual * 1.1, usual * 0.9, usual])
