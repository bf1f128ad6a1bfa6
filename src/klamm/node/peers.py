"""Other nodes, as far as we ask them something: connections that are dialled when needed, and who waits for answers.

Replies leave a connection in the order its requests came, so a fetch that waits half a second for records would hold up
a heartbeat behind it. Hence one connection for each purpose. Whoever asks is told the answer, or that there will be
none (refused, closed, too late), and decides itself whether to ask again. To ask this very node is to ask its handlers,
without a connection.

A connection that breaks is no proof of anything. One that breaks and finds nobody listening when it is dialled again
is: the process is dead, and whoever depends on it need not wait for a timeout. `gone` collects these nodes.
"""

from collections.abc import Callable, Iterable, Sequence
from enum import IntEnum
from random import Random
from typing import Any, NamedTuple, TypeAlias

from klamm.codec.primitives import Malformed
from klamm.facts import Tell
from klamm.ids import BrokerId, Now
from klamm.node.effects import Close, Dial, Effect, Send
from klamm.node.facts import AnswerNotUnderstood
from klamm.wire.claims import CLAIM, TOKEN_BYTES, claim_bytes
from klamm.wire.client_connection import Asked, ClientConnection
from klamm.wire.headers import NO_TAGS

Then: TypeAlias = Callable[[Any, Now], None]
AskHere: TypeAlias = Callable[[int, int, object, float, Then, Now], None]

FIRST_REDIAL_MS, REDIAL_MS = 10.0, 1_000.0
"""A node we watch that cannot be reached is tried again after the first, twice as long, … at most the second."""

REDIAL_DEAD_MS = 200.0
"""One where nobody listens: whoever was told may not have believed it, right after a new life of it began."""


DIALLING_MS = 1_000.0
"""A second call that is neither taken nor refused (the network swallows it) is no evidence of anything."""

GIVEN_UP_MS = 5_000.0
"""An answer that is so much overdue does not come any more, and those behind it do not either."""


def given_up(answer: object, now: Now) -> None:
    """In the place of who does not wait any longer. The answer may come; others wait for theirs behind it."""


class Purpose(IntEnum):
    """Why we talk to a node. Each has its own connection."""

    WATCH = 0
    VOTE = 1
    METADATA = 2
    MEMBERSHIP = 3
    IN_SYNC = 4
    FORWARD = 5
    REPLICATION = 6
    CONFIRM = 7
    NEWCOMER = 8
    """To an address that is only advertised."""


AS_BROKER = frozenset({Purpose.MEMBERSHIP, Purpose.IN_SYNC, Purpose.FORWARD, Purpose.REPLICATION})
"""What is said there counts because this broker says it: these connections begin with a claim."""


class Peer(NamedTuple):
    node_id: BrokerId
    host: str
    port: int


class _Channel:
    __slots__ = ("connection", "dialled_ms", "peer", "purpose", "token")

    def __init__(
        self, peer: Peer, purpose: Purpose, connection: ClientConnection, dialled_ms: float, token: bytes | None
    ) -> None:
        self.peer = peer
        self.token = token
        self.purpose = purpose
        self.connection = connection
        self.dialled_ms = dialled_ms

    @property
    def due_ms(self) -> float | None:
        """When somebody has waited long enough for it."""
        due_ms = [each.deadline_ms for each in self.connection.asked if each.then is not given_up]
        if self.connection.asked:
            due_ms.append(self.connection.asked[0].deadline_ms + GIVEN_UP_MS)
        if self.purpose is Purpose.WATCH and not self.connection.is_open:
            due_ms.append(self.dialled_ms + DIALLING_MS)
        return min(due_ms, default=None)


