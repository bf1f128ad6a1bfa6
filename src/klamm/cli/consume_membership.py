"""`klamm consume --group`: a member of a group, which goes on where the group was and commits what was written.

A record that was read and not written, because Ctrl-C or the end of a pipe came in between, is not committed: whoever
goes on gets it again.
"""

import time
from collections.abc import Mapping, Sequence
from typing import Any

from klamm.cli.consume_reading import Reading
from klamm.cli.librdkafka import library
from klamm.cli.saying import say

COMMIT_EVERY_SECONDS = 1.0
ANSWER_SECONDS = 10.0


class Membership:
    def __init__(self, consumer: Any, reading: Reading, starts: Mapping[int, int]) -> None:
        """`starts` are for partitions in which the group has never been."""
        self._consumer = consumer
        self._reading = reading
        self._starts = starts
        self._written: list[Any] = []
        self._committed = time.monotonic()

    def join(self, topic: str) -> None:
        """The others read what is not given to us."""
        self._consumer.subscribe([topic], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._lost)

    def note_written(self) -> None:
        """All that was handed out so far; it is committed now and then."""
        self._written = self._reading.positions()
        if time.monotonic() > self._committed + COMMIT_EVERY_SECONDS:
            self.commit(wait=False)

    def commit(self, *, wait: bool) -> None:
        self._committed = time.monotonic()
        if not self._written:
            return
        try:
            self._consumer.commit(offsets=self._written, asynchronous=not wait)
        except library().KafkaException as problem:
            say(f"klamm consume: the group's offsets could not be committed: {problem.args[0].str()}")

    def _assigned(self, _: Any, partitions: Sequence[Any]) -> None:
        offsets = {}
        for each in self._consumer.committed(list(partitions), timeout=ANSWER_SECONDS) if partitions else ():
            offsets[each.partition] = each.offset if each.offset >= 0 else self._starts.get(each.partition, 0)
        self._reading.begin(offsets)

    def _revoked(self, consumer: Any, partitions: Sequence[Any]) -> None:
        """Between two batches: what was handed out is written."""
        self.commit(wait=True)
        self._lost(consumer, partitions)

    def _lost(self, _: Any, partitions: Sequence[Any]) -> None:
        """Every one of them: the assignors that we name take all and share out anew."""
        self._written = []
        self._reading.lose()
