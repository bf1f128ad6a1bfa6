"""Producer ids in stock: taken from the controller in blocks, handed out one by one, never twice."""

from klamm.errors import ErrorCode
from klamm.ids import ProducerId


class ProducerIds:
    __slots__ = ("_stock", "is_asked_for", "refusal")

    def __init__(self) -> None:
        self._stock: range = range(0)
        self.is_asked_for = False
        """Whether a block is on its way."""
        self.refusal: ErrorCode | None = None
        """Why the last one did not come."""

    def next_id(self) -> ProducerId | None:
        """The next id, or None if a block has to be taken first."""
        if not self._stock:
            return None
        taken = self._stock[0]
        self._stock = self._stock[1:]
        return taken

    @property
    def is_settled(self) -> bool:
        """Whether there are ids, or it is known that there will be none for now."""
        return bool(self._stock) or not self.is_asked_for

    def grant(self, block: range) -> None:
        """The controller gave us a block. What was left of the one before is given up."""
        self._stock = block
        self.is_asked_for = False
        self.refusal = None

    def refuse(self, code: ErrorCode) -> None:
        self.is_asked_for = False
        self.refusal = code
