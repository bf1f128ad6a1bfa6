"""A disk that gives back an old version of a file (F22), as one does that was restored, or that lost a write.

Part of the nemesis (`faults.py`). The machine is started anew with it, so its node trusts nothing that was not flushed;
what was flushed and is gone it finds out, or hears from the others.
"""

from collections.abc import Callable
from random import Random

from klamm.quorum.raft import DIRECTORY
from klamm.sim.budget import Budget
from klamm.sim.disk import Disk, Inode
from klamm.sim.machine import Machine
from klamm.sim.rot import closed_segments
from klamm.sim.world import World

NEVER_OLD = f"{DIRECTORY}/quorum-state"
"""Nobody can tell an old vote from the last one: a disk that gives back this file lets a node vote twice."""


class OldFiles:
    _world: World
    _budget: Budget
    _chance: Random
    _somebody: Callable[[], Machine | None]
    _start_again: Callable[[Machine], None]
    _remembered: tuple[Machine, Disk, dict[str, tuple[Inode, bytes]]] | None = None

    def old_file(self) -> bool:
        """A file is as it was a while ago (F22), on a machine that was started anew. The first time, what is there is
        only remembered."""
        if self._remembered is None:
            machine = self._somebody()
            if machine is not None:
                memory = {name: (inode, bytes(inode.durable)) for name, inode in machine.disk.names.items()}
                self._remembered = machine, machine.disk, memory
            return False
        machine, disk, memory = self._remembered
        if machine.disk is not disk:
            self._remembered = None
        if machine.disk is not disk or not machine.is_running or not self._budget.may_wipe(machine):
            return False
        self._remembered = None
        machine.lose_power()
        self._make_old(machine, memory)
        self._start_again(machine)
        return True

    def _make_old(self, machine: Machine, before: dict[str, tuple[Inode, bytes]]) -> None:
        names = machine.disk.names
        same = {name for name in names if name in before and (not name.endswith("/") or names[name] is before[name][0])}
        if any(name.endswith("/") and name not in same for name in before):
            # A directory of another topic has the name by now: files that speak of topics by name speak of that one.
            same = {name for name in same if "/" in name}
        old = sorted(
            name
            for name in same - {NEVER_OLD} - closed_segments(set(names))
            if before[name][1] != names[name].content and ("/" not in name or f"{name.rpartition('/')[0]}/" in same)
        )
        if old:
            name = self._chance.choice(old)
            self._world.tell(f"{machine.name}: {name} is as it was, {len(before[name][1])} bytes")
            names[name].replace(bytearray(before[name][1]))
