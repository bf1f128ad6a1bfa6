"""What goes wrong: each fault is one method, draws whom it hits and for how long, and mends itself in time.

A fault that the budget does not allow just now does not happen. `heal` ends them all: everybody runs again, on a
network and disks that work.
"""

import errno
from collections import Counter
from collections.abc import Callable
from functools import partial

from klamm.log.files import DiskFailed, DiskFull
from klamm.sim.budget import Budget
from klamm.sim.cluster import Cluster
from klamm.sim.faults_of_disks import OldFiles
from klamm.sim.lasting_faults import LastingFaults
from klamm.sim.machine import FLUSH_MS, Machine
from klamm.sim.network import Host
from klamm.sim.plan import Plan
from klamm.sim.rot import Rot
from klamm.sim.world import World

SHORT_MS = (100.0, 4_000.0)
LONG_MS = (3_000.0, 12_000.0)
TENDED_MS = 5_000.0
"""So often somebody looks after the machines when everything else is mended."""


class Nemesis(LastingFaults, OldFiles, Rot):
    def __init__(self, world: World, cluster: Cluster, plan: Plan, budget: Budget, clients: list[Host]) -> None:
        self._world = world
        self._cluster = cluster
        self._plan = plan
        self._budget = budget
        self._clients = clients
        self._mend: dict[int, Callable[[], None]] = {}
        self._next_mend = 0
        self._is_over = False
        self.happened: Counter[str] = Counter()
        self.on_blackout: Callable[[], None] = lambda: None
        """Called before all machines lose what they have not flushed."""
        self.on_tending: Callable[[], None] = lambda: None
        """Called whenever somebody looks after the cluster."""
        self._kinds: dict[str, Callable[[], bool]] = {
            "kill": self._kill,
            "power": self._power,
            "pause": self._pause,
            "stop": self._stop,
            "die in a step": self._die_in_a_step,
            "cut": self._cut,
            "isolate": self._isolate,
            "one way": self._one_way,
            "reset": self._reset,
            "slow link": self._slow_link,
            "slow disk": self._slow_disk,
            "disk error": self._disk_error,
            "disk full": self._disk_full,
            "wall clock": self._wall_clock,
            "everybody killed": self._kill_everybody,
            "wipe": self._wipe,
            "rot": self.rot,
            "rotten tails": self.rotten_tails,
            "lost names": self.lost_names,
            "rotten metadata": self.rotten_metadata,
            "left behind": self._left_behind,
            "blackout": self._blackout,
            "old file": self.old_file,
            "flush error": self._flush_error,
            **self.lasting_kinds(),
        }

    def also(self, kinds: dict[str, Callable[[], bool]]) -> None:
        """What else may happen: each says whether it did."""
        self._kinds |= kinds

    def begin(self) -> None:
        for name, mean_ms in self._plan.faults.items():
            chance = self._world.chance(f"fault {name}")
            self._schedule(name, mean_ms, chance.expovariate)
        self._chance = self._world.chance("faults")

    def _schedule(self, name: str, mean_ms: float, draw: Callable[[float], float]) -> None:
        def strike() -> None:
            if self._is_over:
                return
            if self._kinds[name]():
                self.happened[name] += 1
            self._schedule(name, mean_ms, draw)

        self._world.after(draw(1.0 / mean_ms), strike)

    def heal(self) -> None:
        """No more faults; all that is broken is mended now, and everybody is started."""
        self._is_over = True
        for mend in list(self._mend.values()):
            mend()
        for machine in self._cluster.machines.values():
            machine.disk.failure = None
            machine.disk.crash_at = None
            machine.flush_ms = FLUSH_MS
            # A leader that lives two hours ago refuses what clients write now, and is right.
            machine.wall_jump_ms = 0.0
            if machine.is_paused:
                machine.resume()
            if not machine.is_running:
                self._start(machine)
        self._world.after(TENDED_MS, self._tend)

    def _tend(self) -> None:
        """Logs that are damaged in their middle stay offline until somebody takes them away: others have it all."""
        self._world.after(TENDED_MS, self._tend)
        self.on_tending()
        for machine in list(self._cluster.running):
            broken = [each for each in machine.broker.partitions if each.failure is not None and not each.failed_full]
            if broken and self._budget.may_rot(machine):
                machine.kill()
                for partition in broken:
                    machine.disk.lose(str(partition.topic_partition))
                machine.forget()
                machine.start()
                return

    def _start(self, machine: Machine) -> None:
        machine.disk.failure = None
        if not machine.start() and self._is_over and not machine.is_running:
            # It cannot use what it finds, and says so: somebody repairs that, and only then gives it an empty disk.
            machine.repair()
            if not machine.start():
                machine.wipe()
                machine.start()

    # For how long.

    def _until(self, least_ms: float, most_ms: float, mend: Callable[[], None]) -> None:
        number = self._next_mend = self._next_mend + 1

        def once() -> None:
            if self._mend.pop(number, None) is not None:
                mend()

        self._mend[number] = once
        self._world.after(self._chance.uniform(least_ms, most_ms), once)

    def _start_again(self, machine: Machine) -> None:
        """After a while; sometimes it is killed again as soon as it is there (F12)."""
        self._until(*(SHORT_MS if self._chance.random() < 0.7 else LONG_MS), partial(self._started, machine))

    def _started(self, machine: Machine) -> None:
        if machine.is_running:
            return
        machine.disk.failure = None
        if machine.start() and self._chance.random() < 0.15 and not self._is_over:
            self._world.after(self._chance.uniform(0.0, 300.0), partial(self._kill_this, machine))
        elif not machine.is_running and not self._is_over:
            self._give_another_disk(machine)

    def _give_another_disk(self, machine: Machine) -> None:
        """It cannot use what is on its disk. An operator waits until nothing is lost by it, and repairs what is there,
        or replaces the disk."""
        if self._budget.may_wipe(machine):
            if self._chance.random() < 0.5:
                machine.repair()
            if not machine.start():
                machine.wipe()
                machine.start()
        else:
            self._until(500.0, 2_000.0, partial(self._started, machine))

    # Processes.

    def _somebody(self) -> Machine | None:
        running = [machine for machine in self._cluster.running if not machine.is_paused]
        return self._chance.choice(running) if running else None

    def _kill_this(self, machine: Machine) -> None:
        if machine.is_running and not self._is_over:
            machine.kill()
            self._start_again(machine)

    def _kill(self) -> bool:
        machine = self._leading() if self._chance.random() < 0.4 else self._somebody()
        if machine is None:
            return False
        self._kill_this(machine)
        return True

    def _leading(self) -> Machine | None:
        """The controller: the one that hurts most."""
        return self._cluster.controller()

    def _kill_everybody(self) -> bool:
        """All of them; sometimes one loses its power on top of it, and may be the first to come back."""
        running = list(self._cluster.running)
        unlucky = self._chance.choice(running) if running and self._chance.random() < 0.5 else None
        if unlucky is not None and self._budget.may_forget(unlucky):
            unlucky.lose_power()
            self._start_again(unlucky)
        for machine in running:
            self._kill_this(machine)
        return True

    def _blackout(self) -> bool:
        """It finds the disks busy: what was not waited for is not there."""
        flush_ms = self._chance.choice((FLUSH_MS, 50.0, 500.0))
        for machine in self._cluster.machines.values():
            machine.flush_ms = flush_ms
        self._until(0.0, 800.0, self._lose_all_power)
        return True

    def _lose_all_power(self) -> None:
        for machine in self._cluster.machines.values():
            machine.flush_ms = FLUSH_MS
        if self._is_over or not self._budget.may_black_out():
            return
        self._world.tell("a blackout")
        self.on_blackout()
        for machine in list(self._cluster.machines.values()):
            if machine.is_on:
                was_running = machine.is_running
                machine.lose_power()
                if was_running:
                    self._start_again(machine)

    def _left_behind(self) -> bool:
        """One replica is cut off from the others, and when they have gone on without it, they die (number 1 of the
        known bugs: somebody elects it)."""
        states = [
            (name, index)
            for name, topic in self._cluster.latest_image().topics.items()
            for index, state in enumerate(topic.partitions)
            if len(state.isr) == len(state.replicas) == 3
        ]
        if not states:
            return False
        name, index = self._chance.choice(states)
        replicas = self._cluster.latest_image().topics[name].partitions[index].replicas
        left = self._cluster.machines[self._chance.choice(replicas)]
        others = [self._cluster.machines[node_id] for node_id in replicas if node_id != left.node_id]
        self._world.tell(f"{left.name} is left behind in {name}-{index}")
        network = self._cluster.network
        heals = [network.cut(*way) for other in others for way in ((left, other), (other, left))]

        def look(tries: int) -> None:
            state = self._cluster.latest_image().partition(name, index)
            if state is not None and left.node_id in state.isr and tries and not self._is_over:
                self._until(100.0, 500.0, partial(look, tries - 1))
                return
            if not self._is_over:
                for other in others:
                    if other.is_running:
                        other.kill()
                        self._until(*LONG_MS, partial(self._started, other))
            for heal in heals:
                heal()

        self._until(500.0, 6_000.0, partial(look, 20))
        return True

    def _power(self) -> bool:
        machine = self._somebody()
        if machine is None or not self._budget.may_forget(machine):
            return False
        machine.lose_power()
        self._start_again(machine)
        return True

    def _die_in_a_step(self) -> bool:
        """It ends between two changes of its disk, by itself (F14): looked at again until it has."""
        machine = self._somebody()
        if machine is None:
            return False
        by_power = self._chance.random() < 0.5
        machine.die_within_a_step(self._chance.randint(0, 12), lambda: by_power and self._budget.may_forget(machine))
        life = machine.lives

        def look() -> None:
            if machine.lives == life and not machine.is_running:
                self._start_again(machine)
            elif machine.lives == life:
                machine.disk.crash_at = None

        self._until(300.0, 1_500.0, look)
        return True

    def _stop(self) -> bool:
        machine = self._somebody()
        if machine is None:
            return False
        machine.stop()

        def again() -> None:
            if machine.is_running:
                machine.kill()
            self._started(machine)

        self._until(4_000.0, 8_000.0, again)
        return True

    def _pause(self) -> bool:
        machine = self._leading() if self._chance.random() < 0.4 else self._somebody()
        if machine is None:
            return False
        machine.pause()
        self._until(*(SHORT_MS if self._chance.random() < 0.5 else LONG_MS), partial(_resumed, machine))
        return True

    # The network.

    def _cut_ways(self, ways: list[tuple[Host, Host]]) -> None:
        heals = [self._cluster.network.cut(sender, receiver) for sender, receiver in ways]

        def heal() -> None:
            for each in heals:
                each()

        self._until(*(SHORT_MS if self._chance.random() < 0.6 else LONG_MS), heal)

    def _cut(self) -> bool:
        """Between two of them, both ways: a bridge is left over a third."""
        one, other = self._chance.sample(list(self._cluster.machines.values()), 2)
        self._world.tell(f"{one.name} and {other.name} are cut off from one another")
        self._cut_ways([(one, other), (other, one)])
        return True

    def _isolate(self) -> bool:
        """One, or a minority, from all the others, sometimes with clients on its side."""
        machines = list(self._cluster.machines.values())
        inside = self._chance.sample(machines, self._chance.randint(1, len(machines) // 2))
        outside: list[Host] = [machine for machine in machines if machine not in inside]
        if self._chance.random() < 0.3:
            outside += self._clients
        self._world.tell(f"{', '.join(machine.name for machine in inside)} cut off from the others")
        self._cut_ways([way for one in inside for other in outside for way in ((one, other), (other, one))])
        return True

    def _one_way(self) -> bool:
        one, other = self._chance.sample(list(self._cluster.machines.values()), 2)
        self._world.tell(f"nothing gets from {one.name} to {other.name}")
        self._cut_ways([(one, other)])
        return True

    def _reset(self) -> bool:
        standing = self._cluster.network.connections()
        if not standing:
            return False
        for end in self._chance.sample(standing, min(len(standing), self._chance.randint(1, 4))):
            self._cluster.network.reset(end)
        return True

    def _slow_link(self) -> bool:
        machine = self._somebody()
        if machine is None:
            return False
        extra_ms = self._chance.choice((5.0, 50.0, 500.0))
        self._world.tell(f"{machine.name} is {extra_ms:.0f} ms farther away")
        self._until(*SHORT_MS, self._cluster.network.slow(machine, extra_ms))
        return True

    # Disks.

    def _slow_disk(self) -> bool:
        machine = self._somebody()
        if machine is None:
            return False
        machine.flush_ms = self._chance.choice((20.0, 200.0, 1_000.0))
        self._world.tell(f"{machine.name}'s disk takes {machine.flush_ms:.0f} ms")

        def mend() -> None:
            machine.flush_ms = FLUSH_MS

        self._until(*SHORT_MS, mend)
        return True

    def _disk_error(self) -> bool:
        """One call fails with EIO; what was not flushed may be gone with it, so the budget is asked."""
        machine = self._somebody()
        if machine is None or not self._budget.may_wipe(machine):
            return False
        call = self._chance.choice(("append", "flush", "read", "write_whole", "rename", "truncate"))
        self._fail_disk(machine, call, DiskFailed("input/output error", errno.EIO), once=True)
        return True

    def _flush_error(self) -> bool:
        """One file, any, of a flush of several owners' files. (While the disk is slow, more come together.)"""
        running = [each for each in self._cluster.running if not each.is_paused and self._budget.may_wipe(each)]
        if not running:
            return False
        machine = self._chance.choice(running)
        machine.flush_ms = 200.0
        disk, left = machine.disk, [self._chance.randint(0, 4)]

        def spares() -> bool:
            left[0] -= disk.owners_flushing > 1
            return disk.owners_flushing < 2 or left[0] >= 0

        self._fail_disk(machine, "flush", DiskFailed("input/output error", errno.EIO), once=True, spares=spares)
        return True

    def _disk_full(self) -> bool:
        machine = self._somebody()
        if machine is None or not self._budget.may_wipe(machine):
            return False
        self._fail_disk(machine, "append", DiskFull("no space left", errno.ENOSPC), once=False)
        return True

    def _fail_disk(
        self, machine: Machine, call: str, error: DiskFailed, *, once: bool, spares: Callable[[], bool] = lambda: False
    ) -> None:
        """Let these calls fail, one or all, but for those that are spared."""
        self._world.tell(f"{machine.name}'s disk: {call} fails, {error}")
        disk = machine.disk

        def failure(name: str, path: str) -> DiskFailed | None:
            if name != call or spares():
                return None
            if once:
                disk.failure = None
            return type(error)(f"{path}: {error}", error.errno)

        disk.failure = failure
        machine.forget()
        machine.is_failing = True
        life = machine.lives

        def mend() -> None:
            machine.is_failing = False
            machine.flush_ms = FLUSH_MS
            if machine.disk is disk:
                disk.failure = None
            if machine.lives == life and not machine.is_running:
                self._started(machine)
            elif machine.lives == life and once:
                # Whoever runs it notices, and starts it anew.
                machine.kill()
                self._start_again(machine)

        self._until(*SHORT_MS, mend)

    def _wipe(self) -> bool:
        machine = self._somebody()
        if machine is None or not self._budget.may_wipe(machine):
            return False
        machine.kill()
        machine.wipe()
        self._start_again(machine)
        return True

    # Clocks.

    def _wall_clock(self) -> bool:
        machine = self._chance.choice(list(self._cluster.machines.values()))
        machine.wall_jump_ms += self._chance.choice((-3_600_000.0, -1_000.0, 1_000.0, 60_000.0, 86_400_000.0))
        self._world.tell(f"{machine.name}'s wall clock jumps to {machine.wall_jump_ms:+.0f} ms")
        return True


def _resumed(machine: Machine) -> None:
    if machine.is_paused:
        machine.resume()
