"""Records read in batches, up to where each partition is to end.

A record is looked at one by one only in a batch in which a partition reaches its end; whether it does, the position
tells. A partition is at its end when a record before, at or behind the end has come, or when the broker says that there
is nothing more: the last records may have been compacted away, or be marks of transactions.
"""

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from klamm.cli.group_asking import Refused
from klamm.cli.librdkafka import library

Message = Any
"""A `confluent_kafka.Message`. Its stubs allow for offsets that are None, which no record has."""

BATCH = 10_000
WAIT_SECONDS = 0.1
QUIET_SECONDS = 5.0
"""When nothing has come for so long, somebody should ask whether everything is still where it was."""
PASSING = ("UNKNOWN_TOPIC_OR_PART", "LEADER_NOT_AVAILABLE", "_UNKNOWN_TOPIC", "_UNKNOWN_PARTITION", "_ALL_BROKERS_DOWN")
"""What brokers say that have not heard of a topic yet, or are on their way up or down: librdkafka asks again."""
NO_REASON = "without setting an exception"

WhenQuiet = Callable[[float], None]
"""Called now and then while nothing comes, with the seconds since something did."""


class Reading:
    """Of one topic's partitions, each from an offset up to its stop. Without a stop it never ends.

    With `follows` it does not end for having no partition either: a group may give it one when another member goes.
    """

    def __init__(
        self, consumer: Any, topic: str, stops: Mapping[int, int], when_quiet: WhenQuiet, *, follows: bool = False
    ) -> None:
        self._consumer = consumer
        self._topic = topic
        self.stops = dict(stops)
        self._when_quiet = when_quiet
        self._follows = follows
        self._kafka = library()
        self._passing = {getattr(self._kafka.KafkaError, name) for name in PASSING}
        self._open: set[int] = set()
        self._done: set[int] = set()
        self._begun: dict[int, int] = {}
        self._has_begun = False
        self._heard = time.monotonic()

    @property
    def quiet_seconds(self) -> float:
        """Since something came."""
        return time.monotonic() - self._heard

    @property
    def has_begun(self) -> bool:
        """Not before a group has let us in, and not while it shares out its partitions."""
        return self._has_begun

    def begin(self, offsets: Mapping[int, int]) -> None:
        """These partitions, from now on; those that are at their stop already are not read."""
        self._has_begun = True
        self._begun = dict(offsets)
        self._done = {partition for partition, offset in offsets.items() if self._is_at_stop(partition, offset)}
        self._open = set(offsets) - self._done
        self._consumer.assign(
            [self._kafka.TopicPartition(self._topic, partition, offsets[partition]) for partition in sorted(self._open)]
        )

    def lose(self) -> None:
        """All of them, to begin anew with others: a group shares out its partitions again."""
        self._has_begun = False
        self._open, self._done = set(), set()

    def batches(self, count: int | None) -> Iterator[list[Message]]:
        """Until every partition is at its stop, or so many records have come. An empty one where nothing came."""
        left = count
        self._heard = asked = time.monotonic()
        while self._has_more() and left != 0:
            batch = self._read(BATCH if left is None else min(BATCH, left))
            messages = [message for message in batch if message.error() is None]
            if len(messages) < len(batch):
                self._note_events(message for message in batch if message.error() is not None)
            if messages and self._may_end():
                messages = list(self._before_stops(messages))
            if messages:
                self._heard = asked = time.monotonic()
            elif time.monotonic() > asked + QUIET_SECONDS:
                self._when_quiet(self.quiet_seconds)
                asked = time.monotonic()
            if left is not None:
                left -= len(messages)
            yield messages

    def stop_at(self, stops: Mapping[int, int]) -> None:
        """From now on, and nothing that comes later is followed. What was handed out already was handed out."""
        self._follows = False
        self.stops = dict(stops)
        position = {each.partition: each.offset for each in self._positions(self._open)}
        at = {partition: max(position[partition], self._begun[partition]) for partition in self._open}
        self._end({partition for partition, offset in at.items() if self._is_at_stop(partition, offset)})

    def positions(self) -> list[Any]:
        """What is to be committed: behind what was handed out, and never behind a stop."""
        found = [each for each in self._positions(self._open | self._done) if each.offset >= 0]
        for each in found:
            each.offset = min(each.offset, self.stops.get(each.partition, each.offset))
        return found

    def _has_more(self) -> bool:
        return bool(self._open) or not self._has_begun or (self._follows and not self._begun)

    def _read(self, at_most: int) -> list[Message]:
        """What is there, at once; else the next to come. Together they would be waited for until all are there."""
        try:
            batch: list[Message] = self._consumer.consume(at_most, 0)
            if not batch:
                message = self._consumer.poll(WAIT_SECONDS)
                return [] if message is None else [message]
        except SystemError as problem:
            # The client loses a Ctrl-C that comes in the middle of a callback of ours: it fails, and does not say why.
            if NO_REASON not in str(problem):
                raise
            raise KeyboardInterrupt from None
        return batch

    def _may_end(self) -> bool:
        if not self.stops:
            return False
        if self._done:
            return True
        return any(self._is_at_stop(each.partition, each.offset) for each in self._positions(self._open))

    def _positions(self, partitions: Collection[int]) -> list[Any]:
        """Negative for those that nothing has come from yet."""
        held = [self._kafka.TopicPartition(self._topic, partition) for partition in sorted(partitions)]
        found: list[Any] = self._consumer.position(held)
        return found

    def _before_stops(self, messages: list[Message]) -> Iterator[Message]:
        stops, ended = self.stops, set()
        for message in messages:
            partition, offset = message.partition(), message.offset()
            stop = stops.get(partition)
            if stop is None or offset < stop:
                yield message
            if stop is not None and offset >= stop - 1:
                ended.add(partition)
        self._end(ended)

    def _note_events(self, messages: Iterator[Message]) -> None:
        for message in messages:
            problem = message.error()
            assert problem is not None
            if problem.code() == self._kafka.KafkaError._PARTITION_EOF:
                partition, offset = message.partition(), message.offset()
                if self._is_at_stop(partition, offset):
                    self._end({partition})
            elif not problem.retriable() and problem.code() not in self._passing:
                raise Refused(_in_words(self._kafka, problem, message))

    def _is_at_stop(self, partition: int, offset: int) -> bool:
        return offset >= self.stops.get(partition, offset + 1)

    def _end(self, partitions: set[int]) -> None:
        ended = partitions & self._open
        if ended:
            self._open -= ended
            self._done |= ended
            self._consumer.pause([self._kafka.TopicPartition(self._topic, partition) for partition in sorted(ended)])


def _in_words(kafka: Any, problem: Any, message: Message) -> str:
    partition = message.partition()
    where = "the topic" if partition is None or partition < 0 else f"partition {partition}"
    if problem.code() == kafka.KafkaError._AUTO_OFFSET_RESET:
        return f"{where}: what was to be read next is not there any more: it was deleted, or lost ({problem.str()})"
    return f"{where}: {problem.str()}"
