"""What requests say about leaders, until those who are named have said it themselves.

Anybody can send a request. So one that names a leader of a later epoch is a claim and no more: the voter it names is
asked at the address where it is known to be, and what that one answers counts. Nothing is waited for meanwhile, and
nothing has changed. One voter is asked at a time and not too often, so that claims cost no more than that.
"""

from klamm.ids import BrokerId
from klamm.quorum.messages import Outgoing

PAUSE_MS = 20.0


class Claims:
    def __init__(self) -> None:
        self.asking: Outgoing | None = None
        self.due_ms = 0.0
        """When the next one may be asked."""
        self._to_ask: dict[BrokerId, None] = {}

    def note(self, voter_id: BrokerId) -> None:
        """Somebody says that this voter leads, or led, a later epoch than ours."""
        self._to_ask[voter_id] = None

    @property
    def is_waiting(self) -> bool:
        return bool(self._to_ask) and self.asking is None

    def take(self, now_ms: float) -> BrokerId:
        """Who was named first and has not been asked since."""
        assert self.is_waiting and self.due_ms <= now_ms
        voter_id = next(iter(self._to_ask))
        del self._to_ask[voter_id]
        self.due_ms = now_ms + PAUSE_MS
        return voter_id
