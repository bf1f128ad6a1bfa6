"""Brokers that are dead, or may be, for the moments until the controller has drawn its conclusions.

A client that loses its connection to a leader asks the next broker within a millisecond who leads now. If it hears the
old name it dials that again, and asks once more after a second. If it hears that there is no leader it asks again soon.
So a broker whose connection broke is *suspected* while it is dialled again, and questions wait for that, a few
milliseconds at most; found dead, it is *absent*, and not named as a leader.

In the list of brokers it stays for some seconds, also when it is fenced: librdkafka takes a broker that vanishes from
the list for removed, and while it tears it down may forget who has just been named the new leader.
"""

from collections.abc import Iterable

from klamm.ids import BrokerId, Now
from klamm.metadata.image import Image

BELIEVED_MS = 3_000.0
LINGERS_MS = 10_000.0
PATIENCE_MS = 50.0
"""So long may a question wait for a second call to be answered or refused."""


class Absent:
    __slots__ = ("_fenced_ms", "_found", "suspects")

    def __init__(self) -> None:
        self._found: dict[BrokerId, tuple[int, float]] = {}
        self._fenced_ms: dict[BrokerId, float] = {}
        self.suspects: set[BrokerId] = set()
        """Their connections broke a moment ago, and nobody knows yet why."""

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

    def follow(self, old: Image, image: Image, changed: Iterable[BrokerId], now: Now) -> None:
        """Note who is fenced now and was not before."""
        for broker_id in changed:
            before, after = old.brokers.get(broker_id), image.brokers.get(broker_id)
            if before is not None and not before.fenced and after is not None and after.fenced:
                self._fenced_ms[broker_id] = now.monotonic_ms

    def lingering(self, now: Now) -> frozenset[BrokerId]:
        """Who was fenced a short while ago."""
        if not self._fenced_ms:
            return frozenset()
        self._fenced_ms = {
            broker_id: at_ms for broker_id, at_ms in self._fenced_ms.items() if now.monotonic_ms - at_ms < LINGERS_MS
        }
        return frozenset(self._fenced_ms)
