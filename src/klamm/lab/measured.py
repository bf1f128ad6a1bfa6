"""What an experiment measured, and what follows from it.

Figures first; the claims are computed from the figures and from nothing else. So a claim can be wrong, which a test
shows with figures that never were; and whoever doubts one can look at the figures it rests on.
"""

from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from rich.text import Text


class Claim(NamedTuple):
    text: str
    holds: bool


@dataclass(frozen=True, slots=True)
class Measured(ABC):
    @abstractmethod
    def claims(self) -> list[Claim]:
        """What should be so, and whether these figures say that it is."""

    @abstractmethod
    def pictures(self) -> "list[Text]":
        """What happened, drawn."""

    @abstractmethod
    def lesson(self) -> str:
        """What it means, in two or three sentences."""

    @abstractmethod
    def result(self) -> str:
        """The figures that count, in a line."""

    @property
    def holds(self) -> bool:
        return all(claim.holds for claim in self.claims())

    def document(self) -> dict[str, Any]:
        return asdict(self)
