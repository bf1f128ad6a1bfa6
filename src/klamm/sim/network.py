"""A network between hosts: connections as TCP gives them, over links that are slow, cut, or swallow one direction.

On one connection bytes arrive in order or not at all: as over TCP nothing is doubled and nothing overtakes (F2, F3).
What comes twice, or late, is what was sent again over another connection while the first try was held back. A cut link
delivers nothing and tells nobody: what was sent is on its way until the link heals or the connection is reset. So a
request may arrive long after the world has moved on. A reset loses a drawn rest of what is under way, in both
directions, also in the middle of what was sent at once. A process that ends resets its connections; a machine that
loses its power does not, and its peers hear of it only when they write to it after it is back.
"""

from collections.abc import Callable
from functools import partial

from klamm.node.events import Closed, Event, Opened, Received, Refused
from klamm.sim.world import World

DIALS_AGAIN_MS = (1_000.0, 3_000.0, 7_000.0)
"""When a dial that nothing came back for is tried again, until it is given up."""

LONGEST_LINE_MS = 3_000.0
"""So long it takes at most until a slow line has taken what was given to it."""

RETRANSMIT_MS = 200.0
"""So long it takes at most until a healed link goes on with what it held back."""


class Host:
    """Who has connections: a node's machine, or a client."""

    def __init__(self, name: str, port: int) -> None:
        self.name = name
        self.port = port
        self.ends: dict[int, End] = {}
        self.is_on = True
        self.takes_connections = False

    def accept(self) -> int:
        """The number of the next connection that somebody dials."""
        raise NotImplementedError

    def hear(self, event: Event) -> None:
        raise NotImplementedError


class End:
    """One end of a connection, as its host knows it."""

    __slots__ = ("held", "host", "is_open", "number", "other", "sent_until_ms")

    def __init__(self, host: Host, number: int) -> None:
        self.host = host
        self.number = number
        self.other: End | None = None
        """None until somebody has answered the dial."""
        self.is_open = True
        self.sent_until_ms = 0.0
        """What is sent from here arrives after this moment, so that it stays in order."""
        self.held: list[Callable[[], None]] | None = None
        """What was sent from here and waits for its link to heal."""


