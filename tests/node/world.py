"""A world for one node: a clock we move, a disk we own, connections that are numbers, and every effect performed here.

`Client.ask` says something and returns the answer. What has to happen in between happens at once, unless the test holds
it back: flushes (`holds_flushes`), the draining of a connection (`Client.is_slow`), time (it stands still until
`advance`). The node behind a world can be stopped cleanly, killed, or lose its power, and be started again.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from random import Random
from typing import Any, TypeVar

from klamm.broker.broker import Broker
from klamm.codec.compiler import decode_from
from klamm.config import BrokerConfig
from klamm.facts import Fact
from klamm.ids import Now
from klamm.log.files import DiskFailed, Files
from klamm.metadata.image import Endpoint
from klamm.node.assembly import assembled
from klamm.node.effects import Close, Effect, Flush, Pause, Resume, Send, Serve, Stop, Wake, Yield
from klamm.node.events import Closed, Drained, Event, Flushed, Opened, Received, Woke, Yielded
from klamm.partition.partition import Partition
from klamm.runtime.files import Pinned, RealFiles
from klamm.runtime.removal import Removal, Remover
from klamm.sim.disk import Disk
from klamm.wire.apis import API_BY_KEY, Api, response_type
from klamm.wire.frames import encoded_request
from klamm.wire.headers import read_response_header

Kind = TypeVar("Kind", bound=Fact)

ENDPOINT = Endpoint("PLAINTEXT", "127.0.0.1", 9092)
BEGINNING = Now(monotonic_ms=1_000.0, wall_ms=1_700_000_000_000)

API_BY_NAME = {api.name: api for api in API_BY_KEY.values()}


def api_of(request: object) -> Api:
    return API_BY_NAME[type(request).__name__.removesuffix("Request")]


class RemovesAtOnce(Remover):
    """Without a thread of its own."""

    def remove(self, removal: Removal, after_seconds: float = 0.0) -> None:
        self._try(removal)


class World:
    """Settings are given with underscores for dots. The node is started unless `start` is False."""

    def __init__(self, files: Files | None = None, *, node_id: int = 0, start: bool = True, **settings: str) -> None:
        self.files: Files = files or Disk()
        if isinstance(files, RealFiles):
            files.remover = RemovesAtOnce(lambda path, reason: None)
        self.overrides = {"node.id": str(node_id)} | {key.replace("_", "."): text for key, text in settings.items()}
        self.now = BEGINNING
        self.told: list[Fact] = []
        self.effects: list[Effect] = []
        """Everything the node ever wanted, in order."""
        self.holds_flushes = False
        self.lives = 0
        if start:
            self.start()

    @property
    def disk(self) -> Disk:
        assert isinstance(self.files, Disk)
        return self.files

    @property
    def broker(self) -> Broker:
        return self.node.broker

    def partition(self, topic: str, index: int = 0) -> Partition:
        found = self.broker.partitions.get(topic, index)
        assert found is not None
        return found

    def told_of(self, kind: type[Kind]) -> list[Kind]:
        return [fact for fact in self.told if isinstance(fact, kind)]

    # Lives.

    def start(self) -> None:
        config = BrokerConfig.from_properties([], self.overrides)
        self.lives += 1
        self.flushes: deque[Flush] = deque()
        """Asked for and not performed yet."""
        self._clients: dict[int, Client] = {}
        self._happened: deque[Event] = deque()
        self._pinned: dict[int, Pinned] = {}
        self._wake_ms: float | None = None
        self.node = assembled(config, self.files, Random(self.lives), self.told.append, boot_id=self._boot_id())
        self._perform(self.node.start(ENDPOINT, self.now))
        self._settle()

    def _boot_id(self) -> str:
        """Another one whenever the power was lost."""
        return f"boot {self.files.power_losses if isinstance(self.files, Disk) else 0}"

    def stop(self) -> None:
        self.node.stop()

    def restart(self, **settings: str) -> None:
        """After a clean shutdown, perhaps with other settings."""
        self.stop()
        self.start_again(**settings)

    def kill(self) -> None:
        """kill -9 and a new start: what was written is there, flushed or not."""
        self.start_again()

    def lose_power(self, random: Random) -> None:
        """Of what was not flushed, only a drawn part survives."""
        self.disk.crash(random)
        self.start_again()

    def start_again(self, **settings: str) -> None:
        self.overrides |= {key.replace("_", "."): text for key, text in settings.items()}
        if isinstance(self.files, RealFiles):
            self.files.close()
        self.start()

    # Time and disk.

    def advance(self, milliseconds: float) -> None:
        """Let time pass; the node wakes whenever it wanted to."""
        end_ms = self.now.monotonic_ms + milliseconds
        while self._wake_ms is not None and self._wake_ms <= end_ms:
            self.wake()
        self._set_time(end_ms)
        if isinstance(self.files, Disk):
            with suppress(DiskFailed):
                self.files.remove_discarded()

    def wake(self) -> None:
        """Let time pass until the node wakes, once: one slice of its chores."""
        assert self._wake_ms is not None
        self._set_time(max(self.now.monotonic_ms, self._wake_ms))
        self._wake_ms = None
        self.step(Woke())

    def flush(self, error: str | None = None, *, fails_for: Callable[[str], bool] = lambda path: True) -> None:
        """Perform the flush that was asked for. With an error, groups with files of such paths fail, and no disk is
        touched."""
        effect = self.flushes.popleft()
        if error is None:
            self.step(Flushed(effect.token, self._flushed(effect)))
            return
        failed = [any(fails_for(file.path) for file in group) for group in effect.groups]
        assert any(failed), f"nobody has such a file in {effect}"
        self.step(Flushed(effect.token, {number: error for number, each in enumerate(failed) if each}))

    # Connections.

    def connect(self) -> "Client":
        client = Client(self, len(self._clients) + 1)
        self._clients[client.id] = client
        self.step(Opened(client.id, f"test:{client.id}"))
        return client

    def step(self, event: Event) -> list[Effect]:
        """What the node wants because of this; it has been performed."""
        effects = self.node.step(event, self.now)
        self._perform(effects)
        self._settle()
        return effects

    def happens(self, event: Event) -> None:
        """Something that the node hears of after the step that is under way."""
        self._happened.append(event)

    def _perform(self, effects: Sequence[Effect]) -> None:
        self.effects += effects
        for effect in effects:
            if isinstance(effect, Wake):
                self._wake_ms = effect.at_ms
            elif isinstance(effect, Yield):
                self.happens(Yielded())
            elif isinstance(effect, Flush):
                if isinstance(self.files, RealFiles):
                    # As the driver does it: what is to be flushed is pinned when it is asked for.
                    self._pinned[effect.token] = self.files.pinned(effect.groups)
                self.flushes.append(effect)
            elif not isinstance(effect, Serve | Stop):
                self._clients[effect.connection].perform(effect)

    def _settle(self) -> None:
        while True:
            if self._happened:
                self._perform(self.node.step(self._happened.popleft(), self.now))
            elif self.flushes and not self.holds_flushes:
                effect = self.flushes.popleft()
                self._perform(self.node.step(Flushed(effect.token, self._flushed(effect)), self.now))
            else:
                return

    def _flushed(self, effect: Flush) -> dict[int, str]:
        failures: Mapping[int, DiskFailed]
        if isinstance(self.files, RealFiles):
            pinned = self._pinned.pop(effect.token)
            pinned.sync()
            failures = pinned.let_go()
        else:
            failures = self.files.flush_groups(effect.groups)
        return {number: str(error) for number, error in failures.items()}

    def _set_time(self, monotonic_ms: float) -> None:
        passed_ms = monotonic_ms - BEGINNING.monotonic_ms
        self.now = Now(monotonic_ms, BEGINNING.wall_ms + int(passed_ms))


class Client:
    """One connection. Answers arrive in `answers`, decoded, with their correlation ids in `answered`."""

    def __init__(self, world: World, identity: int) -> None:
        self.world = world
        self.id = identity
        self.is_open = True
        self.is_slow = False
        """What is sent to it does not leave; say `drain` when it has."""
        self.pauses = 0
        self.is_paused = False
        self.answers: list[Any] = []
        self.answered: list[int] = []
        self._asked: dict[int, tuple[Api, int]] = {}
        self._frames: list[memoryview] = []
        self._left: list[memoryview] = []
        self._correlation_id = 0

    def ask(self, request: Any, version: int | None = None) -> Any:
        """Say something and return its answer, which must be there when nothing else is left to do."""
        self.post(request, version=version)
        assert len(self.answers) == 1, f"{len(self.answers)} answers"
        return self.take()

    def post(self, *requests: Any, version: int | None = None) -> list[int]:
        """Say all of this at once, and wait for nothing; the correlation ids."""
        frames, ids = [], []
        for request in requests:
            self._correlation_id += 1
            api = api_of(request)
            number = api.max_version if version is None else version
            self._asked[self._correlation_id] = (api, number)
            pieces = encoded_request(api, number, self._correlation_id, "test", request)
            frames.append(memoryview(bytearray(b"".join(map(bytes, pieces)))[4:]))
            ids.append(self._correlation_id)
        self.post_frames(frames)
        return ids

    def post_frames(self, frames: list[memoryview]) -> None:
        assert self.is_open and not self.is_paused
        self._frames = frames
        self.world.step(Received(self.id, frames))

    def take(self) -> Any:
        """The oldest answer that was not taken yet."""
        assert self.answers, "nothing was answered"
        return self.answers.pop(0)

    def drain(self) -> None:
        """All that was sent has left."""
        self.world.step(Drained(self.id))

    def close(self) -> None:
        self.is_open = False
        self.world.step(Closed(self.id))

    def perform(self, effect: Effect) -> None:
        if isinstance(effect, Send):
            self._receive(b"".join(bytes(piece) for piece in effect.pieces))  # type: ignore[call-overload]
        elif isinstance(effect, Pause):
            self.is_paused = True
            self.pauses += 1
            self._left = self._frames[len(self._frames) - effect.left :]
            if not self.is_slow:
                self.world.happens(Drained(self.id))
        elif isinstance(effect, Resume):
            assert self.is_paused, "resumed though it was not paused"
            self.is_paused = False
            if self._left:
                self._frames, self._left = self._left, []
                self.world.happens(Received(self.id, self._frames))
        else:
            assert isinstance(effect, Close)
            self.is_open = False
            self.world.happens(Closed(self.id))

    def _receive(self, data: bytes) -> None:
        position = 0
        while position < len(data):
            size = int.from_bytes(data[position : position + 4], "big")
            frame = data[position + 4 : position + 4 + size]
            assert len(frame) == size, "a send ends in the middle of a frame"
            position += 4 + size
            correlation_id = int.from_bytes(frame[:4], "big")
            api, version = self._asked.pop(correlation_id)
            _, body = read_response_header(api, version, frame)
            response, end = decode_from(response_type(api.key), version, frame, body)
            assert end == size, "bytes follow the response"
            self.answers.append(response)
            self.answered.append(correlation_id)
