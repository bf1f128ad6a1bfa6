"""A response that is made in slices where it is long, and at once where it is not, by the same code."""

from collections.abc import Generator
from typing import Any

from klamm.broker.answer import Answer, Finished, Later, Reply
from klamm.broker.slices import Work
from klamm.ids import Now


def answer(making: Generator[None, Now, Any], *, is_long: bool, now: Now) -> Answer:
    """`making` yields where a slice may end, and returns the response."""
    if not is_long:
        return Reply(made(making))
    response: list[object] = []

    def work() -> Work:
        response.append((yield from making))

    return Later(Finished(work()), now.monotonic_ms, lambda now, in_time: response[0])


def made(making: Generator[None, Now, Any]) -> Any:
    """All of it in one go."""
    while True:
        try:
            next(making)
        except StopIteration as end:
            return end.value