class Network:
    def __init__(self, world: World) -> None:
        self._world = world
        self._random = world.chance("network")
        self._hosts: dict[int, Host] = {}
        self._cut: dict[tuple[str, str], int] = {}
        self._mute: dict[tuple[str, str], int] = {}
        """Ways on which answers are held, and nothing else."""
        self._slow_ms: dict[str, float] = {}
        self._rates: dict[str, int] = {}
        self._free_ms: dict[str, float] = {}
        """When the line of a host has taken all that was given to it."""
        self._held: list[End] = []
        self.latency_ms = 0.3
        self.resets = 0
        self.held_back = 0

    def add(self, host: Host) -> None:
        self._hosts[host.port] = host

    # Faults.

    def cut(self, sender: Host, receiver: Host) -> Callable[[], None]:
        """From now on nothing gets from one to the other, until what this returns is called. Cuts add up."""
        return self._hold(self._cut, (sender.name, receiver.name))

    def hold_answers(self, sender: Host, receiver: Host) -> Callable[[], None]:
        """From now on nothing that one asks the other is answered, until what this returns is called. What the other
        asks, and all that is asked, gets through."""
        return self._hold(self._mute, (sender.name, receiver.name))

    def _hold(self, ways: dict[tuple[str, str], int], way: tuple[str, str]) -> Callable[[], None]:
        ways[way] = ways.get(way, 0) + 1
        return partial(self._heal, ways, way)

    def slow(self, host: Host, extra_ms: float) -> Callable[[], None]:
        """Everything to and from this host takes so much longer."""
        self._slow_ms[host.name] = self._slow_ms.get(host.name, 0.0) + extra_ms

        def again() -> None:
            self._slow_ms[host.name] -= extra_ms

        return again

    def limit(self, host: Host, bytes_a_second: int) -> Callable[[], None]:
        """So much gets through to and from this host, and the rest stands in line; up to a limit, or it would never
        end."""
        self._rates[host.name] = bytes_a_second

        def again() -> None:
            self._rates.pop(host.name, None)

        return again

    def reset(self, end: End) -> None:
        """The connection breaks; of what is under way a drawn part arrives. Who is cut off does not hear of it yet."""
        self.resets += 1
        for each in (end, end.other):
            if each is not None and each.other is not None and each.is_open:
                way_back = partial(self._pass, each.other, each, partial(self._hang_up, each))
                self._world.after(self._random.uniform(0.0, 2 * self.latency_ms), way_back)

    def is_cut_off(self, host: Host) -> bool:
        """Whether something does not get from it, or to it."""
        return any(host.name in way for way in self._cut)

    def connections(self) -> list[End]:
        """One end of each that stands."""
        return [
            end
            for host in self._hosts.values()
            for end in host.ends.values()
            if end.number < 0 and end.other is not None and end.other.is_open
        ]

    # What hosts do.

    def dial(self, caller: Host, number: int, port: int) -> None:
        end = caller.ends[number] = End(caller, number)
        self._world.after(self._delay(caller, None), partial(self._knock, end, port, 0))

    def send(self, host: Host, number: int, data: bytes) -> None:
        end = host.ends.get(number)
        if end is not None and end.is_open and end.other is not None:
            in_line_ms = self._in_line_ms((end.host, end.other.host), len(data)) if self._rates else 0.0
            self._travel(end, end.other, partial(self._arrive, end, end.other, data), in_line_ms)

    def close(self, host: Host, number: int) -> None:
        """Say goodbye: the other side hears of it after all that was sent before."""
        end = host.ends.pop(number, None)
        if end is not None and end.is_open:
            end.is_open = False
            if end.other is not None and end.other.is_open:
                self._travel(end, end.other, partial(self._hang_up, end.other))

    def process_ended(self, host: Host) -> None:
        """Its system closes what it had open, and tells the others."""
        for number in list(host.ends):
            self.close(host, number)

    def power_lost(self, host: Host) -> None:
        """Nobody hears of it. What could not get through so far would have been sent again and again: now it is not."""
        for end in host.ends.values():
            end.is_open = False
        host.ends.clear()
        for end in self._held:
            if end.host is host:
                end.held = []

    # What becomes of it.

    def _knock(self, end: End, port: int, tries: int) -> None:
        caller, target = end.host, self._hosts.get(port)
        if caller.ends.get(end.number) is not end:
            return
        if target is None or not target.is_on or self._is_cut(caller, target) or self._is_cut(target, caller):
            if tries == len(DIALS_AGAIN_MS):
                del caller.ends[end.number]
                caller.hear(Refused(end.number, nobody_listens=False))
            else:
                self._world.after(DIALS_AGAIN_MS[tries], partial(self._knock, end, port, tries + 1))
            return
        self._world.after(self._delay(target, caller), partial(self._answer_knock, end, target))

    def _answer_knock(self, end: End, target: Host) -> None:
        caller = end.host
        if caller.ends.get(end.number) is not end:
            return
        if not target.takes_connections:
            del caller.ends[end.number]
            caller.hear(Refused(end.number, nobody_listens=target.is_on))
            return
        other = End(target, target.accept())
        end.other, other.other = other, end
        target.ends[other.number] = other
        target.hear(Opened(other.number, f"{caller.name}:{40_000 + caller.port}"))
        if caller.ends.get(end.number) is end:
            caller.hear(Opened(end.number, f"{target.name}:{target.port}"))

    def _in_line_ms(self, hosts: tuple[Host, Host], size_bytes: int) -> float:
        now_ms, longest_ms = self._world.now_ms, 0.0
        for host in hosts:
            if host.name in self._rates:
                free_ms = max(now_ms, self._free_ms.get(host.name, 0.0)) + size_bytes * 1_000 / self._rates[host.name]
                self._free_ms[host.name] = free_ms = min(free_ms, now_ms + LONGEST_LINE_MS)
                longest_ms = max(longest_ms, free_ms - now_ms)
        return longest_ms

    def _travel(self, end: End, other: End, arrive: Callable[[], None], in_line_ms: float = 0.0) -> None:
        delay_ms = self._delay(end.host, other.host) + in_line_ms
        arrives_ms = max(self._world.now_ms + delay_ms, end.sent_until_ms)
        end.sent_until_ms = arrives_ms
        self._world.at(arrives_ms, partial(self._pass, end, other, arrive))

    def _pass(self, end: End, other: End, arrive: Callable[[], None]) -> None:
        """Over the link, or wait where it is cut."""
        if end.held is None:
            if not self._is_held(end, other):
                arrive()
                return
            end.held = []
            self._held.append(end)
        self.held_back += 1
        end.held.append(arrive)

    def _arrive(self, end: End, other: End, data: bytes) -> None:
        if other.is_open:
            other.host.hear(Received(other.number, frames_of(data)))
        elif other.host.is_on and end.is_open:
            # Nobody knows this connection there: the system answers with a reset.
            self._world.after(
                self._delay(other.host, end.host), partial(self._pass, other, end, partial(self._hang_up, end))
            )

    def _hang_up(self, end: End) -> None:
        if end.is_open:
            end.is_open = False
            del end.host.ends[end.number]
            end.host.hear(Closed(end.number))

    def _heal(self, ways: dict[tuple[str, str], int], way: tuple[str, str]) -> None:
        ways[way] -= 1
        if ways[way]:
            return
        del ways[way]
        held, self._held = self._held, []
        for end in held:
            assert end.other is not None
            if (end.host.name, end.other.host.name) == way:
                self._world.after(self._random.uniform(0.0, RETRANSMIT_MS), partial(self._go_on, end, end.other))
            else:
                self._held.append(end)

    def _go_on(self, end: End, other: End) -> None:
        """What was held back arrives, unless the link is cut again."""
        if self._is_held(end, other):
            self._held.append(end)
            return
        held, end.held = end.held or [], None
        for arrive in held:
            arrive()

    def _is_held(self, end: End, other: End) -> bool:
        """A node numbers what it dials itself, from -1 down: what comes in on that is an answer."""
        way = (end.host.name, other.host.name)
        return way in self._cut or (other.number < 0 and way in self._mute)

    def _is_cut(self, sender: Host, receiver: Host) -> bool:
        return (sender.name, receiver.name) in self._cut

    def _delay(self, sender: Host, receiver: Host | None) -> float:
        delay_ms = self.latency_ms * (0.5 + self._random.expovariate(2.0))
        if self._slow_ms:
            delay_ms += self._slow_ms.get(sender.name, 0.0)
            if receiver is not None:
                delay_ms += self._slow_ms.get(receiver.name, 0.0)
        return delay_ms


def frames_of(data: bytes) -> list[memoryview]:
    """Whole frames, each behind its size. They may be written into, as a node does."""
    view, frames, position = memoryview(bytearray(data)), [], 0
    while position < len(view):
        size = int.from_bytes(view[position : position + 4], "big")
        frames.append(view[position + 4 : position + 4 + size])
        position += 4 + size
    return frames
