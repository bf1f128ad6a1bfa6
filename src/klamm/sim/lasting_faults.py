"""Faults that are more than a moment: crash loops, half a cluster that stays away, flapping, slow lines, leaders that
do not hear the controller, odd clocks.

Part of the nemesis, which knows whom a fault may hit and how it ends (`faults.py`). Each method is one fault, and says
whether it happened.
"""

from collections.abc import Callable
from functools import partial
from random import Random

from klamm.sim.cluster import Cluster
from klamm.sim.machine import Machine
from klamm.sim.world import World

SESSION_MS = 3_000.0
"""`broker.session.timeout.ms`: who is not heard for so long is fenced."""

AWAY_MS = 9_000.0
SOON_MS = 20.0


class LastingFaults:
    _world: World
    _cluster: Cluster
    _chance: Random
    _is_over: bool
    _back_ms = 0.0
    """By then those who stayed away when all were killed are back."""
    _hears_ms = 0.0
    """And by then a leader hears the controller again, or is about not to."""
    _until: Callable[[float, float, Callable[[], None]], None]
    _somebody: Callable[[], Machine | None]
    _start_again: Callable[[Machine], None]
    _started: Callable[[Machine], None]
    _kill_this: Callable[[Machine], None]

    def lasting_kinds(self) -> dict[str, Callable[[], bool]]:
        return {
            "crash loop": self._crash_loop,
            "majority returns": self._majority_returns,
            "flap": self._flap,
            "slow line": self._slow_line,
            "deaf leader": self._deaf_leader,
            "drift": self._drift,
            "strobe": self._strobe,
        }

    # Processes.

    def _crash_loop(self) -> bool:
        """Killed again as soon as it is there, several times (F12)."""
        machine = self._somebody()
        if machine is None:
            return False
        self._kill_in_loop(machine, self._chance.randint(3, 6))
        return True

    def _kill_in_loop(self, machine: Machine, times: int) -> None:
        if self._is_over or not machine.is_running:
            return
        machine.kill()
        if times <= 1:
            self._start_again(machine)
            return

        def again() -> None:
            self._started(machine)
            life = machine.lives
            if machine.is_running and not self._is_over:
                kill = partial(self._kill_life_in_loop, machine, life, times - 1)
                self._world.after(self._chance.uniform(0.0, 400.0), kill)

        self._until(5.0, 200.0, again)

    def _kill_life_in_loop(self, machine: Machine, life: int, times: int) -> None:
        if machine.lives == life:
            self._kill_in_loop(machine, times)

    def _majority_returns(self) -> bool:
        """Everybody is killed; a minority stays away for long (F13)."""
        machines = list(self._cluster.machines.values())
        if self._world.now_ms < self._back_ms or 2 * sum(each.is_serving for each in machines) <= len(machines):
            # A cluster that is down all the time proves nothing.
            return False
        away = self._chance.sample(machines, self._chance.randint(1, (len(machines) - 1) // 2))
        numbers = {machine.node_id for machine in away}
        if any(2 * len(voters - numbers) <= len(voters) for voters in self._cluster.voter_sets()):
            return False
        self._world.tell(f"everybody is killed, and {', '.join(machine.name for machine in away)} stay away")
        for machine in machines:
            if machine.is_running:
                machine.kill()
                if machine in away:
                    self._until(AWAY_MS, 2 * AWAY_MS, partial(self._started, machine))
                else:
                    self._start_again(machine)
        self._back_ms = self._world.now_ms + 2 * AWAY_MS
        return True

    # The network.

    def _flap(self) -> bool:
        """A follower is cut off for a little longer than its leaders wait for it, and a little shorter, in turns (F30).
        Nobody fences it: the controller hears of it in between."""
        machine = self._somebody()
        if machine is None:
            return False
        lag_ms = _lag_ms(machine)
        self._world.tell(f"{machine.name} is cut off again and again, for about {lag_ms:.0f} ms")
        others = [other for other in self._cluster.machines.values() if other is not machine]
        self._cut_for_a_while(machine, others, lag_ms, self._chance.randint(3, 7))
        return True

    def _cut_for_a_while(self, machine: Machine, others: list[Machine], lag_ms: float, times: int) -> None:
        if self._is_over or not times:
            return
        heals = [self._cluster.network.cut(machine, other) for other in others]

        def heal() -> None:
            for each in heals:
                each()
            again = partial(self._cut_for_a_while, machine, others, lag_ms, times - 1)
            self._world.after(self._chance.uniform(0.1, 0.6) * lag_ms, again)

        factor = 0.7 if times % 2 else 1.3
        self._until(factor * lag_ms, (factor + 0.3) * lag_ms, heal)

    def _slow_line(self) -> bool:
        """What goes to it and comes from it stands in line (F7)."""
        machine = self._somebody()
        if machine is None:
            return False
        bytes_a_second = self._chance.choice((3_000, 20_000, 100_000))
        self._world.tell(f"{machine.name}'s line takes {bytes_a_second} bytes a second")
        self._until(1_000.0, 6_000.0, self._cluster.network.limit(machine, bytes_a_second))
        return True

    def _deaf_leader(self) -> bool:
        """A leader hears no answer of the controller for a while, metadata neither, while one of its followers comes
        and goes. What it asked for is granted, and it does not know. Often it dies before it does."""
        controller = self._cluster.controller()
        if controller is None or self._world.now_ms < self._hears_ms:
            return False
        well = {each.node_id: each for each in self._cluster.running if each.is_serving and not each.is_paused}
        well.pop(controller.node_id, None)
        pairs = [
            (well[state.leader], well[node_id])
            for topic in controller.broker.image.topics.values()
            for state in topic.partitions
            for node_id in state.isr
            if state.leader in well and node_id in well and node_id != state.leader
        ]
        if not pairs:
            return False
        leader, follower = self._chance.choice(pairs)
        self._world.tell(f"{leader.name} may soon not hear the controller, and {follower.name} comes and goes")
        lag_ms = _lag_ms(leader)
        self._cut_for_a_while(follower, [leader], lag_ms, self._chance.randint(3, 6))
        self._hold_answers(leader, follower, self._world.now_ms + 3 * lag_ms)
        self._hears_ms = self._world.now_ms + 3 * lag_ms
        return True

    def _hold_answers(self, leader: Machine, follower: Machine, latest_ms: float) -> None:
        """As soon as the leader knows that it has lost the follower; or in the end, if it never does."""
        if self._is_over or not leader.is_running:
            return
        if self._world.now_ms < latest_ms and not _knows_it_lost(leader, follower):
            self._world.after(SOON_MS, partial(self._hold_answers, leader, follower, latest_ms))
            return
        controller = self._cluster.controller()
        if controller is None or controller is leader:
            return
        self._world.tell(f"{leader.name} hears no answers of {controller.name}")
        hear = self._cluster.network.hold_answers(controller, leader)
        dies, life = self._chance.random() < 0.5, leader.lives

        def end() -> None:
            if dies and leader.lives == life:
                self._kill_this(leader)
            hear()

        self._until(2 * _lag_ms(leader), 5 * _lag_ms(leader), end)

    # Clocks.

    def _drift(self) -> bool:
        """Its monotonic clock runs far too fast or slow (F27). Timers fire early or late; no promise rests on them."""
        machine = self._chance.choice(list(self._cluster.machines.values()))
        speed = self._chance.uniform(0.9, 1.1)
        self._world.tell(f"{machine.name}'s clock runs {speed:.2f} times as fast")
        machine.run_clock_at(speed)
        self._until(2_000.0, 10_000.0, partial(machine.run_clock_at, 1.0))
        return True

    def _strobe(self) -> bool:
        """Its wall clock jumps back and forth many times a second (F28)."""
        machine = self._chance.choice(list(self._cluster.machines.values()))
        width_ms = self._chance.choice((30.0, 3_000.0, 600_000.0))
        self._world.tell(f"{machine.name}'s wall clock jumps back and forth by {width_ms:.0f} ms")
        self._jump(machine, width_ms, self._chance.randint(20, 100))
        return True

    def _jump(self, machine: Machine, width_ms: float, times: int) -> None:
        if self._is_over:
            return
        machine.wall_jump_ms += width_ms if times % 2 else -width_ms
        if times > 1 or times % 2:
            # An even number of jumps: it ends where it began.
            self._world.after(self._chance.uniform(5.0, 60.0), partial(self._jump, machine, width_ms, times - 1))


def _lag_ms(machine: Machine) -> float:
    """How long it waits for a follower, or the controller for a broker, if that is shorter."""
    return min(float(machine.properties.get("replica.lag.time.max.ms", SESSION_MS)), SESSION_MS)


def _knows_it_lost(leader: Machine, follower: Machine) -> bool:
    """Whether the follower is out of sync somewhere, as far as this leader has heard."""
    return any(
        state.leader == leader.node_id and follower.node_id in {*state.replicas} - {*state.isr}
        for topic in leader.broker.image.topics.values()
        for state in topic.partitions
    )
