"""`klamm consume --group`: a member of a group, which goes on where the group was and commits what was written.

A record that was read and not written, because Ctrl-C or the end of a pipe came in between, is not committed: whoever
goes on gets it again.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from klamm.cli.consume_reading import Reading
from klamm.cli.group_asking import Refused
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
        self._sent: list[Any] = []
        """Of what is written: what has been committed, or is on its way to it."""
        self._committed = time.monotonic()
        self.goes_on = False
        """The group has been here before: not every partition begins where it was asked for."""

    def join(self, topic: str) -> None:
        """The others read what is not given to us."""
        self._consumer.subscribe([topic], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._lost)

    def noting(self) -> Callable[[], None]:
        """To be called, on any thread, when all that was handed out so far is written."""
        written = self._reading.positions()

        def note() -> None:
            self._written = written

        return note

    def maybe_commit(self) -> None:
        """What is written is committed now and then, and not again while nothing more is."""
        if self._written is not self._sent and time.monotonic() > self._committed + COMMIT_EVERY_SECONDS:
            self.commit(wait=False)

    def answered(self, problem: Any, partitions: Sequence[Any]) -> None:
        """To a commit that nobody waited for. What was refused is sent once more, when it is time again."""
        if problem is not None or any(each.error is not None for each in partitions):
            self._sent = []

    def commit(self, *, wait: bool) -> bool:
        """Whether it is committed, as far as that was waited for; if not, that is said."""
        self._committed = time.monotonic()
        if not self._written:
            return True
        # Another thread may write more meanwhile.
        self._sent = written = self._written
        try:
            done = self._consumer.commit(offsets=written, asynchronous=not wait)
        except library().KafkaException as problem:
            return _not_committed(problem.args[0].str())
        refused = [each for each in done or () if each.error is not None]
        return _not_committed(_in_words(refused[0])) if refused else True

    def leave(self) -> bool:
        """The last commit: whether it was done."""
        is_committed = self.commit(wait=True)
        self._written = []
        return is_committed

    def _assigned(self, _: Any, partitions: Sequence[Any]) -> None:
        self._reading.begin(self._offsets(partitions) if partitions else {})

    def _offsets(self, partitions: Sequence[Any]) -> dict[int, int]:
        """Refused if nobody tells where the group was: to begin anew would be to read everything twice."""
        try:
            found = self._consumer.committed(list(partitions), timeout=ANSWER_SECONDS)
        except library().KafkaException as problem:
            raise Refused(f"where the group was is not known: {problem.args[0].str()}") from None
        for each in found:
            if each.error is not None:
                raise Refused(f"where the group was is not known: {_in_words(each)}")
        self.goes_on = self.goes_on or any(each.offset >= 0 for each in found)
        return {
            each.partition: each.offset if each.offset >= 0 else self._starts.get(each.partition, 0) for each in found
        }

    def _revoked(self, consumer: Any, partitions: Sequence[Any]) -> None:
        """Between two batches: what was handed out is written."""
        self.commit(wait=True)
        self._lost(consumer, partitions)

    def _lost(self, _: Any, partitions: Sequence[Any]) -> None:
        """Every one of them: the assignors that we name take all and share out anew."""
        self._written = []
        self._reading.lose()


def _not_committed(why: str) -> bool:
    say(f"klamm consume: the group's offsets could not be committed: {why}")
    return False


def _in_words(partition: Any) -> str:
    return f"partition {partition.partition}: {partition.error.str()}"
