"""A node: `effects = node.step(event, now)`.

This file is the table of what happens on which event, and the order in which a step settles: partitions that grew,
metadata that was committed, those who waited for either, then one send per connection, the flush, the next wake-up.
Followers hear of what was written, and long work goes on, when nobody else is ready (`Yield`).
Anything with an `if` about Kafka belongs lower.
"""

from collections.abc import Callable
from random import Random
from typing import Any

from klamm.broker.broker import Broker
from klamm.facts import Tell
from klamm.ids import Now
from klamm.log.files import DiskFailed, Files
from klamm.metadata.image import Endpoint
from klamm.node.chores import Chores
from klamm.node.cluster import Cluster
from klamm.node.effects import Close, Effect, Flush, Pause, Resume, Send, Serve, Wake, Yield
from klamm.node.events import Closed, Drained, Event, Flushed, Opened, Received, Refused, Woke, Yielded
from klamm.node.flushing import Flushing
from klamm.node.identity import common_cluster_id, identity_of, taken_clean_shutdown
from klamm.wire.apis import (
    ALLOCATE_PRODUCER_IDS,
    ALTER_PARTITION,
    API_VERSIONS,
    BEGIN_QUORUM_EPOCH,
    BROKER_HEARTBEAT,
    BROKER_REGISTRATION,
    DESCRIBE_QUORUM,
    END_QUORUM_EPOCH,
    ENVELOPE,
    FETCH,
    FETCH_SNAPSHOT,
    FIND_COORDINATOR,
    HEARTBEAT,
    INIT_PRODUCER_ID,
    LIST_OFFSETS,
    OFFSET_COMMIT,
    OFFSET_FETCH,
    PRODUCE,
    VOTE,
)
from klamm.wire.connection import ServerConnection

MOST_OUTGOING_BYTES = 256 << 10
"""So much may be answered to one connection in one step; the rest of its requests waits until that has left."""

MOST_COST = 500
COST = {
    PRODUCE: 1,
    FETCH: 2,
    LIST_OFFSETS: 5,
    FIND_COORDINATOR: 10,
    API_VERSIONS: 10,
    INIT_PRODUCER_ID: 1,
    HEARTBEAT: 10,
    OFFSET_COMMIT: 25,
    OFFSET_FETCH: 25,
}
"""What requests count for, by the low byte of their key. Those not named here may take milliseconds: one a step, then
others have their turn."""

OF_NODES = frozenset(
    {
        FETCH,
        API_VERSIONS,
        VOTE,
        BEGIN_QUORUM_EPOCH,
        END_QUORUM_EPOCH,
        DESCRIBE_QUORUM,
        ALTER_PARTITION,
        ENVELOPE,
        FETCH_SNAPSHOT,
        BROKER_REGISTRATION,
        BROKER_HEARTBEAT,
        ALLOCATE_PRODUCER_IDS,
    }
)
"""What nodes ask of one another is answered from the beginning; clients wait until this broker is counted on."""

MOST_WAITING = 1_000
"""So many requests of one connection may wait at once (librdkafka pipelines without a limit of its own)."""


