"""Brokers whose process was found dead, for the moments until the controller has drawn its conclusions.

A client that loses its connection to a leader asks the next broker within a millisecond who leads now. If it hears the
old name it dials that again, and waits, for a second or two, before it asks once more. If it hears that there is no
leader it asks again soon. So whoever knows that a broker is gone does not name it, for as long as the controller may
take; after that, what the image says is the truth again.
"""

from klamm.ids import BrokerId, Now
from klamm.metadata.image import Image

BELIEVED_MS = 3_000.0


class Absent:
    __slots__ = ("_found",)

    def __init__(self) -> None:
        self._found: dict[BrokerId, tuple[int, float]] = {}

    def note(self, broker_id: BrokerId, image: Image, now: Now) -> None:
        """Nobody listens at its address any more."""
        broker = image.brokers.get(broker_id)
        if broker is not None:
            self._found[broker_id] = (broker.epoch, now.monotonic_ms + BELIEVED_MS)

    def among(self, image: Image, now: Now) -> frozenset[BrokerId]:
        """Those that are still absent: not in a new life, and not for too long."""
        if not self._found:
            return frozenset()
        brokers = image.brokers
        self._found = {
            broker_id: (epoch, until_ms)
            for broker_id, (epoch, until_ms) in self._found.items()
            if broker_id in brokers and brokers[broker_id].epoch == epoch and now.monotonic_ms < until_ms
        }
        return frozenset(self._found)
