"""How long a partition may acknowledge nothing before a sender gives up: told from librdkafka's statistics.

librdkafka has a time limit of its own. An idempotent producer takes a new epoch behind a record that it gives up, and
sends again under it what the log has under the old one: no broker can see that these are the same. So it is told to
try for ever, and to stop is ours: all of it at once, and nothing is sent after that.
"""

import json
from collections import Counter, deque
from collections.abc import Mapping

MOST_SECONDS, LEAST_SECONDS, LOOKS = 1.0, 0.1, 4
"""Between two looks; and so many within the time that is waited."""
UNASSIGNED = "-1"
"""Where records are before the partitions are known; it goes on counting them as its own."""
ALL_TOGETHER = ("", "")
"""Beside the partitions: whatever they count, what the client holds is acknowledged somewhere or waits."""


class Patience:
    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._every_seconds = max(LEAST_SECONDS, min(MOST_SECONDS, seconds / LOOKS))
        self._clock = 0.0
        self._looked: float | None = None
        self._heard: deque[str] = deque(maxlen=1)
        self._acknowledged: dict[tuple[str, str], int] = {}
        """Of each partition with records that wait: the last one that was acknowledged."""
        self._since: dict[tuple[str, str], float] = {}
        self.silent_seconds = 0.0
        """How long the partition that waits longest has acknowledged nothing, by what was heard last."""
        self._failed: Counter[tuple[str, str]] = Counter()

    @property
    def settings(self) -> dict[str, object]:
        """Of a producer whose records wait for us, and not for librdkafka's clock."""
        return {
            "message.timeout.ms": 0,
            "statistics.interval.ms": int(self._every_seconds * 1_000),
            # Nothing of Python's runs in the callback: the client would lose a Ctrl-C that comes in the middle of it.
            "stats_cb": self._heard.append,
        }

    def note_failed(self, topic: str, partition: int) -> None:
        self._failed[topic, str(partition)] += 1

    def is_over(self, now: float) -> bool:
        """By what was heard last.

        A look that comes late counts as one in time: we may have been stopped, and nothing was silent but ourselves.
        """
        if self._looked is not None:
            self._clock += min(now - self._looked, self._every_seconds)
        self._looked = now
        if not self._heard:
            return False
        waiting = _waiting_partitions(json.loads(self._heard.pop()), self._failed)
        for place, acknowledged in waiting.items():
            if self._acknowledged.get(place) != acknowledged:
                self._since[place] = self._clock
        self._acknowledged = waiting
        self.silent_seconds = max((self._clock - self._since[place] for place in waiting), default=0.0)
        return self.silent_seconds > self._seconds


def _waiting_partitions(
    statistics: Mapping[str, object], failed: Mapping[tuple[str, str], int]
) -> dict[tuple[str, str], int]:
    """What a broker has refused for now is in no queue of its partition while it waits to be sent again: it is counted
    only with all that the client holds. Whether a partition has some of it can be missed, not imagined: what failed is
    never acknowledged, and nobody tells whether others behind it were. So there is one clock more, for all together."""
    topics, held = statistics["topics"], statistics["msg_cnt"]
    assert isinstance(topics, dict) and isinstance(held, int)
    places = {(name, number): told for name, topic in topics.items() for number, told in topic["partitions"].items()}
    queued = {place: told["msgq_cnt"] + told["xmit_msgq_cnt"] + told["msgs_inflight"] for place, told in places.items()}
    are_elsewhere = held > sum(queued.values())
    waiting: dict[tuple[str, str], int] = {
        place: told["acked_msgid"]
        for place, told in places.items()
        if queued[place] > 0
        or (are_elsewhere and place[1] != UNASSIGNED and told["msgs"] - told["acked_msgid"] > failed.get(place, 0))
    }
    if held:
        waiting[ALL_TOGETHER] = sum(told["acked_msgid"] for told in places.values())
    return waiting
