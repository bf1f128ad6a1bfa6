"""A cluster in memory: several nodes, each with a disk of its own, on one clock that we move and a network we own.

Everything that happens is an event on one heap: frames arrive after `latency_ms`, flushes end after `flush_ms`, nodes
wake when they wanted to. `run` lets time pass. Nodes can be killed (what was written is there), lose their power (what
was not flushed is not), be frozen, replaced by another machine and cut off from others; their disks can fail. A client
asks any of them and is answered, as fast as the world allows.
"""

import errno
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from heapq import heappop, heappush
from itertools import count
from random import Random
from typing import Any

from klamm.broker.answer import Answer
from klamm.broker.broker import Broker
from klamm.broker.call import Call
from klamm.codec.compiler import decode_from
from klamm.config import BrokerConfig
from klamm.facts import Fact
from klamm.handlers import Handler
from klamm.ids import Now
from klamm.log.files import DiskFailed, DiskFull
from klamm.metadata.image import Endpoint
from klamm.node.assembly import assembled
from klamm.node.effects import Close, Dial, Effect, Flush, Pause, Resume, Send, Serve, Stop, Wake, Yield
from klamm.node.events import Closed, Drained, Event, Flushed, Opened, Received, Refused, Woke, Yielded
from klamm.node.node import Node
from klamm.node.served import Served
from klamm.sim.disk import Disk
from klamm.wire.apis import Api, response_type
from klamm.wire.frames import encoded_request
from klamm.wire.headers import read_response_header
from tests.node.world import api_of

BEGINNING_MS = 1_000.0
WALL_MS = 1_700_000_000_000
FIRST_PORT = 9_000


class Link:
    """Two ends, each known to its owner by a number of its own. Who closes it is gone at once; the other end stands
    until it has heard all that was sent before, and then of the end."""

    def __init__(self, one: "Owner", one_id: int, other: "Owner", other_id: int) -> None:
        self.ends = {(one, one_id): (other, other_id), (other, other_id): (one, one_id)}
        self.is_open = True

    def leads_to(self, owner: "Owner") -> bool:
        return any(other is owner for other, _ in self.ends)