class Node:
    def __init__(self, broker: Broker, files: Files, random: Random, cluster_id: str | None, tell: Tell) -> None:
        self.broker = broker
        self._files = files
        self._random = random
        self._cluster_id = cluster_id
        self.chores = Chores(tell)
        self._tell = tell
        self._connections: dict[int, ServerConnection] = {}
        self._touched: list[ServerConnection] = []
        self.cluster = Cluster(broker, files, random, self._touch, tell)
        self._dispatch = self.cluster.dispatch
        self._flushing = Flushing(broker, self.cluster.metadata, tell)
        self._effects: list[Effect] = []
        self._wake_ms: float | None = None
        self._is_serving = False
        self._is_yielding = False
        self._on: dict[type, Callable[[Any, Now], None]] = {
            Opened: self._opened,
            Refused: self._refused,
            Received: self._received,
            Drained: self._drained,
            Closed: self._closed,
            Flushed: self._flushed,
            Woke: self._woke,
            Yielded: self._yielded,
        }

    def start(self, endpoint: Endpoint, now: Now) -> list[Effect]:
        """Open what the disk holds, and take our place in the cluster, to be reached at this endpoint. Nobody waits
        yet, so flushes are done at once: a node alone serves when this returns."""
        voters = self.broker.config.voters
        common = common_cluster_id(voters) if len(voters) > 1 else None
        identity = identity_of(self._files, self.broker.node_id, self._random, self._cluster_id, common)
        previous_broker_epoch = taken_clean_shutdown(self._files)
        self.broker.housekeeping.load()
        self.cluster.start(identity, endpoint, previous_broker_epoch, now)
        for chore in self.broker.housekeeping.chores():
            self.chores.add(chore.run, chore.interval_ms, now)
        effects = self._settled(now)
        while True:
            flush = next((effect for effect in effects if isinstance(effect, Flush)), None)
            if flush is not None:
                effects.remove(flush)
                failures = self._files.flush_groups(flush.groups)
                self._flushing.done(flush.token, {number: str(error) for number, error in failures.items()}, now)
                if failures and self.cluster.metadata.failure is not None:
                    raise DiskFailed(self.cluster.metadata.failure)
            elif self.broker.own_slices:
                self.broker.own_slices.run_slice(now)
            else:
                return effects
            effects += self._settled(now)

    def step(self, event: Event, now: Now) -> list[Effect]:
        self._on[event.__class__](event, now)
        return self._settled(now)

    def begin_to_stop(self, now: Now) -> list[Effect]:
        """Hand over what we lead. The effect `Stop` says when that is done, or not worth waiting for any longer."""
        self.cluster.begin_to_stop(now)
        return self._settled(now)

    def stop(self) -> bool:
        """Everything flushed, checkpointed, and the marker that says so written last; whether the end was clean."""
        clean = self.broker.close()
        return self.cluster.metadata.close() and clean and self.cluster.note_clean_shutdown()

    # Events.

    def _opened(self, event: Opened, now: Now) -> None:
        if event.connection < 0:
            self.cluster.opened(event.connection)
        else:
            self._connections[event.connection] = ServerConnection(event.connection, event.peer)

    def _refused(self, event: Refused, now: Now) -> None:
        self.cluster.refused(event.connection, event.nobody_listens, now)

    def _received(self, event: Received, now: Now) -> None:
        if event.connection < 0:
            self.cluster.received(event.connection, event.frames, now)
            return
        connection = self._connections[event.connection]
        request = self._dispatch.request
        left = len(event.frames)
        cost = 0
        for frame in event.frames:
            connection.awaits_service = not self._is_serving and frame[1] not in OF_NODES
            if (
                cost >= MOST_COST
                or connection.outgoing_bytes + connection.queued_bytes > MOST_OUTGOING_BYTES
                or len(connection.queue) >= MOST_WAITING
                or connection.awaits_service
            ):
                self._pause(connection, left)
                return
            if not request(connection, frame, now):
                connection.closing = True
                self._touch(connection)
                return
            if connection.awaits_speaker:
                self._pause(connection, left)
                return
            cost += COST.get(frame[1], MOST_COST)
            left -= 1
            if connection.is_busy:
                self._pause(connection, left + connection.gives_back)
                connection.gives_back = False
                return

    def _drained(self, event: Drained, now: Now) -> None:
        connection = self._connections.get(event.connection)
        if connection is not None:
            connection.drained = True
            self._touch(connection)

    def _closed(self, event: Closed, now: Now) -> None:
        if event.connection < 0:
            self.cluster.closed(event.connection, now)
        elif (connection := self._connections.pop(event.connection, None)) is not None:
            connection.is_gone = True
            self.broker.waiting.connection_closed(event.connection)
            self.cluster.confirmations.closed(event.connection)

    def _flushed(self, event: Flushed, now: Now) -> None:
        self._flushing.done(event.token, event.failures, now)

    def _woke(self, event: Woke, now: Now) -> None:
        self._wake_ms = None
        self.broker.waiting.expire(now)
        self.cluster.tick(now)
        self.broker.coordination.tick(now)
        self.chores.run_slice(now)

    def _yielded(self, event: Yielded, now: Now) -> None:
        self._is_yielding = False
        self.broker.tell_followers()
        self.broker.own_slices.run_slice(now)
        self.broker.slices.run_slice(now)

    # Settling.

    def _settled(self, now: Now) -> list[Effect]:
        broker, cluster = self.broker, self.cluster
        flush: Flush | None = None
        while True:
            if broker.grown:
                broker.settle_grown(now)
            if cluster.is_busy or broker.quorum_touched or broker.replication.is_busy:
                cluster.settle(now)
            released = broker.waiting.take_released()
            for waiter, in_time in released:
                waiter.deliver(now, in_time)
            if released:
                continue
            flush = flush or self._flushing.next_flush(now)
            if not broker.grown and not cluster.is_busy:
                break
        effects, self._effects = self._effects, []
        if cluster.has_effects:
            effects += cluster.take_effects()
            self._serve_when_ready(effects)
        if self._touched:
            self._send(effects)
        if flush is not None:
            effects.append(flush)
        if (broker.news_for_followers or broker.slices or broker.own_slices) and not self._is_yielding:
            self._is_yielding = True
            effects.append(Yield())
        self._set_alarm(effects)
        return effects

    def _serve_when_ready(self, effects: list[Effect]) -> None:
        if self.cluster.is_serving and not self._is_serving:
            self._is_serving = True
            effects.append(Serve())
            for connection in self._connections.values():
                self._touch(connection)

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
        groups_ms = self.broker.coordination.next_due_ms
        for due_ms in (self.chores.next_due_ms, self._flushing.next_due_ms(), self.cluster.next_due_ms, groups_ms):
            if due_ms is not None and (wake_ms is None or due_ms < wake_ms):
                wake_ms = due_ms
        if wake_ms is not None and (self._wake_ms is None or wake_ms < self._wake_ms):
            self._wake_ms = wake_ms
            effects.append(Wake(wake_ms))

    def _has_room(self, connection: ServerConnection) -> bool:
        return (
            (self._is_serving or not connection.awaits_service)
            and not (connection.is_busy or connection.awaits_speaker)
            and len(connection.queue) < MOST_WAITING // 2
            and connection.queued_bytes <= MOST_OUTGOING_BYTES
        )

    def _pause(self, connection: ServerConnection, left: int) -> None:
        connection.paused = True
        connection.drained = False
        connection.left = left
        self._touch(connection)

    def _touch(self, connection: ServerConnection) -> None:
        if not connection.touched:
            connection.touched = True
            self._touched.append(connection)
