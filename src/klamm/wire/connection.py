"""One client's connection as the node sees it: replies leave in the order the requests came.

A request that has to wait takes a place in the queue; replies that are ready behind it wait with it. What may leave is
collected in `outgoing` until the step ends, so that one step makes at most one send.
"""

from collections import deque
from typing import Any


class Place:
    """A request's place in the queue of replies."""

    __slots__ = ("api", "correlation_id", "pieces", "version")

    def __init__(self, api: int, version: int, correlation_id: int) -> None:
        self.api = api
        self.version = version
        self.correlation_id = correlation_id
        self.pieces: list[object] | None = None


class ServerConnection:
    __slots__ = (
        "awaits_service",
        "awaits_speaker",
        "closing",
        "drained",
        "gives_back",
        "id",
        "is_busy",
        "is_gone",
        "left",
        "outgoing",
        "outgoing_bytes",
        "paused",
        "peer",
        "queue",
        "queued_bytes",
        "speaker",
        "touched",
    )

    def __init__(self, identity: int, peer: str) -> None:
        self.id = identity
        self.peer = peer
        self.queue: deque[Place] = deque()
        self.queued_bytes = 0
        """Of replies that are ready and wait behind one that is not."""
        self.outgoing: list[object] = []
        self.outgoing_bytes = 0
        self.touched = False
        self.closing = False
        self.paused = False
        self.speaker: Any = None
        """The broker that it says it is (`broker/speaker.py`), if it says so."""
        self.awaits_speaker = False
        self.awaits_service = False
        """Whether the next request is not taken before this node serves clients."""
        """Whether the next request is not taken before we know whether that is true."""
        self.drained = True
        self.gives_back = False
        """Its last request was not handled and is to be offered again."""
        self.is_gone = False
        self.is_busy = False
        """A request of it is worked on in slices; what comes behind it must not overtake it."""
        self.left: int | None = None
        """How many requests of this step were not taken, if it has to be paused."""

    def reply(self, pieces: list[object]) -> None:
        """A reply that is ready at once: it leaves now, or right after those it has to wait for."""
        if not self.queue:
            self._let_go(pieces)
            return
        place = Place(0, 0, 0)
        place.pieces = pieces
        self.queue.append(place)
        self.queued_bytes += _size(pieces)

    def wait(self, place: Place) -> None:
        self.queue.append(place)

    def withdraw(self, place: Place) -> None:
        """Nothing is said to the request that waits here, the last one that was taken."""
        assert self.queue[-1] is place
        self.queue.pop()

    def ready(self, place: Place, pieces: list[object]) -> None:
        """A reply that was waited for; it and all that are ready behind it may leave once it is at the head."""
        place.pieces = pieces
        self.queued_bytes += _size(pieces)
        queue = self.queue
        while queue:
            ready = queue[0].pieces
            if ready is None:
                return
            queue.popleft()
            self.queued_bytes -= _size(ready)
            self._let_go(ready)

    def take_outgoing(self) -> list[object]:
        outgoing, self.outgoing = self.outgoing, []
        self.outgoing_bytes = 0
        return outgoing

    def _let_go(self, pieces: list[object]) -> None:
        self.outgoing += pieces
        self.outgoing_bytes += _size(pieces)


def _size(pieces: list[object]) -> int:
    """A reply begins with its size."""
    return int.from_bytes(pieces[0][:4], "big")  # type: ignore[index]
