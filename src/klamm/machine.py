"""What must survive is replayed: decide on values, write records, change state only when a record is replayed.

Controller and coordinators answer a wish with a `Decision`. Its records go to a replicated log; `replay` is the only
place where their state changes, so loading after a failover and running live are the same code. The response leaves
once the records are committed.
"""

from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

Record = TypeVar("Record")
Response = TypeVar("Response")
Replayed = TypeVar("Replayed", contravariant=True)


@dataclass(slots=True)
class Decision(Generic[Record, Response]):
    """Records to be committed, and the response that is true once they are. Without records it is true already."""

    response: Response
    records: list[Record] = field(default_factory=list)


class Machine(Protocol[Replayed]):
    def replay(self, record: Replayed) -> None: ...
