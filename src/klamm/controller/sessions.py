"""Which brokers have been heard of lately.

A broker that is silent for `broker.session.timeout.ms` is taken for dead. Nothing of this is written down: a new
controller has heard of nobody, and gives everybody a whole session to be heard.

A controller that was itself asleep (paused, or its machine too busy) finds many sessions over at once, while the
heartbeats wait in its sockets. Fencing everybody for its own sleep would be the worst it could do. So when it looks
much later than it meant to, those sessions last a little longer, once.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from klamm.config import BrokerConfig
from klamm.ids import NO_OFFSET, BrokerId, Now, Offset

GRACE_IN_HEARTBEATS = 2


@dataclass(slots=True)
class _Contact:
    ends_ms: float
    metadata_offset: Offset = NO_OFFSET
    was_prolonged: bool = False


class Sessions:
    def __init__(self, config: BrokerConfig) -> None:
        self._timeout_ms = config.integer("broker.session.timeout.ms")
        self.heartbeat_ms = config.integer("broker.heartbeat.interval.ms")
        self._contacts: dict[BrokerId, _Contact] = {}
        self.next_deadline_ms: float | None = None
        """No session ends before. Contacts put it off, so it is looked up anew only when it has come."""

    def heard(self, broker: BrokerId, now: Now, metadata_offset: Offset = NO_OFFSET) -> None:
        """It is alive, and its image holds everything up to here."""
        ends_ms = now.monotonic_ms + self._timeout_ms
        contact = self._contacts.get(broker)
        if contact is None:
            contact = self._contacts[broker] = _Contact(ends_ms)
        contact.ends_ms, contact.was_prolonged = ends_ms, False
        contact.metadata_offset = max(contact.metadata_offset, metadata_offset)
        if self.next_deadline_ms is None:
            self.next_deadline_ms = ends_ms

    def forget(self, broker: BrokerId) -> None:
        self._contacts.pop(broker, None)

    def lasts(self, broker: BrokerId, now: Now) -> bool:
        contact = self._contacts.get(broker)
        return contact is not None and now.monotonic_ms < contact.ends_ms

    def metadata_offset(self, broker: BrokerId) -> Offset:
        contact = self._contacts.get(broker)
        return NO_OFFSET if contact is None else contact.metadata_offset

    def ended(self, now: Now) -> list[BrokerId]:
        """Whose session is over. They are forgotten: who is heard of again begins anew."""
        if self.next_deadline_ms is None or now.monotonic_ms < self.next_deadline_ms:
            return []
        ended = sorted(broker for broker in self._contacts if not self.lasts(broker, now))
        if now.monotonic_ms - self.next_deadline_ms > self.heartbeat_ms:
            ended = [broker for broker in ended if not self._prolong(broker, now)]
        for broker in ended:
            del self._contacts[broker]
        self.next_deadline_ms = min((contact.ends_ms for contact in self._contacts.values()), default=None)
        return ended

    def look_again(self, brokers: Iterable[BrokerId], now: Now) -> None:
        """Those of these that were taken for dead, without consequence, are so again in a heartbeat."""
        for broker in brokers:
            if broker not in self._contacts:
                ends_ms = now.monotonic_ms + self.heartbeat_ms
                self._contacts[broker] = _Contact(ends_ms, was_prolonged=True)
                self.next_deadline_ms = min(ends_ms, self.next_deadline_ms or ends_ms)

    def _prolong(self, broker: BrokerId, now: Now) -> bool:
        contact = self._contacts[broker]
        if contact.was_prolonged:
            return False
        contact.was_prolonged = True
        contact.ends_ms = now.monotonic_ms + GRACE_IN_HEARTBEATS * self.heartbeat_ms
        return True
