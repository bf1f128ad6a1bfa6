"""Disks that rot while a machine is down: bits flip, or files end too early (F20, F21).

Part of the nemesis (`faults.py`).
"""

from collections.abc import Callable, Sequence
from random import Random

from klamm.controller.names import CLUSTER_METADATA
from klamm.log.names import PARTITION_METADATA
from klamm.records.batch import ATTRIBUTES_AT, batches
from klamm.sim.budget import Budget
from klamm.sim.machine import Machine
from klamm.sim.world import World

NEAR_THE_END = 300
NEVER_ROTS = frozenset({"meta.properties"})
"""Who a node is. One that is somebody else is refused by the others for good, and says so."""


class Rot:
    _world: World
    _budget: Budget
    _chance: Random
    _somebody: Callable[[], Machine | None]
    _start_again: Callable[[Machine], None]
    _kill_everybody: Callable[[], bool]

    def rot(self) -> bool:
        """Bits flip, or the end is missing, in a file of a machine that is down (F20, F21)."""
        machine = self._somebody()
        if machine is None or not self._budget.may_wipe(machine):
            return False
        machine.kill()
        machine.forget()
        files = {name for name, inode in machine.disk.names.items() if inode.content and name not in NEVER_ROTS}
        names = sorted(files - closed_segments(set(machine.disk.names)))
        if names:
            # Of each kind as often as of others: there are few snapshots, and many logs.
            kind = self._chance.choice(sorted({name.rpartition(".")[2] for name in names}))
            self._spoil(machine, self._chance.choice([name for name in names if name.endswith(kind)]))
        self._start_again(machine)
        return True

    def rotten_tails(self) -> bool:
        """Bits flip at the ends of a machine's logs, and all processes are killed: whoever comes back first might
        lead (number 17 of the known bugs)."""
        machine = self._somebody()
        if machine is None or not self._budget.may_rot(machine):
            return False
        machine.kill()
        machine.forget()
        closed = closed_segments(set(machine.disk.names))
        for name, inode in sorted(machine.disk.names.items()):
            if name.endswith(".log") and inode.content and name not in closed and not name.startswith(CLUSTER_METADATA):
                content = bytearray(inode.content)
                at = self._chance.choice(_sealed(content)[-NEAR_THE_END:])
                content[at] ^= 1 << self._chance.randrange(8)
                inode.replace(content)
                self._world.tell(f"{machine.name}: a bit of {name} flips at {at}")
        self._kill_everybody()
        self._start_again(machine)
        return True

    def lost_names(self) -> bool:
        """Nobody can read whose a machine's directories are; sometimes all processes are killed with it."""
        machine = self._somebody()
        if machine is None or not self._budget.may_rot(machine):
            return False
        machine.kill()
        machine.forget()
        for name, inode in sorted(machine.disk.names.items()):
            if name.endswith(PARTITION_METADATA) and self._chance.random() < 0.7:
                inode.replace(bytearray(self._chance.randbytes(self._chance.choice((0, 20, 200)))))
                self._world.tell(f"{machine.name}: {name} is garbage")
        if self._chance.random() < 0.3:
            self._kill_everybody()
        self._start_again(machine)
        return True

    def rotten_metadata(self) -> bool:
        """A bit flips in the middle of the metadata log: whole batches follow, which were committed."""
        machine = self._somebody()
        if machine is None or not self._budget.may_wipe(machine):
            return False
        machine.kill()
        machine.forget()
        names = [name for name in machine.disk.names if name.startswith(CLUSTER_METADATA) and name.endswith(".log")]
        inode = machine.disk.names[max(names)]
        content = bytearray(inode.content)
        found = [(position, batch.size_bytes) for position, batch in batches(memoryview(bytes(content)))][:-1]
        if found:
            position, size = self._chance.choice(found)
            content[self._chance.randrange(position + ATTRIBUTES_AT, position + size)] ^= 1
            inode.replace(content)
            self._world.tell(f"{machine.name}: a bit of {max(names)} flips in the batch at {position}")
        self._start_again(machine)
        return True

    def _spoil(self, machine: Machine, name: str) -> None:
        inode = machine.disk.names[name]
        content = bytearray(inode.content)
        at = self._chance.choice(_sealed(content) if name.endswith(".log") else range(len(content)))
        if self._chance.random() < 0.7:
            content[at] ^= 1 << self._chance.randrange(8)
            self._world.tell(f"{machine.name}: a bit of {name} flips at {at}")
        else:
            # Where a batch ends nobody could see it. So the machine was repaired and started, and trusts nothing.
            del content[at:]
            machine.boot()
            self._world.tell(f"{machine.name}: {name} ends at {at}")
        inode.replace(content)


def _sealed(content: bytearray) -> Sequence[int]:
    """The bytes of a log that a checksum covers. Offset and leader epoch of a batch are not among them, in Kafka's
    format: where a bit of those flips, it may go unseen for ever. (All of it, if there is no batch.)"""
    found: list[int] = []
    for position, batch in batches(memoryview(content)):
        found += range(position + ATTRIBUTES_AT, position + batch.size_bytes)
    return found or range(len(content))


def closed_segments(files: set[str]) -> set[str]:
    """Nobody reads these at the start. Damage in one of them is found by whoever wants to read it, perhaps after the
    next machine has lost its disk, which would be two faults at once."""
    last: dict[str, str] = {}
    closed = set()
    for name in sorted(name for name in files if name.endswith(".log")):
        directory = name.rpartition("/")[0]
        if directory in last:
            closed.add(last[directory])
        last[directory] = name
    return closed
