"""What must survive is replayed: decide on values, write records, change state only when a record is replayed.

Controller and coordinators answer a wish with a `Decision`. Its records go to a replicated log; `replay` is the only
place where their state changes, so loading after a failover and running live are the same code. The response leaves
once the records are committed.
"""

from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

Record = TypeVar("Record")
Response = TypeVar("Response")
Replayed = TypeVar("Replayed", contravariant=True)
Result = TypeVar("Result")


@dataclass(slots=True)
class Decision(Generic[Record, Response]):
    """Records to be committed, and the response that is true once they are. Without records it is true already."""

    response: Response
    records: list[Record] = field(default_factory=list)


@dataclass(slots=True)
class Piece(Generic[Record]):
    """Some of the records of a plan."""

    records: list[Record] = field(default_factory=list)
    ends_batch: bool = True
    """Whether they are one batch of the log, with those that came before and did not end one."""
    is_void: bool = False
    """Whether what came before and did not end a batch is not to be."""
    is_last: bool = False


class Plan(Generic[Record, Response]):
    """A decision in pieces, for what may concern every partition there is.

    Each piece is decided on the state as it is by then: whoever carries the plan out has the records of a batch that is
    complete committed, replays them, and lets others have their turn before it takes the next piece. So a plan checks
    again what it relies on after each piece.
    """

    def __init__(self, pieces: Generator[Piece[Record], None, Response]) -> None:
        self._pieces = pieces
        self._response: Response
        self._records: list[Record] | None = None

    def next_piece(self) -> Piece[Record] | None:
        """None when the plan has ended, and its response is there."""
        try:
            return next(self._pieces)
        except StopIteration as end:
            self._response = end.value
            return None

    def close(self) -> None:
        """The rest is not wanted."""
        self._pieces.close()

    @property
    def records(self) -> list[Record]:
        """All of them, decided at once."""
        if self._records is None:
            self._records = []
            while (piece := self.next_piece()) is not None:
                self._records = [] if piece.is_void else self._records + piece.records
            self._pieces = _at_once(self._records, self._response)
        return self._records

    @property
    def response(self) -> Response:
        """Of a plan that has ended, or that ends at once."""
        if not hasattr(self, "_response"):
            assert self.records is not None
        return self._response


def in_one_piece(decision: Decision[Record, Response]) -> Plan[Record, Response]:
    return Plan(_at_once(decision.records, decision.response))


def _at_once(records: list[Record], response: Response) -> Generator[Piece[Record], None, Response]:
    if records:
        yield Piece(records, is_last=True)
    return response


class Machine(Protocol[Replayed]):
    def replay(self, record: Replayed) -> None: ...


def completed(work: Generator[Any, None, Result]) -> Result:
    """The result of work that may be done in slices, done at once."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            result: Result = end.value
            return result
