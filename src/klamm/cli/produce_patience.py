"""How long a partition may acknowledge nothing before a sender gives up: told from librdkafka's statistics.

librdkafka has a time limit of its own. An idempotent producer takes a new epoch behind a record that it gives up, and
sends again under it what the log has under the old one: no broker can see that these are the same. So it is told to
try for ever, and to stop is ours: all of it at once, and nothing is sent after that.
"""

import json
from collections import deque
from collections.abc import Mapping

MOST_SECONDS, LEAST_SECONDS, LOOKS = 1.0, 0.05, 4
"""Between two looks; and so many within the time that is waited."""


class Patience:
    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._heard: deque[str] = deque(maxlen=1)
        self._acknowledged: dict[tuple[str, str], int] = {}
        """Of each partition with records that wait: the last one that was acknowledged."""
        self._since: dict[tuple[str, str], float] = {}

    @property
    def settings(self) -> dict[str, object]:
        """Of a producer whose records wait for us, and not for librdkafka's clock."""
        every_seconds = max(LEAST_SECONDS, min(MOST_SECONDS, self._seconds / LOOKS))
        return {
            "message.timeout.ms": 0,
            "statistics.interval.ms": int(every_seconds * 1_000),
            # Nothing of Python's runs in the callback: the client would lose a Ctrl-C that comes in the middle of it.
            "stats_cb": self._heard.append,
        }

    def is_over(self, now: float) -> bool:
        """By what was heard last."""
        if not self._heard:
            return False
        waiting = _waiting_partitions(json.loads(self._heard.pop()))
        for place, acknowledged in waiting.items():
            if self._acknowledged.get(place) != acknowledged:
                self._since[place] = now
        self._acknowledged = waiting
        return any(now > self._since[place] + self._seconds for place in waiting)


def _waiting_partitions(statistics: Mapping[str, object]) -> dict[tuple[str, str], int]:
    topics = statistics["topics"]
    assert isinstance(topics, dict)
    return {
        (name, number): told["acked_msgid"]
        for name, topic in topics.items()
        for number, told in topic["partitions"].items()
        if told["msgq_cnt"] + told["xmit_msgq_cnt"] + told["msgs_inflight"] > 0
    }
