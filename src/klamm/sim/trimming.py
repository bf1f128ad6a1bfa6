"""An operator who deletes records of `trimmed`: up to some offset that was read, or all that is committed.

What was asked for is noted before it is asked for, because it may be done though nobody says so.
"""

from collections.abc import Callable
from typing import Any

from klamm.errors import ErrorCode
from klamm.ids import Offset
from klamm.sim.checkers.beginnings import BeginningChecker
from klamm.sim.clients.admin import Admin
from klamm.sim.clients.history import History
from klamm.sim.promise import broken
from klamm.sim.world import World

TOPIC = "trimmed"
ALL_COMMITTED = -1
AS_FAR_AS_IT_GOES = 1 << 60


class Trimming:
    def __init__(self, world: World, history: History, beginnings: BeginningChecker) -> None:
        self._world = world
        self._history = history
        self._beginnings = beginnings
        self._chance = world.chance("trimming")

    def delete_records(self, admin: Admin, then: Callable[[Any], None]) -> None:
        admin.refresh([TOPIC], lambda: self._delete(admin, then))

    def _delete(self, admin: Admin, then: Callable[[Any], None]) -> None:
        known = admin.topics.get(TOPIC)
        if known is None:
            then(None)
            return
        index = self._chance.choice(sorted(known.partitions))
        key = (known.topic_id, index)
        seen = self._history.seen.get(key, {})
        if self._chance.random() < 0.05:
            offset, limit = ALL_COMMITTED, AS_FAR_AS_IT_GOES
        else:
            offset = limit = self._chance.randint(0, max(seen, default=-1) + 1)
        self._beginnings.wants_gone(key, limit)
        self._world.tell(f"admin: {TOPIC}-{index} up to {offset}")
        admin.delete_records(TOPIC, index, offset, lambda answer: self._done(offset, answer, then))

    def _done(self, offset: Offset, answer: Any, then: Callable[[Any], None]) -> None:
        if answer is not None:
            part = answer.topics[0].partitions[0]
            if part.error_code == ErrorCode.NONE and part.low_watermark < offset:
                broken("I20", f"records up to {offset} were deleted, and there are some from {part.low_watermark} on")
            answer = answer if part.error_code == ErrorCode.NONE else None
        then(answer)
