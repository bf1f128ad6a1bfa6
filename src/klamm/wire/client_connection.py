"""A connection of ours to another node: requests leave in order, and answers come back in the same order.

Each request has its correlation id and somebody who wants the answer. What may leave is collected in `outgoing` until
the step ends. An answer that does not fit what was asked is Malformed, and nothing after it can be believed.
"""

from collections import deque
from collections.abc import Callable
from typing import Any

from klamm.codec.compiler import decode_from
from klamm.codec.primitives import Malformed
from klamm.wire.apis import API_BY_KEY, response_type
from klamm.wire.frames import encoded_request
from klamm.wire.headers import NO_TAGS, read_response_header

ELEMENTS = 1_048_576
"""At most so many array elements in one answer: of our own kind, but bytes can be damaged on their way."""


class Asked:
    """A request under way. `then` is told the answer, or None if there will be none."""

    __slots__ = ("answer_type", "api", "correlation_id", "deadline_ms", "then", "version")

    def __init__(
        self,
        api: int,
        version: int,
        correlation_id: int,
        deadline_ms: float,
        then: Callable[[Any, Any], None],
        answer_type: type[Any],
    ) -> None:
        self.api = api
        self.version = version
        self.correlation_id = correlation_id
        self.deadline_ms = deadline_ms
        self.then = then
        self.answer_type = answer_type


class ClientConnection:
    __slots__ = ("_claim", "_client_id", "_next_correlation_id", "asked", "id", "is_open", "outgoing", "touched")

    def __init__(self, identity: int, client_id: str, claim: bytes = NO_TAGS) -> None:
        """`claim` is a request header's tags, told once, with the first request."""
        self.id = identity
        self._claim = claim
        self.is_open = False
        self.asked: deque[Asked] = deque()
        self.outgoing: list[object] = []
        self.touched = False
        self._client_id = client_id
        self._next_correlation_id = 0

    def ask(
        self,
        api: int,
        version: int,
        request: object,
        deadline_ms: float,
        then: Callable[[Any, Any], None],
        answer_type: type[Any] | None = None,
        tags: bytes = NO_TAGS,
    ) -> None:
        if self._claim is not NO_TAGS:
            tags, self._claim = self._claim, NO_TAGS
        number = self._next_correlation_id
        self._next_correlation_id = (number + 1) & 0x7FFF_FFFF
        self.outgoing += encoded_request(API_BY_KEY[api], version, number, self._client_id, request, tags)
        self.asked.append(Asked(api, version, number, deadline_ms, then, answer_type or response_type(api)))

    def answered(self, frame: memoryview) -> tuple[Asked, Any]:
        """What was asked first, and the answer to it. Views in it are valid as long as the frame is."""
        if not self.asked:
            raise Malformed("an answer to nothing that was asked")
        asked = self.asked[0]
        correlation_id, position = read_response_header(API_BY_KEY[asked.api], asked.version, frame)
        if correlation_id != asked.correlation_id:
            raise Malformed(f"an answer to request {correlation_id}, where {asked.correlation_id} is due")
        response, _ = decode_from(asked.answer_type, asked.version, frame, position, budget=ELEMENTS)
        self.asked.popleft()
        return asked, response

    def take_outgoing(self) -> list[object]:
        outgoing, self.outgoing = self.outgoing, []
        return outgoing
