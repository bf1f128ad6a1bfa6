"""A fetch of very many partitions: what `fetch.py` does, in slices, so that nobody else has to wait for it.

It looks once at everything it is about. If there is too little, it waits until something changes or its time is over,
looks again, and answers whatever it found. So it may be answered a little early, with less than `min_bytes`.
"""

from collections.abc import Callable, Iterable
from itertools import islice
from typing import TypeAlias

from klamm.broker.answer import Changed, Finished, Later, Wait
from klamm.broker.call import Call
from klamm.broker.sessions import FIRST_EPOCH, Key, Position, Session
from klamm.broker.slices import Work
from klamm.broker.speaker import Unconfirmed
from klamm.errors import ErrorCode, KafkaError
from klamm.handlers.fetch_answer import FetchAnswer, Found
from klamm.ids import Now
from klamm.wire.messages.fetch import FetchRequest, FetchResponse
from klamm.wire.parts import parts

SLICE_PARTITIONS = 300

Understood: TypeAlias = Callable[[FetchRequest, Call], FetchAnswer]


def is_large(request: FetchRequest) -> bool:
    named = sum([len(topic.partitions) for topic in request.topics])
    return named + len(request.topics) + len(request.forgotten_topics_data) > SLICE_PARTITIONS


class LargeFetch:
    """One such fetch. `understood` makes an answer of a request that names few partitions."""

    def __init__(
        self,
        request: FetchRequest,
        call: Call,
        positions: Callable[[FetchRequest], Iterable[Position]],
        forgotten: Callable[[FetchRequest], Iterable[Key]],
        refused: Callable[[FetchRequest, int, ErrorCode], FetchResponse],
    ) -> None:
        self._request = request
        self._call = call
        self._positions = positions
        self._forgotten = forgotten
        self._refused = refused
        self._response: FetchResponse | None = None

    def read(self, understood: Understood) -> Later:
        return self._later(self._read(understood))

    def look(self, fetch: FetchAnswer) -> Later:
        """Of a fetch that is short, but whose session is not."""
        return self._later(self._look(fetch))

    def _later(self, work: Work) -> Later:
        def then(now: Now, in_time: bool) -> FetchResponse:
            assert self._response is not None, "the work has ended"
            return self._response

        return Later(Finished(work), self._call.now.monotonic_ms, then)

    def _read(self, understood: Understood) -> Work:
        request = self._request
        without = {field: getattr(request, field) for field in FetchRequest.__match_args__}
        without["forgotten_topics_data"] = []
        fetch: FetchAnswer | None = None
        try:
            for part in parts(FetchRequest(**without), SLICE_PARTITIONS):
                if fetch is None:
                    fetch = understood(part, self._call)
                else:
                    self._take(fetch, part)
                yield None
            assert fetch is not None, "there is one part at least"
            forgotten = iter(self._forgotten(request))
            while keys := list(islice(forgotten, SLICE_PARTITIONS)):
                if fetch.session is not None:
                    self._call.broker.sessions.update(self._open(fetch.session), (), keys)
                yield None
        except Unconfirmed:
            # It was confirmed when the fetch came: its broker has been registered anew since.
            self._response = self._refused(request, self._call.version, ErrorCode.STALE_BROKER_EPOCH)
            return
        except KafkaError as error:
            self._response = self._refused(request, self._call.version, error.code)
            return
        yield from self._look(fetch)

    def _take(self, fetch: FetchAnswer, part: FetchRequest) -> None:
        positions = list(self._positions(part))
        fetch.positions += positions
        if fetch.session is not None:
            try:
                self._call.broker.sessions.update(self._open(fetch.session), positions, ())
            except KafkaError:
                if self._request.session_epoch != FIRST_EPOCH:
                    raise
                # There is no room for so large a session: it is served without one.
                fetch.session = None
        fetch.note_positions(part)

    def _open(self, session: Session) -> Session:
        if not session.is_open:
            raise KafkaError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        return session

    def _look(self, fetch: FetchAnswer) -> Work:
        found = Found(fetch.max_bytes)
        yield from _look_at_all(fetch, found)
        if not fetch.is_enough(found):
            # A change of anything is reason enough to look at everything again.
            until = Changed(fetch.subjects(), lambda: True)
            yield Wait(until, self._call.now.monotonic_ms + self._request.max_wait_ms)
            found = Found(fetch.max_bytes)
            yield from _look_at_all(fetch, found)
        self._response = fetch.told(found)


def _look_at_all(fetch: FetchAnswer, found: Found) -> Work:
    candidates = fetch.candidates()
    for first in range(0, len(candidates), SLICE_PARTITIONS):
        fetch.look(candidates[first : first + SLICE_PARTITIONS], found)
        yield None
