"""A node: `effects = node.step(event, now)`.

This file is the table of what happens on which event, and the order in which a step settles: partitions that grew,
metadata that was committed, those who waited for either, then one send per connection, the flush, the next wake-up.
Anything with an `if` about Kafka belongs lower.
"""

from collections.abc import Callable
from random import Random
from typing import Any

from klamm.broker.broker import Broker
from klamm.facts import Tell
from klamm.ids import Now
from klamm.log.files import Files
from klamm.metadata.image import Endpoint
from klamm.node.chores import Chores
from klamm.node.dispatch import Dispatch
from klamm.node.effects import Close, Effect, Flush, Pause, Resume, Send, Wake
from klamm.node.events import Closed, Drained, Event, Flushed, Opened, Received, Woke
from klamm.node.flushing import Flushing
from klamm.node.identity import identity_of, taken_clean_shutdown
from klamm.node.metadata import Metadata
from klamm.wire.apis import API_VERSIONS, FETCH, FIND_COORDINATOR, INIT_PRODUCER_ID, LIST_OFFSETS, PRODUCE
from klamm.wire.connection import ServerConnection

MOST_OUTGOING_BYTES = 256 << 10
"""So much may be answered to one connection in one step; the rest of its requests waits until that has left."""

MOST_COST = 500
COST = {PRODUCE: 1, FETCH: 2, LIST_OFFSETS: 5, FIND_COORDINATOR: 1, API_VERSIONS: 10, INIT_PRODUCER_ID: 1}
"""What requests count for, by the low byte of their key. Those not named here may take milliseconds: one a step, then
others have their turn."""

MOST_WAITING = 1_000
"""So many requests of one connection may wait at once (librdkafka pipelines without a limit of its own)."""


class Node:
    def __init__(self, broker: Broker, metadata: Metadata, files: Files, random: Random, tell: Tell) -> None:
        self.broker = broker
        self.metadata = metadata
        self._files = files
        self._random = random
        self.chores = Chores(tell)
        self._tell = tell
        self._connections: dict[int, ServerConnection] = {}
        self._touched: list[ServerConnection] = []
        self._dispatch = Dispatch(broker, self._touch, tell)
        self._flushing = Flushing(broker, metadata, tell)
        self._effects: list[Effect] = []
        self._wake_ms: float | None = None
        self._on: dict[type, Callable[[Any, Now], None]] = {
            Opened: self._opened,
            Received: self._received,
            Drained: self._drained,
            Closed: self._closed,
            Flushed: self._flushed,
            Woke: self._woke,
        }

    def start(self, endpoint: Endpoint, now: Now) -> list[Effect]:
        """Open what the disk holds, take up our roles, and be reached at this endpoint. Nobody waits yet, so flushes
        are done at once."""
        identity = identity_of(self._files, self.broker.node_id, self._random)
        previous_broker_epoch = taken_clean_shutdown(self._files)
        self.metadata.start(identity, endpoint, previous_broker_epoch, now)
        self.broker.open(identity.cluster_id, now, clean=previous_broker_epoch >= 0)
        for chore in self.broker.housekeeping.chores():
            self.chores.add(chore.run, chore.interval_ms, now)
        return self._settled(now)

    def step(self, event: Event, now: Now) -> list[Effect]:
        self._on[event.__class__](event, now)
        return self._settled(now)

    def stop(self) -> bool:
        """Everything flushed, checkpointed, and the marker that says so written last; whether the end was clean."""
        clean = self.broker.close()
        return self.metadata.close() and clean and self.broker.note_clean_shutdown()

    # Events.

    def _opened(self, event: Opened, now: Now) -> None:
        self._connections[event.connection] = ServerConnection(event.connection, event.peer)

    def _received(self, event: Received, now: Now) -> None:
        connection = self._connections[event.connection]
        request = self._dispatch.request
        left = len(event.frames)
        cost = 0
        for frame in event.frames:
            if (
                cost >= MOST_COST
                or connection.outgoing_bytes + connection.queued_bytes > MOST_OUTGOING_BYTES
                or len(connection.queue) >= MOST_WAITING
            ):
                self._pause(connection, left)
                return
            if not request(connection, frame, now):
                connection.closing = True
                self._touch(connection)
                return
            cost += COST.get(frame[1], MOST_COST)
            left -= 1

    def _drained(self, event: Drained, now: Now) -> None:
        connection = self._connections.get(event.connection)
        if connection is not None:
            connection.drained = True
            self._touch(connection)

    def _closed(self, event: Closed, now: Now) -> None:
        if self._connections.pop(event.connection, None) is not None:
            self.broker.waiting.connection_closed(event.connection)

    def _flushed(self, event: Flushed, now: Now) -> None:
        self._flushing.done(event.token, event.error)

    def _woke(self, event: Woke, now: Now) -> None:
        self._wake_ms = None
        self.broker.waiting.expire(now)
        self.chores.run_slice(now)

    # Settling.

    def _settled(self, now: Now) -> list[Effect]:
        broker = self.broker
        flush: Flush | None = None
        while True:
            if broker.grown:
                broker.settle_grown(now)
            if self.metadata.is_busy:
                self.metadata.apply_committed(now)
            released = broker.waiting.take_released()
            for waiter, in_time in released:
                waiter.deliver(now, in_time)
            if released:
                continue
            flush = flush or self._flushing.next_flush(now)
            if not broker.grown:
                break
        effects, self._effects = self._effects, []
        if self._touched:
            self._send(effects)
        if flush is not None:
            effects.append(flush)
        self._set_alarm(effects)
        return effects

    def _send(self, effects: list[Effect]) -> None:
        touched, self._touched = self._touched, []
        for connection in touched:
            connection.touched = False
            if connection.outgoing:
                effects.append(Send(connection.id, connection.take_outgoing()))
            if connection.closing:
                effects.append(Close(connection.id))
            elif connection.left is not None:
                effects.append(Pause(connection.id, connection.left))
                connection.left = None
            elif connection.paused and connection.drained and self._has_room(connection):
                connection.paused = False
                effects.append(Resume(connection.id))

    def _set_alarm(self, effects: list[Effect]) -> None:
        wake_ms = self.broker.waiting.next_deadline_ms()
        for due_ms in (self.chores.next_due_ms, self._flushing.next_due_ms()):
            if due_ms is not None and (wake_ms is None or due_ms < wake_ms):
                wake_ms = due_ms
        if wake_ms is not None and (self._wake_ms is None or wake_ms < self._wake_ms):
            self._wake_ms = wake_ms
            effects.append(Wake(wake_ms))

    def _has_room(self, connection: ServerConnection) -> bool:
        return len(connection.queue) < MOST_WAITING // 2 and connection.queued_bytes <= MOST_OUTGOING_BYTES

    def _pause(self, connection: ServerConnection, left: int) -> None:
        connection.paused = True
        connection.drained = False
        connection.left = left
        self._touch(connection)

    def _touch(self, connection: ServerConnection) -> None:
        if not connection.touched:
            connection.touched = True
            self._touched.append(connection)