class Owner:
    """Who has connections: a member of the cluster, or a client."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.links: dict[int, Link] = {}

    def hear(self, event: Event) -> None:
        raise NotImplementedError


class Member(Owner):
    def __init__(self, world: "ClusterWorld", node_id: int, overrides: dict[str, str]) -> None:
        super().__init__(node_id)
        self.world = world
        self.overrides = overrides
        self.disk = Disk()
        self.lives = 0
        self.boots = 0
        """How often its machine was started."""
        self.is_alive = False
        self.is_frozen = False
        self.is_serving = False
        self.has_stopped = False
        self.told: list[Fact] = []
        self.node: Node
        self._wake_ms: float | None = None
        self._missed: list[Event] = []
        self._asked: dict[int, int] = {}
        self._hearing: Sequence[memoryview] = ()
        self._left: dict[int, list[bytes]] = {}
        self._next_link = count(1)

    @property
    def broker(self) -> Broker:
        return self.node.broker

    def start(self) -> None:
        self.lives += 1
        self.is_alive, self.is_serving, self.has_stopped = True, False, False
        self.links, self._left, self._missed = {}, {}, []
        self._wake_ms = None
        config = BrokerConfig.from_properties([], self.overrides)
        random = Random(f"{self.world.seed} {self.number} {self.lives}")
        self.node = assembled(config, self.disk, random, self._tell, boot_id=f"boot {self.boots}")
        endpoint = Endpoint("PLAINTEXT", "127.0.0.1", FIRST_PORT + self.number)
        self.perform(self.node.start(endpoint, self.world.now))

    def _tell(self, fact: Fact) -> None:
        self.told.append(fact)
        self.world.story.append(f"{self.world.now_ms - BEGINNING_MS:9.2f} node {self.number}: {fact}")

    def kill(self) -> None:
        self.is_alive = False
        for link in list(self.links.values()):
            self.world.break_link(link, self)

    def lose_power(self) -> None:
        """Of what was not flushed, only some is left."""
        self.boots += 1
        self.kill()
        self.disk.crash(self.world.random)

    def begin_to_stop(self) -> None:
        self.perform(self.node.begin_to_stop(self.world.now))

    def disk_fails(self, call: str, path: str, *, full: bool = False) -> None:
        """From now on each such call for a file whose path holds this: with EIO, or for want of space."""

        def failure(name: str, of: str) -> DiskFailed | None:
            if name != call or path not in of:
                return None
            return DiskFull("no space left", errno.ENOSPC) if full else DiskFailed("input/output error", errno.EIO)

        self.disk.failure = failure

    def answers_with(self, api: int, handle: Handler) -> None:
        """In this life, whatever comes over a connection."""

        def counting(request: Any, call: Call) -> Answer:
            self._asked[api] = self._asked.get(api, 0) + 1
            return handle(request, call)

        self._asked[api] = 0
        self.node.cluster.dispatch.counts[api] = Served(counting)

    def was_asked(self, api: int) -> int:
        """How often since `answers_with`."""
        return self._asked[api]

    def answers_as_ever(self) -> None:
        self.node.cluster.dispatch.counts.clear()

    def disk_recovers(self) -> None:
        self.disk.failure = lambda call, path: None

    def hear(self, event: Event) -> None:
        if not self.is_alive:
            return
        if self.is_frozen:
            self._missed.append(event)
            return
        self._hearing = event.frames if isinstance(event, Received) else ()
        self.perform(self.node.step(event, self.world.now))

    def thaw(self) -> None:
        self.is_frozen = False
        missed, self._missed = self._missed, []
        for event in missed:
            self.hear(event)

    def accept(self) -> int:
        return next(self._next_link)

    def perform(self, effects: Sequence[Effect]) -> None:
        world, life = self.world, self.lives
        for effect in effects:
            if isinstance(effect, Wake):
                self._wake_ms = effect.at_ms
                world.at(effect.at_ms, partial(self._wake, effect.at_ms, life))
            elif isinstance(effect, Yield):
                world.after(0.0, partial(self._yielded, life))
            elif isinstance(effect, Flush):
                world.after(world.flush_ms, partial(self._flush, effect, life))
            elif isinstance(effect, Dial):
                world.dial(self, effect.connection, effect.port)
            elif isinstance(effect, Send):
                world.send(self, effect.connection, b"".join(bytes(piece) for piece in effect.pieces))  # type: ignore[call-overload]
            elif isinstance(effect, Pause):
                frames = [bytes(frame) for frame in self._hearing]
                self._left[effect.connection] = frames[len(frames) - effect.left :]
                world.after(0.0, partial(self.hear, Drained(effect.connection)))
            elif isinstance(effect, Resume):
                frames = self._left.pop(effect.connection, [])
                if frames:
                    world.after(0.0, partial(world.deliver, self, effect.connection, frames))
            elif isinstance(effect, Close):
                link = self.links.get(effect.connection)
                if link is not None:
                    world.break_link(link, self)
            elif isinstance(effect, Serve):
                self.is_serving = True
            elif isinstance(effect, Stop):
                self.has_stopped = True
                self.node.stop()
                self.kill()

    def _wake(self, at_ms: float, life: int) -> None:
        if life == self.lives and self._wake_ms == at_ms:
            self._wake_ms = None
            self.hear(Woke())

    def _yielded(self, life: int) -> None:
        if life == self.lives:
            self.hear(Yielded())

    def _flush(self, effect: Flush, life: int) -> None:
        if life == self.lives and self.is_alive:
            failures = self.disk.flush_groups(effect.groups)
            self.hear(Flushed(effect.token, {number: str(error) for number, error in failures.items()}))


class ClusterClient(Owner):
    """One connection to one node."""

    def __init__(self, world: "ClusterWorld", number: int) -> None:
        super().__init__(number)
        self.world = world
        self.is_open = True
        self.answers: dict[int, Any] = {}
        self._asked: dict[int, tuple[Api, int]] = {}
        self._next = count(1)

    def post(self, request: Any, version: int | None = None) -> int:
        number, api = next(self._next), api_of(request)
        version = api.max_version if version is None else version
        self._asked[number] = (api, version)
        pieces = encoded_request(api, version, number, "client", request)
        self.world.send(self, 1, b"".join(map(bytes, pieces)))
        return number

    def ask(self, request: Any, version: int | None = None, within_ms: float = 10_000.0) -> Any:
        number = self.post(request, version)
        self.world.run_until(lambda: number in self.answers or not self.is_open, within_ms)
        assert number in self.answers, "the connection was closed"
        return self.answers.pop(number)

    def hear(self, event: Event) -> None:
        if isinstance(event, Closed):
            self.is_open = False
        elif isinstance(event, Received):
            for frame in event.frames:
                number = int.from_bytes(frame[:4], "big")
                api, version = self._asked.pop(number)
                _, position = read_response_header(api, version, frame)
                self.answers[number], _ = decode_from(response_type(api.key), version, frame, position)


class ClusterWorld:
    """Settings are given with underscores for dots; `voters` are the ids of the quorum, the first three by default."""

    def __init__(
        self,
        brokers: int = 3,
        *,
        voters: Sequence[int] | None = None,
        witnesses: Sequence[int] = (),
        racks: Sequence[str] | None = None,
        seed: int = 0,
        start: bool = True,
        **settings: str,
    ) -> None:
        self.seed = seed
        self.random = Random(seed)
        self.now_ms = BEGINNING_MS
        self.latency_ms = 0.1
        self.flush_ms = 0.5
        self.story: list[str] = []
        self._heap: list[tuple[float, int, Callable[[], None]]] = []
        self._order = count()
        self._cut: set[frozenset[int]] = set()
        self._swallowed: set[frozenset[int]] = set()
        self._clients = count(10_000)
        voters = list(range(min(brokers, 3))) if voters is None else voters
        quorum = ",".join(f"{number}@127.0.0.1:{FIRST_PORT + number}" for number in voters)
        common = {key.replace("_", "."): text for key, text in settings.items()}
        self.members: dict[int, Member] = {}
        for number in (*range(brokers), *witnesses):
            roles = "controller" if number in witnesses else "broker,controller" if number in voters else "broker"
            own = {
                "node.id": str(number),
                "process.roles": roles,
                "controller.quorum.voters": quorum,
                "listeners": f"PLAINTEXT://127.0.0.1:{FIRST_PORT + number}",
            }
            if racks is not None and number < brokers:
                own["broker.rack"] = racks[number]
            self.members[number] = Member(self, number, common | own)
        if start:
            for member in self.members.values():
                member.start()
            self.run_until(lambda: all(member.is_serving for member in self.members.values()), 10_000.0)

    @property
    def now(self) -> Now:
        return Now(self.now_ms, WALL_MS + int(self.now_ms - BEGINNING_MS))

    def __getitem__(self, node_id: int) -> Member:
        return self.members[node_id]

    @property
    def alive(self) -> Iterator[Member]:
        return (member for member in self.members.values() if member.is_alive)

    def controller(self) -> Member | None:
        """The one that is active, if there is exactly one."""
        active = [member for member in self.alive if not member.is_frozen and member.broker.controller is not None]
        return active[0] if len(active) == 1 else None

    # Time.

    def at(self, at_ms: float, call: Callable[[], None]) -> None:
        heappush(self._heap, (max(at_ms, self.now_ms), next(self._order), call))

    def after(self, delay_ms: float, call: Callable[[], None]) -> None:
        self.at(self.now_ms + delay_ms, call)

    def run(self, milliseconds: float) -> None:
        end_ms = self.now_ms + milliseconds
        while self._heap and self._heap[0][0] <= end_ms:
            self._next()
        self.now_ms = end_ms

    def run_until(self, holds: Callable[[], bool], within_ms: float = 10_000.0) -> float:
        """How long it took."""
        began_ms = self.now_ms
        while not holds():
            if not self._heap or self._heap[0][0] > began_ms + within_ms:
                raise AssertionError(f"not within {within_ms} ms\n" + "\n".join(self.story[-60:]))
            self._next()
        return self.now_ms - began_ms

    def _next(self) -> None:
        self.now_ms, _, call = heappop(self._heap)
        call()

    # The network.

    def client(self, node_id: int) -> ClusterClient:
        member = self.members[node_id]
        assert member.is_alive
        client = ClusterClient(self, next(self._clients))
        number = member.accept()
        client.links[1] = member.links[number] = Link(client, 1, member, number)
        member.hear(Opened(number, f"127.0.0.1:{client.number}"))
        return client

    def cut(self, one: int, other: int) -> None:
        """Nothing reaches the other side any more, and nobody is told."""
        self._cut.add(frozenset((one, other)))

    def isolate(self, node_id: int) -> None:
        for other in self.members:
            if other != node_id:
                self.cut(node_id, other)

    def swallow_dials(self, one: int, other: int) -> None:
        """No new connection comes about between them, and none is refused; those that stand go on."""
        self._swallowed.add(frozenset((one, other)))

    def heal(self) -> None:
        self._cut.clear()
        self._swallowed.clear()

    def replace(self, node_id: int) -> Member:
        """Another machine with the same number and address, and an empty disk. The old one is the test's to keep."""
        old = self.members[node_id]
        new = self.members[node_id] = Member(self, node_id, old.overrides)
        new.lives = 100 * (1 + old.lives)
        new.start()
        return new

    def dial(self, caller: Member, connection: int, port: int) -> None:
        life = caller.lives

        def arrive() -> None:
            target, between = self.members.get(port - FIRST_PORT), frozenset((caller.number, port - FIRST_PORT))
            if caller.lives != life or not caller.is_alive or between in self._cut or between in self._swallowed:
                return
            if target is None or not target.is_alive:
                caller.hear(Refused(connection, nobody_listens=True))
                return
            number = target.accept()
            caller.links[connection] = target.links[number] = Link(caller, connection, target, number)
            target.hear(Opened(number, f"127.0.0.1:{40_000 + caller.number}"))
            caller.hear(Opened(connection, f"127.0.0.1:{port}"))

        self.after(2 * self.latency_ms, arrive)

    def send(self, sender: Owner, connection: int, data: bytes) -> None:
        link = sender.links.get(connection)
        if link is None or not link.is_open:
            return
        receiver, number = link.ends[sender, connection]
        frames = []
        while data:
            size = int.from_bytes(data[:4], "big")
            frames.append(data[4 : 4 + size])
            data = data[4 + size :]

        def arrive() -> None:
            if receiver.links.get(number) is link and frozenset((sender.number, receiver.number)) not in self._cut:
                self.deliver(receiver, number, frames)

        self.after(self.latency_ms, arrive)

    def deliver(self, receiver: Owner, number: int, frames: list[bytes]) -> None:
        receiver.hear(Received(number, [memoryview(bytearray(frame)) for frame in frames]))

    def break_link(self, link: Link, by: Owner) -> None:
        for (owner, number), (other, _) in link.ends.items():
            if owner is by and owner.links.get(number) is link:
                del owner.links[number]
                if isinstance(by, Member) and by.is_alive:
                    self.after(0.0, partial(owner.hear, Closed(number)))
            elif owner is not by and link.is_open and frozenset((owner.number, other.number)) not in self._cut:
                self.after(self.latency_ms, partial(self._end, owner, number, link))
        link.is_open = False

    def _end(self, owner: Owner, number: int, link: Link) -> None:
        if owner.links.get(number) is link:
            del owner.links[number]
            owner.hear(Closed(number))
