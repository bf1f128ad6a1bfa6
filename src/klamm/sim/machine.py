"""One node's machine: its process, its disk, its clocks. Effects are carried out here, on the world's heap.

A process can be killed (what it wrote is there), paused and resumed (what happened meanwhile is heard late), stopped
as it should be; the machine can lose its power (of what was not flushed only some is there), also between any two
calls of one step. Its monotonic clock may run a little fast or slow, its wall clock may jump.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import count
from random import Random
from zlib import crc32

from klamm.broker.broker import Broker
from klamm.config import BrokerConfig
from klamm.facts import Fact
from klamm.ids import Now
from klamm.log.checkpoint import META_PROPERTIES
from klamm.log.files import DiskFailed
from klamm.log.recovery import LogDamaged
from klamm.metadata.image import Endpoint
from klamm.node.assembly import assembled
from klamm.node.effects import Close, Dial, Effect, Flush, Pause, Resume, Send, Serve, Stop, Wake, Yield
from klamm.node.events import Drained, Event, Flushed, Received, Woke, Yielded
from klamm.node.identity import WrongDirectory
from klamm.node.node import Node
from klamm.node.repairs import Wish, inspect
from klamm.quorum.election import UnreadableElection
from klamm.quorum.raft import UnreadableMetadata
from klamm.sim.disk import Crashed, Discarded, Disk
from klamm.sim.network import Host, Network
from klamm.sim.world import World

WALL_MS = 1_700_000_000_000
CANNOT_START = (DiskFailed, LogDamaged, UnreadableElection, UnreadableMetadata, WrongDirectory)
FLUSH_MS = 0.4
PIECE_BYTES = 200
"""One or a few batches: of larger files pieces are cut."""
REMOVAL_MS = 60.0
"""Between two pieces of what is removed, on average: other things happen in between."""
TRY_AGAIN_MS = 1_000.0

LATE_MS = 0.001
"""An alarm rings a little after its time; before it, it would ring for ever."""


class Machine(Host):
    def __init__(self, world: World, network: Network, node_id: int, port: int, properties: dict[str, str]) -> None:
        super().__init__(f"node-{node_id}", port)
        self.node_id = node_id
        self.disk = Disk(PIECE_BYTES)
        self.disks = 1
        """How many it has had."""
        self.node: Node | None = None
        """While its process runs."""
        self.last_broker: Broker | None = None
        """As it was when its process ended: what its logs hold, unless the machine has forgotten something since."""
        self.is_paused = False
        self.is_serving = False
        self.has_forgotten = False
        """Whether something that it wrote may be missing, until somebody finds that it has everything again."""
        self.is_failing = False
        """Whether its disk fails at present: it may still lose something, or be distrusted for it later."""
        self.lives = 0
        self.failed_starts = 0
        self.interrupted_removals = 0
        """How often its process ended while something was only half removed."""
        self._half_removed = 0
        self.wall_jump_ms = 0.0
        self.flush_ms = FLUSH_MS
        self.after_step: Callable[[Machine], None] = lambda machine: None
        """Called whenever this node has acted: it may be looked at now."""
        self.on_fact: Callable[[Machine, Fact], None] = lambda machine, fact: None
        self.on_forgetting: Callable[[Machine], None] = lambda machine: None
        self.properties = properties
        self._world = world
        self._network = network
        self._chance = world.chance(self.name)
        self._chance_of_removals = world.chance(f"{self.name} removes")
        self._speed = self._usual_speed = self._chance.uniform(0.99, 1.01)
        """Of its monotonic clock."""
        self._set_ms, self._clock_ms = 0.0, 1_000.0
        """When its speed was set, and what it showed then."""
        self._boots = 0
        self._wake_ms: float | None = None
        self._missed: list[Event] = []
        self._hearing: Sequence[memoryview] = ()
        self._left: dict[int, list[bytes]] = {}
        self._connections = count(1)
        self._dies_by_power: Callable[[], bool] = lambda: False

    # What is to be seen.

    @property
    def broker(self) -> Broker:
        assert self.node is not None
        return self.node.broker

    @property
    def is_running(self) -> bool:
        return self.node is not None

    @property
    def now(self) -> Now:
        now_ms = self._world.now_ms
        return Now(self._clock_ms + (now_ms - self._set_ms) * self._speed, WALL_MS + int(now_ms + self.wall_jump_ms))

    # What is done to it.

    def start(self) -> bool:
        """Whether the process runs now. One that cannot use what it finds on its disk says so, and ends."""
        assert self.node is None
        self.is_on = True
        self.lives += 1
        self.is_serving = self.is_paused = False
        self._wake_ms, self._left, self._missed = None, {}, []
        config = BrokerConfig.from_properties([], self.properties)
        random = Random(f"{self._world.seed} {self.name} {self.lives}")
        node = assembled(config, self.disk, random, self._tell, boot_id=f"boot {self._boots}")
        self.node = node
        self._world.tell(f"{self.name} starts")
        endpoint = Endpoint("PLAINTEXT", self.name, self.port)
        try:
            self._act(lambda: node.start(endpoint, self.now))
        except CANNOT_START as error:
            self._world.tell(f"{self.name} cannot start: {error}")
            self.failed_starts += 1
            self._end_process()
        self.takes_connections = self.is_running
        return self.is_running

    def kill(self) -> None:
        self._world.tell(f"{self.name} is killed")
        self._end_process()

    def forget(self) -> None:
        """Something that it wrote may be missing from now on."""
        self.has_forgotten = True
        self.on_forgetting(self)

    def boot(self) -> None:
        """The machine is started anew while its process does not run. Nothing is lost, but nobody can tell."""
        assert self.node is None
        # What it had sent and nobody had taken yet is not sent again.
        self._network.power_lost(self)
        self._boots += 1

    def lose_power(self) -> None:
        """Until it is started again it is not there at all."""
        self._world.tell(f"{self.name} loses its power")
        self.is_on = False
        self._network.power_lost(self)
        self._end_process()
        self._boots += 1
        self.forget()
        self.disk.crash(self._chance)

    def die_within_a_step(self, calls: int, by_power: Callable[[], bool]) -> None:
        """Let it end before the so-manieth change of its disk from now on; by losing its power, if it may then."""
        self.disk.crash_at = self.disk.calls + calls
        self._dies_by_power = by_power

    def wipe(self) -> None:
        """A new, empty disk, while the process does not run."""
        assert self.node is None
        self._world.tell(f"{self.name} gets an empty disk")
        self.disk = Disk(PIECE_BYTES)
        self.disks += 1
        self.forget()

    def repair(self) -> None:
        """`klamm storage repair`, while the process does not run."""
        assert self.node is None
        self._world.tell(f"{self.name} is repaired")
        identity = self.disk.names[META_PROPERTIES].content
        findings = inspect(self.disk, self._chance, Wish()).findings
        repairs = {each.repair.what: each.repair for each in findings if each.is_harmful and each.repair is not None}
        for what, repair in sorted(repairs.items()):
            self._world.tell(f"{self.name}: {what}")
            repair.do()
        # Under another directory id it is another voter, which has promised nothing.
        self.disks += self.disk.names[META_PROPERTIES].content != identity
        self.forget()

    def stop(self) -> None:
        """As it should be: hand over, then end."""
        node = self.node
        if node is not None and not self.is_paused:
            self._world.tell(f"{self.name} is told to stop")
            self._act(lambda: node.begin_to_stop(self.now))

    def pause(self) -> None:
        self._world.tell(f"{self.name} is paused")
        self.is_paused = True

    def resume(self) -> None:
        self._world.tell(f"{self.name} goes on")
        self.is_paused = False
        missed, self._missed = self._missed, []
        # After a pause the loop hears what came over its connections before it looks at the clock.
        for event in sorted(missed, key=lambda event: isinstance(event, Woke)):
            self.hear(event)

    def run_clock_at(self, speed: float) -> None:
        """So many times as fast as usual. It goes on from what it shows."""
        self._clock_ms, self._set_ms = self.now.monotonic_ms, self._world.now_ms
        self._speed = self._usual_speed * speed
        if self._wake_ms is not None:
            self._set_alarm(self._wake_ms)

    # What happens to it.

    def accept(self) -> int:
        return next(self._connections)

    def hear(self, event: Event) -> None:
        node = self.node
        if node is None:
            return
        if self.is_paused:
            self._missed.append(event)
            return
        if isinstance(event, Received) and event.connection in self._left:
            # The node does not want to hear more of this one yet.
            self._left[event.connection] += map(bytes, event.frames)
            return
        self._world.note(f"{self.name} {_described(event)}")
        self._hearing = event.frames if isinstance(event, Received) else ()
        self._act(lambda: node.step(event, self.now))

    def _act(self, act: Callable[[], list[Effect]]) -> None:
        try:
            effects = act()
        except Crashed as crash:
            self._die(crash)
            return
        self._perform(effects)
        self._begin_removals()
        if self.node is not None:
            self.after_step(self)

    def _die(self, crash: Crashed) -> None:
        self._world.tell(f"{self.name} ends in the middle of a step, {crash}")
        if self._dies_by_power():
            self.lose_power()
        else:
            self.kill()

    def _perform(self, effects: Sequence[Effect]) -> None:
        world, network, life = self._world, self._network, self.lives
        for effect in effects:
            if isinstance(effect, Send):
                self._send(effect)
            elif isinstance(effect, Wake):
                self._wake_ms = effect.at_ms
                self._set_alarm(effect.at_ms)
            elif isinstance(effect, Flush):
                delay_ms = self.flush_ms * (0.5 + self._chance.expovariate(2.0))
                world.after(delay_ms, partial(self._flush, effect, life))
            elif isinstance(effect, Yield):
                world.after(0.0, partial(self._hear_in, life, Yielded()))
            elif isinstance(effect, Dial):
                network.dial(self, effect.connection, effect.port)
            elif isinstance(effect, Pause):
                frames = [bytes(frame) for frame in self._hearing]
                self._left[effect.connection] = frames[len(frames) - effect.left :]
                world.after(0.0, partial(self._hear_in, life, Drained(effect.connection)))
            elif isinstance(effect, Resume):
                world.after(0.0, partial(self._offer_again, effect.connection, life))
            elif isinstance(effect, Close):
                network.close(self, effect.connection)
            elif isinstance(effect, Serve):
                self.is_serving = True
            elif isinstance(effect, Stop):
                self._stop()

    def _send(self, effect: Send) -> None:
        try:
            data = b"".join(bytes(piece) for piece in effect.pieces)  # type: ignore[call-overload]
        except DiskFailed:
            # A reply that cannot be completed cannot be taken back either.
            if effect.connection in self.ends:
                self._network.reset(self.ends[effect.connection])
            return
        self._network.send(self, effect.connection, data)

    def _stop(self) -> None:
        assert self.node is not None
        try:
            clean = self.node.stop()
        except Crashed as crash:
            self._die(crash)
            return
        self._world.tell(f"{self.name} has stopped{'' if clean else ', not cleanly'}")
        self._end_process()

    def _end_process(self) -> None:
        if self.node is not None:
            self.last_broker = self.node.broker
        self.interrupted_removals += self._half_removed
        self._half_removed = 0
        self.node = None
        self.takes_connections = self.is_serving = self.is_paused = False
        self._network.process_ended(self)
        self.disk.end_life()

    def _hear_in(self, life: int, event: Event) -> None:
        if life == self.lives:
            self.hear(event)

    def _offer_again(self, connection: int, life: int) -> None:
        frames = self._left.pop(connection, None)
        if frames and life == self.lives and connection in self.ends:
            self.hear(Received(connection, [memoryview(bytearray(frame)) for frame in frames]))

    def _set_alarm(self, at_ms: float) -> None:
        rings_ms = self._set_ms + (at_ms - self._clock_ms) / self._speed + LATE_MS
        self._world.at(rings_ms, partial(self._wake, at_ms, self.lives))

    def _wake(self, at_ms: float, life: int) -> None:
        if life == self.lives and self._wake_ms == at_ms and self.now.monotonic_ms >= at_ms:
            self._wake_ms = None
            self.hear(Woke())

    def _flush(self, effect: Flush, life: int) -> None:
        if life != self.lives or self.node is None:
            return
        try:
            failures = self.disk.flush_groups(effect.groups)
        except Crashed as crash:
            self._die(crash)
            return
        self.hear(Flushed(effect.token, {number: str(error) for number, error in failures.items()}))

    def _begin_removals(self) -> None:
        discarded, self.disk.discarded = self.disk.discarded, []
        for each in discarded:
            self._remove_after(each.after_ms, each, self._removal(each), self.lives)

    def _removal(self, discarded: Discarded) -> Iterator[None]:
        steps = self.disk.removal(discarded)
        yield next(steps, None)
        self._half_removed += 1
        try:
            yield from steps
        except DiskFailed:
            self._half_removed -= 1
            raise
        self._half_removed -= 1

    def _remove_after(self, delay_ms: float, discarded: Discarded, removal: Iterator[None], life: int) -> None:
        delay_ms += self._chance_of_removals.expovariate(1 / REMOVAL_MS)
        self._world.after(delay_ms, partial(self._remove_piece, discarded, removal, life))

    def _remove_piece(self, discarded: Discarded, removal: Iterator[None], life: int) -> None:
        if life != self.lives or self.node is None:
            return
        if self.is_paused:
            self._remove_after(TRY_AGAIN_MS, discarded, removal, life)
            return
        try:
            next(removal)
        except StopIteration:
            return
        except DiskFailed:
            self._remove_after(TRY_AGAIN_MS, discarded, self._removal(discarded), life)
        except Crashed as crash:
            self._die(crash)
        else:
            self._remove_after(0.0, discarded, removal, life)

    def _tell(self, fact: Fact) -> None:
        self._world.tell(f"{self.name} {fact}")
        self.on_fact(self, fact)


def _described(event: Event) -> str:
    if isinstance(event, Received):
        return f"{event.connection} {len(event.frames)} {crc32(b''.join(event.frames))}"
    return str(event)
