"""A request with very many elements: read, handled and answered in slices, so that no step is long.

A frame of a mebibyte may name a hundred thousand things, and each costs microseconds. Its handler would hold everybody
up; so it is read in slices, cut into parts that are handled one a slice, as if they had come one after the other, and
the answers are joined and written in slices. APIs whose elements belong together, or that know better how to go about
it, get the whole request; they may answer with work of their own (`Finished`).
"""

from collections.abc import Callable, Generator
from typing import Any, TypeAlias

from klamm.broker.answer import Again, Answer, Changed, Elsewhere, Finished, Later, Reply, Silence, Wait
from klamm.broker.call import Call
from klamm.broker.slices import Work
from klamm.broker.speaker import Unconfirmed
from klamm.broker.waiting import Waiter, Waiting
from klamm.handlers import Handler
from klamm.ids import Now
from klamm.wire.apis import (
    CONSUMER_GROUP_DESCRIBE,
    DELETE_GROUPS,
    DELETE_RECORDS,
    DESCRIBE_GROUPS,
    DESCRIBE_LOG_DIRS,
    FIND_COORDINATOR,
    LEAVE_GROUP,
    LIST_OFFSETS,
    METADATA,
    OFFSET_COMMIT,
    OFFSET_DELETE,
    OFFSET_FETCH,
    OFFSET_FOR_LEADER_EPOCH,
    PRODUCE,
    Api,
)
from klamm.wire.frames import encoded_response_in_slices
from klamm.wire.parts import joined, parts

LARGE_BYTES = 16 << 10
"""Shorter frames have no room for so many elements that a step would be long."""

IN_PARTS = {
    PRODUCE: 500,
    LIST_OFFSETS: 500,
    METADATA: 500,
    OFFSET_COMMIT: 500,
    OFFSET_FETCH: 500,
    FIND_COORDINATOR: 500,
    LEAVE_GROUP: 500,
    DESCRIBE_GROUPS: 500,
    DELETE_RECORDS: 500,
    OFFSET_FOR_LEADER_EPOCH: 500,
    DESCRIBE_LOG_DIRS: 500,
    DELETE_GROUPS: 200,
    OFFSET_DELETE: 1_000,
    CONSUMER_GROUP_DESCRIBE: 500,
}
"""APIs whose elements have nothing to do with one another, and how many of them are handled at once."""

QUESTIONS = frozenset(
    {
        METADATA,
        OFFSET_FETCH,
        FIND_COORDINATOR,
        DESCRIBE_GROUPS,
        DELETE_GROUPS,
        CONSUMER_GROUP_DESCRIBE,
    }
)
"""Here an element that is there twice is answered once."""

Confirm: TypeAlias = Callable[[Unconfirmed, Now], Wait]
"""Begin to find out who speaks, and what to wait for meanwhile."""

GRACE_MS = 1_000.0
"""Those who wait for something say themselves when it is too late."""


class LargeRequest:
    """How one request is answered. `pieces` is its answer's frame when the work has ended, or None if nobody wants
    one, or somebody else has to be asked (`is_elsewhere`)."""

    def __init__(
        self,
        api: Api,
        version: int,
        correlation_id: int,
        handle: Handler,
        call: Callable[[Now], Call],
        connection: int,
        waiting: Waiting,
        confirm: Confirm | None,
    ) -> None:
        """`confirm` finds out who speaks on the connection; None where nobody speaks for a broker."""
        self._api = api
        self._version = version
        self._correlation_id = correlation_id
        self._handle = handle
        self._call = call
        self._connection = connection
        self._waiting = waiting
        self._confirm = confirm
        self._responses: list[Any] = []
        self._open = 0
        self._deadline_ms = 0.0
        self._error: Exception | None = None
        self.pieces: list[Any] | None = None
        self.is_elsewhere = False
        self.closes = False

    def read(self, reading: Generator[None, Any, tuple[Any, int]]) -> Work:
        """Read it, from bytes that stay, then handle and answer it."""
        request, _ = yield from reading
        now = yield None
        most = IN_PARTS.get(self._api.key)
        if most is None:
            yield from self._take_part(request, now)
        else:
            for part in parts(request, most, distinct=self._api.key in QUESTIONS):
                if part is not None:
                    yield from self._take_part(part, now)
                now = yield None
        yield from self._answer()

    def finish(self, later: Later, now: Now) -> Work:
        """Answer with what its handler's own work comes to."""
        yield from self._take(later, now)
        yield from self._answer()

    def _take_part(self, request: Any, now: Now) -> Work:
        while True:
            try:
                answer = self._handle(request, self._call(now))
                if not isinstance(answer, Again):
                    break
                now = yield None
            except Unconfirmed as unconfirmed:
                if self._confirm is None:
                    raise
                now = yield self._confirm(unconfirmed, now)
        yield from self._take(answer, now)

    def _take(self, answer: Answer, now: Now) -> Work:
        if isinstance(answer, Reply):
            self._responses.append(answer.response)
        elif isinstance(answer, Silence):
            self.closes = self.closes or answer.close
        elif isinstance(answer, Elsewhere):
            assert self._api.key not in IN_PARTS, "a part of a request cannot be passed on"
            self.is_elsewhere = True
        elif isinstance(answer, Again):
            raise AssertionError("it was asked again until there was room")
        elif isinstance(answer.until, Finished):
            yield from answer.until.work
            now = yield None
            response = answer.then(now, True)
            if isinstance(response, Later):
                self._wait(response)
            elif isinstance(response, Silence):
                self.closes = self.closes or response.close
            else:
                self._responses.append(response)
        else:
            self._wait(answer)

    def _wait(self, later: Later) -> None:
        place = len(self._responses)
        self._responses.append(None)
        self._open += 1
        self._deadline_ms = max(self._deadline_ms, later.deadline_ms)

        def deliver(now: Now, in_time: bool) -> None:
            try:
                self._responses[place] = later.then(now, in_time)
            except AssertionError:
                raise
            except Exception as error:
                self._error = error
            self._open -= 1
            self._waiting.changed(self)

        self._waiting.add(Waiter(later, self._connection, deliver), later.deadline_ms)

    def _answer(self) -> Work:
        if self._open:
            yield Wait(Changed([self], lambda: not self._open), self._deadline_ms + GRACE_MS)
        if self._error is not None:
            raise self._error
        if self._responses and not self.is_elsewhere:
            yield None
            response = joined(self._responses)
            self.pieces = yield from encoded_response_in_slices(
                self._api, self._version, self._correlation_id, response
            )
