"""Does what was drawn to the brokers of a run, at its time, and undoes it; tells a story of it, line by line.

One thread does it all, from a heap of what is due. A fault that has to be undone leaves a mend behind; `heal` mends
all that is left, and starts and wakes everybody.
"""

import heapq
import time
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import count

from klamm.chaos.disks import Disks
from klamm.chaos.faults import HARD, Fault, Whom
from klamm.chaos.network import MACHINE, Network
from klamm.chaos.processes import Nodes
from klamm.local.asking import Address, NoAnswer
from klamm.local.view import UnknownTopic, cluster_seen

ASK_SECONDS = 0.5
STOP_SECONDS = 10.0
AGAIN_SECONDS = 0.1
LOOK_SECONDS = 0.25

Mend = Callable[[], bool]
"""Undoes a fault; False if it is not done yet and wants to be called again."""

Appointment = tuple[float, Callable[[], None]]
"""So many seconds after the beginning, this."""


class Nemesis:
    def __init__(
        self,
        nodes: Nodes,
        addresses: Sequence[Address],
        topics: Sequence[str],
        network: Network | None,
        disks: Disks | None,
        tell: Callable[[str], None],
    ) -> None:
        self._nodes, self._addresses, self._topics = nodes, addresses, topics
        self._network, self._disks, self._tell = network, disks, tell
        self.happened: Counter[str] = Counter()
        self.filled: set[int] = set()
        """Nodes whose disk was full once: their complaints of it are no news."""
        self._most_broken = (len(addresses) - 1) // 2
        self._broken: set[int] = set()
        """Brokers that a hard fault has hit, and that are not mended."""
        self._mends: dict[int, Mend] = {}
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = count()
        self._began = 0.0
        self._strikes: dict[str, Callable[[Fault, int], Mend]] = {
            "kill": self._kill,
            "everybody": self._everybody,
            "pause": self._pause,
            "restart": self._restart,
            "cut": self._cut,
            "oneway": self._one_way,
            "slow": self._slow,
            "lossy": self._lossy,
            "reset": self._reset,
            "disk": self._fill,
        }

    def run(self, faults: Sequence[Fault], seconds: float, also: Sequence[Appointment] = ()) -> None:
        """All of it, in its time. `also` is what others want done at a time."""
        began = self._began = time.monotonic()
        for fault in faults:
            self._at(began + fault.at, self._striking(fault))
        for at, action in also:
            self._at(began + at, action)
        self._at(began + seconds, lambda: None)
        while self._due and self._due[0][0] <= began + seconds:
            at, _, action = heapq.heappop(self._due)
            while (left := at - time.monotonic()) > 0:
                time.sleep(min(left, LOOK_SECONDS))
                self._look_after()
            action()

    def heal(self) -> None:
        """No more faults. Every link and disk is well, and everybody runs, or is about to."""
        self._due.clear()
        deadline = time.monotonic() + STOP_SECONDS + 1
        while self._mends and time.monotonic() < deadline:
            for number, mend in list(self._mends.items()):
                if mend():
                    self._mends.pop(number, None)
            time.sleep(AGAIN_SECONDS if self._mends else 0)
        for number in self._nodes.numbers:
            self._nodes.resume(number)
        self._nodes.note_ends()
        self._nodes.start(self._nodes.numbers)

    # When.

    def _look_after(self) -> None:
        """Who ended by himself is started again, as whoever looks after brokers would; not while it is broken."""
        self._nodes.note_ends()
        dead = [n for n, state in self._nodes.states().items() if state == "dead" and n not in self._broken]
        if dead:
            self._tell(f"broker {', '.join(map(str, dead))} ended by itself, and is started again")
            self._nodes.start(dead)

    def _at(self, moment: float, action: Callable[[], None]) -> None:
        heapq.heappush(self._due, (moment, next(self._numbers), action))

    def _striking(self, fault: Fault) -> Callable[[], None]:
        def strike() -> None:
            if fault.kind in HARD and len(self._broken) >= self._most_broken:
                # One that was to be back by now is not: it takes its time to stop.
                self._tell(f"no {fault.kind}: broker {', '.join(map(str, sorted(self._broken)))} is not back yet")
                return
            hit = self._hit_by(fault.whom)
            hard = {hit} if fault.kind in HARD else set()
            if fault.kind == "everybody":
                hard = set(self._nodes.numbers) - self._broken
            self._broken |= hard
            mend = self._strikes[fault.kind](fault, hit)
            self.happened[fault.kind] += 1
            # By the plan's clock: what comes next in it counts on this one being well again.
            self._mend_at(self._began + fault.end, mend, hard)

        return strike

    def _mend_at(self, moment: float, mend: Mend, hard: set[int]) -> None:
        number = next(self._numbers)

        def mended() -> bool:
            if mend():
                self._broken -= hard
                return True
            return False

        def try_it() -> None:
            if mended():
                del self._mends[number]
            else:
                self._at(time.monotonic() + AGAIN_SECONDS, try_it)

        self._mends[number] = mended
        self._at(moment, try_it)

    # Whom.

    def _hit_by(self, whom: Whom) -> int:
        """The broker that is meant, of those that are well; whoever it is, a broken one is left alone. (Where all are,
        bad links hit any of them.)"""
        well = [number for number in self._nodes.numbers if number not in self._broken] or list(self._nodes.numbers)
        meant = self._in_role(whom, well)
        return meant if meant in well else well[whom.number % len(well)]

    def _in_role(self, whom: Whom, well: Sequence[int]) -> int | None:
        if whom.role == "broker":
            return None
        try:
            seen = cluster_seen([self._addresses[number] for number in well], ASK_SECONDS, self._topics)
        except (NoAnswer, UnknownTopic):
            return None  # Nobody knows just now.
        if whom.role == "controller" or not seen.partitions:
            return seen.controller
        return seen.partitions[whom.number % len(seen.partitions)].leader

    def _named(self, fault: Fault, hit: int) -> str:
        role = "" if fault.whom.role == "broker" else f" ({fault.whom.role})"
        return f"broker {hit}{role} for {fault.seconds:.1f} s"

    # Processes.

    def _kill(self, fault: Fault, hit: int) -> Mend:
        self._tell(f"kill -9 {self._named(fault, hit)}")
        self._nodes.kill([hit])
        return self._starting([hit])

    def _everybody(self, fault: Fault, hit: int) -> Mend:
        self._tell(f"kill -9 everybody for {fault.seconds:.1f} s")
        self._nodes.kill(self._nodes.numbers)
        return self._starting(list(self._nodes.numbers))

    def _pause(self, fault: Fault, hit: int) -> Mend:
        self._tell(f"pause {self._named(fault, hit)}")
        self._nodes.pause(hit)

        def mend() -> bool:
            self._tell(f"resume broker {hit}")
            self._nodes.resume(hit)
            return True

        return mend

    def _restart(self, fault: Fault, hit: int) -> Mend:
        self._tell(f"restart {self._named(fault, hit)}")
        self._nodes.ask_to_stop(hit)
        patience = time.monotonic() + STOP_SECONDS

        def mend() -> bool:
            if self._nodes.state(hit) != "dead":
                if time.monotonic() < patience:
                    return False
                self._tell(f"broker {hit} does not stop, and is killed")
                self._nodes.kill([hit])
            return start()

        start = self._starting([hit])
        return mend

    def _starting(self, numbers: list[int]) -> Mend:
        def mend() -> bool:
            self._tell(f"start broker {', '.join(map(str, numbers))}")
            self._nodes.start(numbers)
            return True

        return mend

    # Links.

    def _others(self, fault: Fault, hit: int) -> list[int]:
        brokers = [number for number in self._nodes.numbers if number != hit]
        if fault.scope == "one":
            return [brokers[fault.whom.number % len(brokers)]]
        return {"brokers": brokers, "clients": [MACHINE], "all": [*brokers, MACHINE]}[fault.scope]

    def _ruled(self, what: str, fault: Fault, hit: int, rules_for: Callable[[int], list[str]]) -> Mend:
        assert self._network is not None, "only drawn where there is a network"
        network = self._network
        others = self._others(fault, hit)
        rules = [rule for other in others for rule in rules_for(other)]
        names = ", ".join("clients" if other == MACHINE else str(other) for other in others)
        self._tell(f"{what} {self._named(fault, hit)}, to {names}")
        network.add_rules(hit, rules)

        def mend() -> bool:
            self._tell(f"mend {what} broker {hit}, to {names}")
            network.remove_rules(hit, rules)
            return True

        return mend

    def _cut(self, fault: Fault, hit: int) -> Mend:
        assert self._network is not None
        network = self._network
        return self._ruled("cut", fault, hit, lambda other: network.deaf_to(other) + network.mute_to(other))

    def _one_way(self, fault: Fault, hit: int) -> Mend:
        assert self._network is not None
        if fault.amount % 2:
            return self._ruled("deaf", fault, hit, self._network.deaf_to)
        return self._ruled("mute", fault, hit, self._network.mute_to)

    def _lossy(self, fault: Fault, hit: int) -> Mend:
        assert self._network is not None
        network = self._network
        return self._ruled(f"{fault.amount} % lossy", fault, hit, lambda other: network.losing(other, fault.amount))

    def _reset(self, fault: Fault, hit: int) -> Mend:
        assert self._network is not None
        return self._ruled("resetting", fault, hit, self._network.resetting)

    def _slow(self, fault: Fault, hit: int) -> Mend:
        assert self._network is not None
        network = self._network
        self._tell(f"{fault.amount} kbit/s for {self._named(fault, hit)}")
        network.narrow(hit, fault.amount)

        def mend() -> bool:
            self._tell(f"mend narrow broker {hit}")
            network.widen(hit)
            return True

        return mend

    # Disks.

    def _fill(self, fault: Fault, hit: int) -> Mend:
        assert self._disks is not None, "only drawn where there are disks"
        disks = self._disks
        self._tell(f"full disk of {self._named(fault, hit)}")
        self.filled.add(hit)
        disks.fill(hit)

        def mend() -> bool:
            self._tell(f"room again on the disk of broker {hit}")
            disks.empty(hit)
            return True

        return mend
