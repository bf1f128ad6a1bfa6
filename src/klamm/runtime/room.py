"""The room that all unfinished frames have together, and who is read on when it is used up.

Over the budget one connection is favoured: it is read until its frame is whole, so somebody finishes and makes room.
The others are read a little at a time, enough for ordinary requests, and not at all once they hold more than that: they
are starved, and wait in a queue.

Favour follows who speaks. A peer may be gone without a word, or wait long before it sends again what was lost on the
way; so a favoured connection that is silent while another one has something to say is passed over, and queues again.
What those who were passed over hold together has a bound. At the bound the favoured one stays, and whoever holds room
and has said nothing for ten seconds is closed.
"""

from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

SMALL_READ = 16 << 10
"""What a connection may say in one turn while the room is used up, and hold without being starved."""

PASSED_OVER_BYTES = 16 << 20
SILENT_MS = 20.0
MOST_PATIENCE_MS = 10_000.0


class Holder(Protocol):
    """A connection, as far as room goes."""

    id: int
    counted_bytes: int
    active_ms: float

    @property
    def may_be_read(self) -> bool: ...
    @property
    def has_said_more(self) -> bool: ...


T = TypeVar("T", bound=Holder)


class Room(Generic[T]):
    def __init__(self, limit_bytes: int, on_change: Callable[[T], None]) -> None:
        """`on_change` hears of each connection that is starved from now on, or no longer."""
        self._limit_bytes = limit_bytes
        self._on_change = on_change
        self._used_bytes = 0
        self._favoured: T | None = None
        self._favoured_since_ms = 0.0
        self._starved: dict[int, T] = {}
        self._passed_over: dict[int, T] = {}
        """Those of the starved who were favoured, and silent."""

    def is_starved(self, connection: T) -> bool:
        return connection.id in self._starved

    def is_short_for(self, connection: T) -> bool:
        """Somebody else is favoured: this one says a little at a time."""
        return self._favoured is not None and self._favoured is not connection

    @property
    def is_contested(self) -> bool:
        return self._favoured is not None and bool(self._starved)

    def note(self, connection: T, unfinished_bytes: int, held_bytes: int, now_ms: float) -> None:
        """It holds so much now; what is whole, and waits to be taken, is held too, and nobody's fault."""
        self._used_bytes += held_bytes - connection.counted_bytes
        connection.counted_bytes = held_bytes
        is_favoured = connection is self._favoured
        if self._used_bytes <= self._limit_bytes:
            if self._favoured is not None:
                self._favoured = None
                self._feed_all()
        elif is_favoured and unfinished_bytes <= SMALL_READ:
            self._favoured = None
            self._favour_next(now_ms)
        elif not is_favoured and unfinished_bytes > SMALL_READ:
            if self._favoured is None:
                self._favour(connection, now_ms)
            else:
                self._starve(connection)

    def forget(self, connection: T, now_ms: float) -> None:
        """It is gone."""
        self._starved.pop(connection.id, None)
        self._passed_over.pop(connection.id, None)
        self.note(connection, 0, 0, now_ms)

    def look(self, now_ms: float) -> list[T]:
        """Pass over a favoured one that is silent while others are not; those who are to be closed, for the same."""
        favoured = self._favoured
        if favoured is None or self._silence_ms(favoured, now_ms) < SILENT_MS or favoured.has_said_more:
            return []
        speaker = self._first_to_speak()
        if speaker is None:
            return []
        too_much_bytes = sum(each.counted_bytes for each in self._silent_holders()) - PASSED_OVER_BYTES
        if too_much_bytes > 0:
            # Only in exchange for as much.
            back = [each for each in self._passed_over.values() if each.counted_bytes >= too_much_bytes]
            speaker = next((each for each in back if each.has_said_more), None)
        if speaker is not None:
            self._starve(favoured)
            self._passed_over[favoured.id] = favoured
            self._favour(speaker, now_ms)
            return []
        return [
            each
            for each in self._silent_holders()
            if self._silence_ms(each, now_ms) > MOST_PATIENCE_MS and each.may_be_read and not each.has_said_more
        ]

    def _silent_holders(self) -> list[T]:
        return [*self._passed_over.values(), *([] if self._favoured is None else [self._favoured])]

    def _silence_ms(self, connection: T, now_ms: float) -> float:
        """It could not be heard before it was favoured."""
        since_ms = self._favoured_since_ms if connection is self._favoured else 0.0
        return now_ms - max(connection.active_ms, since_ms)

    def _favour_next(self, now_ms: float) -> None:
        following = self._first_to_speak() or next(iter(self._starved.values()), None)
        if following is not None:
            self._favour(following, now_ms)

    def _first_to_speak(self) -> T | None:
        """Of the starved, in their order. The silent ones it meets queue again."""
        for connection in list(self._starved.values()):
            if connection.has_said_more:
                return connection
            self._starved[connection.id] = self._starved.pop(connection.id)
        return None

    def _favour(self, connection: T, now_ms: float) -> None:
        self._favoured, self._favoured_since_ms = connection, now_ms
        self._passed_over.pop(connection.id, None)
        if self._starved.pop(connection.id, None) is not None:
            self._on_change(connection)

    def _starve(self, connection: T) -> None:
        self._starved[connection.id] = connection
        self._on_change(connection)

    def _feed_all(self) -> None:
        fed, self._starved = self._starved, {}
        self._passed_over.clear()
        for connection in fed.values():
            self._on_change(connection)