class Peers:
    def __init__(self, me: BrokerId, ask_here: AskHere, random: Random, tell: Tell) -> None:
        self._me = me
        self._random = random
        self._client_id = f"node-{me}"
        self._ask_here = ask_here
        self._tell = tell
        self._channels: dict[tuple[BrokerId, Purpose], _Channel] = {}
        self._by_connection: dict[int, _Channel] = {}
        self._by_token: dict[bytes, _Channel] = {}
        self._watched: dict[BrokerId, Peer] = {}
        self._redial: dict[BrokerId, float] = {}
        self._pauses_ms: dict[BrokerId, float] = {}
        self._reached: set[Peer] = set()
        """Nodes that a connection of ours reached, where they live now, since they were last found dead."""
        self._next_connection = -1
        self._effects: list[Effect] = []
        self._touched: list[ClientConnection] = []
        self.has_work = False
        """Whether there is something to be sent, dialled or closed."""
        self.suspects: set[BrokerId] = set()
        """Nodes to which a connection broke, and which are being dialled again."""
        self.gone: list[BrokerId] = []
        """Nodes whose process is dead for certain, since somebody last took them from here."""

    # Asking.

    def ask(
        self,
        peer: Peer,
        purpose: Purpose,
        api: int,
        version: int,
        request: object,
        timeout_ms: float,
        then: Then,
        now: Now,
        answer_type: type[Any] | None = None,
        tags: bytes = NO_TAGS,
    ) -> None:
        """`then(answer, now)`, with None if there is none within the time."""
        deadline_ms = now.monotonic_ms + timeout_ms
        if peer.node_id == self._me:
            self._ask_here(api, version, request, deadline_ms, then, now)
            return
        connection = self._channel(peer, purpose, now).connection
        connection.ask(api, version, request, deadline_ms, then, answer_type, tags)
        self._touch(connection)

    def watch(self, peers: Sequence[Peer], now: Now) -> None:
        """These nodes, and no others: when one of them dies, it is in `gone`."""
        self._watched = {peer.node_id: peer for peer in peers if peer.node_id != self._me}
        for node_id in [node_id for node_id, purpose in self._channels if purpose is Purpose.WATCH]:
            if node_id not in self._watched:
                self._close(self._channels[node_id, Purpose.WATCH])
        for peer in self._watched.values():
            if peer.node_id not in self._redial:
                self._channel(peer, Purpose.WATCH, now)

    def _channel(self, peer: Peer, purpose: Purpose, now: Now) -> _Channel:
        channel = self._channels.get((peer.node_id, purpose))
        if channel is not None and channel.peer != peer:
            # It lives at another address now.
            self._reached.discard(channel.peer)
            self._close(channel)
            self._lose(channel, now)
            channel = self._channels.get((peer.node_id, purpose))
        if channel is None:
            token = self._random.randbytes(TOKEN_BYTES) if purpose in AS_BROKER else None
            claim = NO_TAGS if token is None else claim_bytes(CLAIM, self._me, token)
            connection = ClientConnection(self._next_connection, self._client_id, claim)
            self._next_connection -= 1
            channel = _Channel(peer, purpose, connection, now.monotonic_ms, token)
            if token is not None:
                self._by_token[token] = channel
            self._channels[peer.node_id, purpose] = channel
            self._by_connection[connection.id] = channel
            self._effects.append(Dial(connection.id, peer.host, peer.port))
            self.has_work = True
        return channel

    # What happens.

    def opened(self, connection: int) -> None:
        channel = self._by_connection.get(connection)
        if channel is None:
            return
        channel.connection.is_open = True
        if channel.purpose is not Purpose.NEWCOMER:
            # (Anybody may advertise as many addresses as there are.)
            self._reached.add(channel.peer)
        self._pauses_ms.pop(channel.peer.node_id, None)
        self._touch(channel.connection)
        if channel.purpose is Purpose.WATCH:
            self.suspects.discard(channel.peer.node_id)
        if channel.purpose is Purpose.WATCH and channel.peer.node_id not in self._watched:
            # It was only a question whether it is alive.
            self._close(channel)

    def refused(self, connection: int, nobody_listens: bool, now: Now) -> None:
        channel = self._forgotten(connection)
        if channel is None:
            return
        node_id = channel.peer.node_id
        is_evidence = nobody_listens and channel.purpose is not Purpose.NEWCOMER
        if is_evidence and (channel.purpose is Purpose.WATCH or channel.peer in self._reached):
            # Whatever it was dialled for. A process that dies closes its connections before its listening socket: the
            # second call may come in between, and be taken or reset by nobody.
            self._reached.discard(channel.peer)
            self.gone.append(node_id)
        if channel.purpose is Purpose.WATCH and node_id in self._watched:
            pause_ms = REDIAL_DEAD_MS if nobody_listens else self._next_pause_ms(node_id)
            self._redial[node_id] = now.monotonic_ms + pause_ms
        self._lose(channel, now)

    def closed(self, connection: int, now: Now) -> None:
        channel = self._forgotten(connection)
        if channel is None:
            return
        known = self._channels.get((channel.peer.node_id, Purpose.WATCH))
        watched = known.peer if known is not None else self._watched.get(channel.peer.node_id)
        is_evidence = channel.connection.is_open and channel.purpose is not Purpose.NEWCOMER
        if is_evidence and watched in (None, channel.peer):
            # (One to an old address says nothing about a node that has moved.)
            watching = self._channel(channel.peer, Purpose.WATCH, now)
            if not watching.connection.is_open:
                self.suspects.add(channel.peer.node_id)
        self._lose(channel, now)

    def received(self, connection: int, frames: Sequence[memoryview], now: Now) -> None:
        channel = self._by_connection.get(connection)
        if channel is None:
            return
        for frame in frames:
            try:
                asked, answer = channel.connection.answered(frame)
            except Malformed as error:
                self._tell(AnswerNotUnderstood(channel.peer.node_id, str(error)))
                self._close(channel)
                self._lose(channel, now)
                return
            try:
                asked.then(answer, now)
            except AssertionError:
                raise
            except Exception as error:
                # Right in form, and nonsense all the same.
                self._tell(AnswerNotUnderstood(channel.peer.node_id, f"{type(error).__name__}: {error}"))
                if channel.connection.id in self._by_connection:
                    self._close(channel)
                    self._lose(channel, now)
                return

    def give_up(self, node_id: BrokerId, purposes: Iterable[Purpose], now: Now) -> None:
        """Nothing that was asked of it for these purposes is waited for any longer."""
        for purpose in purposes:
            channel = self._channels.get((node_id, purpose))
            if channel is not None:
                self._close(channel)
                self._lose(channel, now)

    def hang_up(self, node_id: BrokerId, purpose: Purpose) -> None:
        """Nobody asks it anything more for this purpose, unless somebody still waits for an answer."""
        channel = self._channels.get((node_id, purpose))
        if channel is not None and not channel.connection.asked:
            self._close(channel)

    def is_ours(self, token: bytes, shown_to: BrokerId) -> bool:
        """Whether a connection of ours to this node began with it."""
        channel = self._by_token.get(token)
        return channel is not None and channel.peer.node_id == shown_to

    def hurry(self, node_id: BrokerId, purpose: Purpose, within_ms: float, now: Now) -> None:
        """What was asked of it for this purpose is waited for so long, and no longer."""
        channel = self._channels.get((node_id, purpose))
        if channel is not None:
            for each in channel.connection.asked:
                each.deadline_ms = min(each.deadline_ms, now.monotonic_ms + within_ms)

    def tick(self, now: Now) -> None:
        """Nobody waits for ever. Who has waited long enough is told so; a connection on which nobody waits any more, or
        on which an answer is much overdue, is closed, and all that was asked on it is lost with it."""
        for channel in list(self._by_connection.values()):
            due_ms = channel.due_ms
            if due_ms is not None and due_ms <= now.monotonic_ms and channel.connection.id in self._by_connection:
                self._overdue(channel, now)
        for node_id in [node_id for node_id, due_ms in self._redial.items() if due_ms <= now.monotonic_ms]:
            del self._redial[node_id]
            if node_id in self._watched:
                self._channel(self._watched[node_id], Purpose.WATCH, now)

    def _next_pause_ms(self, node_id: BrokerId) -> float:
        """Soon at first, then more and more seldom."""
        pause_ms = min(2 * self._pauses_ms.get(node_id, FIRST_REDIAL_MS / 2), REDIAL_MS)
        self._pauses_ms[node_id] = pause_ms
        return pause_ms

    def _overdue(self, channel: _Channel, now: Now) -> None:
        asked = channel.connection.asked
        if not asked:
            self._close(channel)
            if channel.peer.node_id in self._watched:
                self._redial[channel.peer.node_id] = now.monotonic_ms + REDIAL_MS
            return
        if asked[0].deadline_ms + GIVEN_UP_MS <= now.monotonic_ms:
            self._close(channel)
            self._lose(channel, now)
            return
        for each in [each for each in asked if each.deadline_ms <= now.monotonic_ms and each.then is not given_up]:
            then, each.then = each.then, given_up
            then(None, now)
        if all(each.then is given_up for each in asked) and channel.connection.id in self._by_connection:
            self._close(channel)

    def next_deadline_ms(self) -> float | None:
        due = [due_ms for channel in self._by_connection.values() if (due_ms := channel.due_ms) is not None]
        due += self._redial.values()
        return min(due, default=None)

    def take_gone(self) -> list[BrokerId]:
        gone, self.gone = self.gone, []
        return gone

    def take_effects(self) -> list[Effect]:
        """What has to be sent, dialled and closed. Part of settling."""
        effects, self._effects = self._effects, []
        touched, self._touched = self._touched, []
        for connection in touched:
            connection.touched = False
            if connection.is_open and connection.outgoing and connection.id in self._by_connection:
                effects.append(Send(connection.id, connection.take_outgoing()))
        return effects

    # Helpers.

    def _touch(self, connection: ClientConnection) -> None:
        self.has_work = True
        if not connection.touched:
            connection.touched = True
            self._touched.append(connection)

    def _close(self, channel: _Channel) -> None:
        self._forgotten(channel.connection.id)
        self._effects.append(Close(channel.connection.id))
        self.has_work = True

    def _forgotten(self, connection: int) -> _Channel | None:
        channel = self._by_connection.pop(connection, None)
        if channel is not None:
            if channel.purpose is Purpose.WATCH:
                self.suspects.discard(channel.peer.node_id)
            del self._channels[channel.peer.node_id, channel.purpose]
            if channel.token is not None:
                del self._by_token[channel.token]
        return channel

    def _lose(self, channel: _Channel, now: Now) -> None:
        asked: list[Asked] = list(channel.connection.asked)
        channel.connection.asked.clear()
        for each in asked:
            each.then(None, now)
