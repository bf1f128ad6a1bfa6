"""A controller's decision becomes an answer once its records are committed and this broker's image holds them."""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from klamm.broker.answer import Answer, Applied, Later, Reply
from klamm.broker.call import Call
from klamm.errors import ErrorCode, KafkaError
from klamm.ids import Now
from klamm.machine import Decision
from klamm.metadata.records import MetadataRecord

LEAST_WAITING_MS = 1_000
"""A client that allows no time at all still gets the truth if it is to be had quickly."""


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
    outcome = decision.response
    if not decision.records:
        return Reply(response(outcome))
    try:
        offset = call.broker.propose(decision.records, call.now)
    except KafkaError as error:
        _mark(outcome, error.code, error.message)
        return Reply(response(outcome))

    def then(now: Now, in_time: bool) -> object:
        if not in_time:
            _mark(outcome, ErrorCode.REQUEST_TIMED_OUT, "The metadata log did not commit this in time.")
        return response(outcome)

    return Later(Applied(offset), call.now.monotonic_ms + max(timeout_ms, LEAST_WAITING_MS), then)


def _mark(outcome: Sequence[Outcome], code: ErrorCode, message: str | None) -> None:
    for item in outcome:
        if not item.error:
            item.error = code
            item.message = message
