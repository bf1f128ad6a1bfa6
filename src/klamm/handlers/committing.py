"""A controller's decision becomes an answer once its records are committed and this broker's image holds them."""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias, TypeVar

from klamm.broker.answer import Answer, Applied, Later, Reply
from klamm.broker.call import Call
from klamm.errors import ErrorCode, KafkaError
from klamm.ids import Now
from klamm.machine import Decision
from klamm.metadata.records import MetadataRecord

LEAST_WAITING_MS = 1_000
"""A client that allows no time at all still gets the truth if it is to be had quickly."""

BROKERS_WAITING_MS = 30_000
"""Brokers do not say how long they wait."""

Respond: TypeAlias = Callable[[ErrorCode, str | None], object]


class Outcome(Protocol):
    """What became of one item of a request."""

    error: ErrorCode
    message: str | None


Item = TypeVar("Item", bound=Outcome)


def when_committed(
    call: Call,
    decision: Decision[MetadataRecord, list[Item]],
    timeout_ms: int,
    response: Callable[[list[Item]], object],
) -> Answer:
    """`response` of the outcome once it is true. If it cannot become true, or not in time, every item says so that had
    no error of its own."""

    def respond(code: ErrorCode, message: str | None) -> object:
        if code:
            _mark(decision.response, code, message)
        return response(decision.response)

    return once_committed(call, decision.records, timeout_ms, respond)


def once_committed(call: Call, records: Sequence[MetadataRecord], timeout_ms: int, respond: Respond) -> Answer:
    """`respond` without an error once the records are committed, or with what kept them from it."""
    if not records:
        return Reply(respond(ErrorCode.NONE, None))
    try:
        offset = call.broker.propose(records, call.now)
    except KafkaError as error:
        return Reply(respond(error.code, error.message))

    def then(now: Now, in_time: bool) -> object:
        if in_time:
            return respond(ErrorCode.NONE, None)
        return respond(ErrorCode.REQUEST_TIMED_OUT, "The metadata log did not commit this in time.")

    return Later(Applied(offset), call.now.monotonic_ms + max(timeout_ms, LEAST_WAITING_MS), then)


def _mark(outcome: Sequence[Outcome], code: ErrorCode, message: str | None) -> None:
    for item in outcome:
        if not item.error:
            item.error = code
            item.message = message
