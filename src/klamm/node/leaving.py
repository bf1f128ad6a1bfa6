"""Leaving the cluster: what we lead is given to others, the quorum hears that its leader goes, and then we are free.

Nobody waits for ever: what the controller has not done in time, others will find out by themselves. And there are ends
without a goodbye: a node that cannot hear any more what the cluster decides must not go on as if it did, nor one whose
place another process has taken.
"""

from enum import IntEnum

from klamm.broker.broker import Broker
from klamm.ids import Now
from klamm.node.membership import Membership
from klamm.node.metadata import Metadata

STOPPING_MS = 3_000.0
"""So long may it take the controller to give what we lead to others."""

GOODBYE_MS = 100.0
"""So long may the others take to hear that the quorum's leader stops."""


class Stage(IntEnum):
    STAYING = 0
    HANDING_OVER = 1
    SAYING_GOODBYE = 2
    FREE = 3
    GONE = 4


class Leaving:
    def __init__(self, broker: Broker, membership: Membership, metadata: Metadata) -> None:
        self._broker = broker
        self._membership = membership
        self._metadata = metadata
        self._stage = Stage.STAYING
        self.due_ms: float | None = None

    def begin(self, now: Now) -> None:
        if self._stage is not Stage.STAYING:
            return
        self._stage = Stage.HANDING_OVER
        others = [each for each in self._broker.image.brokers.values() if each.broker_id != self._broker.node_id]
        hands_over = self._broker.config.boolean("controlled.shutdown.enable")
        if hands_over and self._membership.is_serving and any(broker.is_active for broker in others):
            self.due_ms = now.monotonic_ms + STOPPING_MS
            self._membership.begin_to_stop(now)
        else:
            # Nobody to hand over to, or nothing that we should.
            self._go_on(now)

    @property
    def has_begun(self) -> bool:
        return self._stage is not Stage.STAYING

    def look(self, now: Now) -> None:
        """Whether it goes on: we may stop, we have waited long enough, or we have to end whatever others do."""
        is_due = self.due_ms is not None and self.due_ms <= now.monotonic_ms
        if is_due or (self._stage is Stage.HANDING_OVER and self._membership.may_stop):
            self._go_on(now)
        if self._stage < Stage.FREE and (self._metadata.has_ended or self._membership.is_replaced):
            self._stage = Stage.FREE

    def takes_leave(self) -> bool:
        """Whether this is the moment; true once."""
        if self._stage is not Stage.FREE:
            return False
        self._stage = Stage.GONE
        return True

    def _go_on(self, now: Now) -> None:
        quorum = self._broker.quorum
        if self._stage is Stage.HANDING_OVER and quorum.is_leader and len(quorum.voters) > 1:
            self._stage = Stage.SAYING_GOODBYE
            self.due_ms = now.monotonic_ms + GOODBYE_MS
            self._metadata.resign(now)
        elif self._stage < Stage.FREE:
            self._stage = Stage.FREE
            self.due_ms = None
