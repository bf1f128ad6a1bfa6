"""Producer ids in stock: taken from the controller in blocks, handed out one by one, never twice."""

from klamm.ids import Offset, ProducerId


class ProducerIds:
    __slots__ = ("_granted", "_stock", "pending")

    def __init__(self) -> None:
        self._stock: range = range(0)
        self._granted: tuple[Offset, range] | None = None
        self.pending: Offset | None = None
        """The metadata offset that the next block waits for."""

    def next_id(self) -> ProducerId | None:
        """The next id, or None if a block has to be taken first."""
        if not self._stock:
            return None
        taken = self._stock[0]
        self._stock = self._stock[1:]
        return taken

    def grant(self, block: range, offset: Offset) -> None:
        """The controller gave us a block; it is ours once the record at `offset` is committed."""
        self._granted = (offset, block)
        self.pending = offset

    def forget_granted(self) -> None:
        """The record will not be committed."""
        self._granted = self.pending = None

    def applied(self, offset: Offset) -> None:
        if self._granted is not None and offset >= self._granted[0]:
            self._stock = self._granted[1]
            self._granted = self.pending = None
