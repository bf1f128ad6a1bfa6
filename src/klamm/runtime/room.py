"""The room that all unfinished frames have together, and who is read on when it is used up.

Only bytes that have arrived take room, never what is announced. Over the budget one connection is favoured: it is read
until its frame is whole, so somebody finishes and makes room. The others are read a little at a time, enough for small
requests, and not at all once they hold more than that: they are starved, and wait in a queue.

Ordinary requests, and answers of other nodes, go before large ones: they need little, and a favoured connection whose
frame is large is interrupted for them. Only one is interrupted at a time, and it goes on before another large one.

Favour follows who gets on. A peer may be gone without a word, or wait long before it sends again what was lost on the
way, or dribble; so a favoured connection that makes no progress while another one has something to say is passed over,
and queues again. What those who were passed over hold together has a bound. At the bound the favoured one stays, and
whoever holds room and has made no progress for two seconds is closed.
"""

from collections.abc import Callable, Iterator
from typing import Generic, Protocol, TypeVar

SMALL_READ = 16 << 10
"""What a connection may say in one turn while the room is used up, and hold without being starved."""

ORDINARY_BYTES = 2 << 20
"""A frame that is announced with no more is an ordinary request: producers send a mebibyte unless they are told to
send more."""

PASSED_OVER_BYTES = 16 << 20
"""What those who were passed over hold, with ordinary frames and with large ones, each."""

SILENT_MS = 20.0
MOST_PATIENCE_MS = 2_000.0
MOST_TURNS_IN_VAIN = 3
"""Whoever was favoured so often and got on by less than a small read is not waited for because it says a little."""


class Holder(Protocol):
    """A connection, as far as room goes."""

    id: int
    counted_bytes: int

    @property
    def frame_bytes(self) -> int:
        """What its unfinished frame will be, by its own word."""
        ...

    @property
    def may_be_read(self) -> bool: ...
    @property
    def has_said_more(self) -> bool: ...


T = TypeVar("T", bound=Holder)


class _Progress:
    """How far the unfinished frame of one connection was when it last got on by more than a little, and when."""

    __slots__ = ("size_bytes", "turns_in_vain", "when_ms")

    def __init__(self) -> None:
        self.size_bytes = 0
        self.when_ms = 0.0
        self.turns_in_vain = 0


