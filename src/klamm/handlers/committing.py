"""A controller's decision becomes an answer once its records are committed and this broker's image holds them."""

from collections.abc import Callable, Generator, Sequence
from typing import Generic, Protocol, TypeVar

from klamm.broker.answer import Answer, Applied, Changed, Finished, Later, Reply, Wait
from klamm.broker.call import Call
from klamm.broker.lane import Turn
from klamm.broker.slices import Work
from klamm.errors import ErrorCode, KafkaError
from klamm.handlers.long_answer import made
from klamm.ids import Now, Offset
from klamm.machine import Plan
from klamm.metadata.records import MetadataRecord

LEAST_WAITING_MS = 1_000
"""A client that allows no time at all still gets the truth if it is to be had quickly."""

BROKERS_WAITING_MS = 30_000
"""Brokers do not say how long they wait."""

DECIDING_MS = 24 * 3_600_000.0
"""Deciding ends by itself, or with the connection."""


class Outcome(Protocol):
    """What became of one item of a request."""

    error: ErrorCode
    message: str | None


Item = TypeVar("Item", bound=Outcome)
Response = TypeVar("Response")


def when_committed(
    call: Call,
    plan: Plan[MetadataRecord, list[Item]],
    timeout_ms: int,
    response: Callable[[list[Item]], object],
    *,
    is_users: bool = False,
    refused: Callable[[ErrorCode], object] | None = None,
) -> Answer:
    """`response` of the outcome once it is true. If it cannot become true, or not in time, every item says so that had
    no error of its own. `refused` is the response if the plan is refused as a whole, where that can be."""

    def respond(outcome: list[Item] | None, code: ErrorCode, message: str | None) -> object:
        if outcome is None:
            assert refused is not None, "such a plan is not refused as a whole"
            return refused(code)
        if code:
            _mark(outcome, code, message)
        return response(outcome)

    return once_committed(call, plan, timeout_ms, respond, is_users=is_users)


def once_committed(
    call: Call,
    plan: Plan[MetadataRecord, Response],
    timeout_ms: int,
    respond: Callable[[Response | None, ErrorCode, str | None], object],
    *,
    is_users: bool = False,
) -> Answer:
    """`respond` without an error once the plan is carried out and its records are committed, or with what kept them
    from it; without an outcome if the plan itself was refused. A plan that is in one piece is carried out at once. One
    that is a user's waits for those of users that came before it. A response that is long may be a generator, which
    pauses and returns it in the end."""
    carrying = _Carrying(call, plan, timeout_ms, respond)
    if is_users and not call.broker.users.is_free:
        return carrying.later(carrying.in_turn())
    deciding = carrying.decide(call.now)
    try:
        next(deciding)
    except StopIteration:
        return carrying.answer_at_once()
    rest = carrying.rest(deciding)
    return carrying.later(carrying.in_turn(rest) if is_users else rest)


class _Carrying(Generic[Response]):
    """A plan under way, and what is answered in the end."""

    def __init__(
        self,
        call: Call,
        plan: Plan[MetadataRecord, Response],
        timeout_ms: int,
        respond: Callable[[Response | None, ErrorCode, str | None], object],
    ) -> None:
        self._broker = call.broker
        self._carry_out = call.broker.carry_out(plan)
        self._respond = respond
        self._deadline_ms = call.now.monotonic_ms + max(timeout_ms, LEAST_WAITING_MS)
        self._outcome: Response | None = None
        self._offset: Offset | None = None
        self._refusal: KafkaError | None = None
        self._response: object = None

    def decide(self, now: Now) -> Work:
        try:
            self._outcome, self._offset, self._refusal = yield from self._carry_out(now)
        except KafkaError as error:
            self._refusal = error

    def answer_at_once(self) -> Answer:
        if self._refusal is None and self._offset is not None:
            return Later(Applied(self._offset), self._deadline_ms, self._when_applied)
        return Reply(self._settled(in_time=True))

    def later(self, work: Work) -> Later:
        return Later(Finished(work), self._deadline_ms + DECIDING_MS, lambda now, in_time: self._response)

    def in_turn(self, rest: "Work | None" = None) -> Work:
        """When those have been decided that came before."""
        work = self._in_turn(self._broker.users.enter(), rest)
        # It is begun, so that its turn ends also if nobody waits for it any more before it comes.
        next(work)
        return work

    def _in_turn(self, turn: Turn, rest: "Work | None") -> Work:
        try:
            yield None
            now = yield None
            if not turn.has_come:
                now = yield Wait(Changed([turn], lambda: turn.has_come), self._deadline_ms + DECIDING_MS)
            if rest is None:
                deciding = self.decide(now)
                yield from deciding
            else:
                yield from rest
        finally:
            following = turn.end()
            if following is not None:
                self._broker.waiting.changed(following)
        if rest is None:
            yield from self._finish()

    def rest(self, deciding: Work) -> Work:
        """Of what has been begun."""
        now = yield None
        while True:
            try:
                deciding.send(now)
            except StopIteration:
                break
            now = yield None
        yield from self._finish()

    def _finish(self) -> Work:
        is_true = True
        if self._refusal is None and self._offset is not None:
            yield Wait(Applied(self._offset), self._deadline_ms)
            is_true = self._broker.image.offset >= self._offset
        response = self._response_of(in_time=is_true)
        if isinstance(response, Generator):
            response = yield from response
        self._response = response

    def _when_applied(self, now: Now, in_time: bool) -> object:
        return self._settled(in_time=in_time)

    def _settled(self, *, in_time: bool) -> object:
        response = self._response_of(in_time=in_time)
        return made(response) if isinstance(response, Generator) else response

    def _response_of(self, *, in_time: bool) -> object:
        if self._refusal is not None:
            return self._respond(self._outcome, self._refusal.code, self._refusal.message)
        if in_time:
            return self._respond(self._outcome, ErrorCode.NONE, None)
        reason = "The metadata log did not commit this in time."
        return self._respond(self._outcome, ErrorCode.REQUEST_TIMED_OUT, reason)


def _mark(outcome: Sequence[Outcome], code: ErrorCode, message: str | None) -> None:
    for item in outcome:
        if not item.error:
            item.error = code
            item.message = message