class Room(Generic[T]):
    def __init__(self, limit_bytes: int, on_change: Callable[[T], None]) -> None:
        """`on_change` hears of each connection that is starved from now on, or no longer."""
        self._limit_bytes = limit_bytes
        self._on_change = on_change
        self.used_bytes = 0
        self._favoured: T | None = None
        self._favoured_since_ms = 0.0
        self._interrupted: T | None = None
        """The one with a large frame that ordinary ones go before. It is starved meanwhile."""
        self._starved: dict[int, T] = {}
        self._passed_over: dict[int, T] = {}
        """Those of the starved who were favoured, and made no progress."""
        self._holders: dict[int, tuple[T, _Progress]] = {}
        """Whoever holds more than a little of an unfinished frame."""

    def is_starved(self, connection: T) -> bool:
        return connection.id in self._starved

    def is_short_for(self, connection: T) -> bool:
        """Somebody else is favoured: this one says a little at a time."""
        return self._favoured is not None and self._favoured is not connection

    @property
    def starved_count(self) -> int:
        return len(self._starved)

    @property
    def is_contested(self) -> bool:
        return self._favoured is not None and bool(self._starved)

    def note(self, connection: T, unfinished_bytes: int, held_bytes: int, now_ms: float) -> None:
        """It holds so much now; what is whole, and waits to be taken, is held too, and nobody's fault."""
        self.used_bytes += held_bytes - connection.counted_bytes
        connection.counted_bytes = held_bytes
        self._note_progress(connection, unfinished_bytes, now_ms)
        is_favoured = connection is self._favoured
        if self.used_bytes <= self._limit_bytes:
            if self._favoured is not None:
                self._favoured = None
                self._feed_all()
        elif is_favoured and unfinished_bytes <= SMALL_READ:
            self._favoured = None
            self._favour_next(now_ms)
        elif not is_favoured and unfinished_bytes > SMALL_READ:
            if self._favoured is None:
                self._favour(connection, now_ms)
            elif _is_ordinary(connection) and self._may_be_interrupted:
                self._interrupt_for(connection, now_ms)
            else:
                self._starve(connection)

    def forget(self, connection: T, now_ms: float) -> None:
        """It is gone."""
        self._starved.pop(connection.id, None)
        self._passed_over.pop(connection.id, None)
        if connection is self._interrupted:
            self._interrupted = None
        self.note(connection, 0, 0, now_ms)

    def look(self, now_ms: float) -> list[T]:
        """Pass over a favoured one that does not get on while others would; who is to be closed, for the same."""
        favoured = self._favoured
        if favoured is None or self._silence_ms(favoured, now_ms) < SILENT_MS or favoured.has_said_more:
            return []
        speaker = self._first_to_speak()
        if speaker is None:
            return []
        if _is_ordinary(speaker) and self._may_be_interrupted:
            self._interrupt_for(speaker, now_ms)
            return []
        too_much_bytes = self._silent_bytes(favoured) - PASSED_OVER_BYTES
        if too_much_bytes > 0:
            # Only in exchange for as much.
            back = [each for each in self._passed_over.values() if each.counted_bytes >= too_much_bytes]
            speaker = next((each for each in back if each.has_said_more), None)
        if speaker is not None:
            self._holders[favoured.id][1].turns_in_vain += 1
            self._starve(favoured)
            self._passed_over[favoured.id] = favoured
            self._favour(speaker, now_ms)
            return []
        return [each for each, progress in self._holders.values() if self._is_stuck(each, progress, now_ms)]

    def _note_progress(self, connection: T, unfinished_bytes: int, now_ms: float) -> None:
        if unfinished_bytes <= SMALL_READ:
            self._holders.pop(connection.id, None)
            return
        held = self._holders.get(connection.id)
        if held is None:
            held = self._holders[connection.id] = (connection, _Progress())
        progress = held[1]
        if not 0 <= unfinished_bytes - progress.size_bytes < SMALL_READ:
            progress.size_bytes, progress.when_ms, progress.turns_in_vain = unfinished_bytes, now_ms, 0

    def _is_stuck(self, connection: T, progress: _Progress, now_ms: float) -> bool:
        if self._silence_ms(connection, now_ms) <= MOST_PATIENCE_MS or not connection.may_be_read:
            return False
        return not connection.has_said_more or progress.turns_in_vain >= MOST_TURNS_IN_VAIN

    def _silent_bytes(self, favoured: T) -> int:
        """What the favoured one and those who were passed over hold, with frames of its kind."""
        is_ordinary = _is_ordinary(favoured)
        passed_over = (each for each in self._passed_over.values() if _is_ordinary(each) == is_ordinary)
        return favoured.counted_bytes + sum(each.counted_bytes for each in passed_over)

    def _silence_ms(self, connection: T, now_ms: float) -> float:
        """It could not be heard before it was favoured."""
        since_ms = self._favoured_since_ms if connection is self._favoured else 0.0
        held = self._holders.get(connection.id)
        return now_ms - max(since_ms, now_ms if held is None else held[1].when_ms)

    def _favour_next(self, now_ms: float) -> None:
        following = self._first_to_speak() or self._interrupted or next(iter(self._starved.values()), None)
        if following is not None:
            self._favour(following, now_ms)

    def _first_to_speak(self) -> T | None:
        """Of the starved, in their order, ordinary frames first. The silent ones it meets queue again."""
        for connection in list(self._in_order()):
            if connection.has_said_more:
                return connection
            if connection is not self._interrupted:
                self._starved[connection.id] = self._starved.pop(connection.id)
        return None

    def _in_order(self) -> Iterator[T]:
        """Whoever may be favoured next. Where a large one was interrupted, no other large one."""
        yield from (each for each in self._starved.values() if _is_ordinary(each))
        if self._interrupted is not None:
            yield self._interrupted
        else:
            yield from (each for each in self._starved.values() if not _is_ordinary(each))

    @property
    def _may_be_interrupted(self) -> bool:
        return self._interrupted is None and self._favoured is not None and not _is_ordinary(self._favoured)

    def _interrupt_for(self, connection: T, now_ms: float) -> None:
        assert self._favoured is not None
        self._interrupted = self._favoured
        self._starve(self._favoured)
        self._favour(connection, now_ms)

    def _favour(self, connection: T, now_ms: float) -> None:
        self._favoured, self._favoured_since_ms = connection, now_ms
        if connection is self._interrupted:
            self._interrupted = None
        self._passed_over.pop(connection.id, None)
        if self._starved.pop(connection.id, None) is not None:
            self._on_change(connection)

    def _starve(self, connection: T) -> None:
        self._starved[connection.id] = connection
        self._on_change(connection)

    def _feed_all(self) -> None:
        fed, self._starved = self._starved, {}
        self._passed_over.clear()
        self._interrupted = None
        for connection in fed.values():
            self._on_change(connection)


def _is_ordinary(connection: Holder) -> bool:
    """Other nodes answer what we asked for, and no more than that."""
    return connection.id < 0 or connection.frame_bytes <= ORDINARY_BYTES
