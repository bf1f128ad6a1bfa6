"""The groups this broker coordinates: one shard for each partition of `__consumer_offsets` that it leads.

A group belongs to the partition that its name hashes to, and whoever leads that partition is its coordinator. Becoming
leader loads the shard from the log, in slices, and until that is done clients are told so; ceasing to be leader gives
the shard up, and everybody who waits is sent elsewhere.

Whatever a shard answers leaves when everything that it had written by then is committed: also what somebody merely
asked, because the answer may come from a record that is not safe yet. So nobody hears of an offset that is lost later.
A leader that has been replaced and does not know it would answer from the past: it answers nothing unless the
controller has heard of it lately (`is_counted_on`), because it is not replaced before that has passed.
"""

from collections.abc import Callable, Sequence
from random import Random
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from klamm.broker.answer import Answer, Changed, Committed, Later, Reply
from klamm.broker.facts import GroupRecordSkipped, GroupsLoaded, GroupsNotLoaded, GroupsNotWritten, MemberRefused
from klamm.broker.loading import Loading
from klamm.broker.offsets_topic import OffsetsTopic
from klamm.broker.waiting import Waiter
from klamm.config import BrokerConfig
from klamm.controller.names import CONSUMER_OFFSETS
from klamm.coordinator.memory import NoRoom
from klamm.coordinator.records import GroupRecord, OffsetCommitKey, encoded
from klamm.coordinator.settings import GroupSettings
from klamm.coordinator.shard import Shard
from klamm.coordinator.wishes import Answered, Ticket, Verdict
from klamm.errors import ErrorCode, KafkaError
from klamm.facts import Tell
from klamm.ids import Now, Offset
from klamm.log.files import DiskFailed
from klamm.machine import Decision
from klamm.metadata.delta import Changes
from klamm.partition.partition import ALL, Partition
from klamm.records.builder import BatchBuilder
from klamm.records.compression import Codec
from klamm.records.validation import Built

if TYPE_CHECKING:
    from klamm.broker.broker import Broker

Decide: TypeAlias = Callable[[Shard, Ticket, Now], Verdict]
Respond: TypeAlias = Callable[[object], object]
"""From a reply, or a KafkaError in its place, to the response."""

OF_THIS_NODE = 0
MOST_TIMERS_AT_ONCE = 4
"""A member that is given up may cost milliseconds in a large group; others have their turn in between."""
EARLY_MS = 500.0
"""So long waits who comes before this broker has heard of the topic of the offsets."""
MOST_EARLY = 1_000
LOOK_AGAIN_MS = 100.0
RECORD_OVERHEAD_BYTES = 40
"""What a record takes besides its key and value, at most."""
LONG_MS = 24 * 3_600_000.0
"""Whoever waits for others is released by them, or by their absence; this is for the heap's sake."""

AT_HOME = {
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
}
"""What befalls our own writing, as clients of groups know it."""


class _Ticket:
    """One request that waits for its reply."""

    __slots__ = ("is_answered", "reply")

    def __init__(self) -> None:
        self.reply: object = None
        self.is_answered = False


class _Hosted:
    """A shard, the partition it stands in, and how far it has written."""

    __slots__ = ("loading", "partition", "shard", "written")

    def __init__(self, partition: Partition, shard: Shard, loading: Loading) -> None:
        self.partition = partition
        self.shard = shard
        self.loading: Loading | None = loading
        self.written: Offset = 0


class _Early(NamedTuple):
    """Who was sent here by a broker that has heard of the new topic before us, and we shall within milliseconds.
    Refused, librdkafka would come back after three seconds."""

    ticket: _Ticket
    group_id: str
    decide: Decide
    until_ms: float


class Coordination:
    def __init__(self, broker: "Broker", random: Random, tell: Tell) -> None:
        self._broker = broker
        self._random = random
        self._tell = tell
        self._settings = GroupSettings.of(broker.config)
        self._codec = Codec(broker.config.integer("offsets.topic.compression.codec"))
        self._hosted: dict[int, _Hosted] = {}
        self.next_due_ms: float | None = None
        """When to tick, at the latest."""
        self.counted_on_until_ms: float | None = None
        """Monotonic; None: nobody else could take our place."""
        self.offsets_topic = OffsetsTopic(broker)
        self._has_lapsed = False
        self._has_told_of_room = False
        self._early: list[_Early] = []

    # What handlers ask.

    def ask(self, group_id: str, decide: Decide, respond: Respond, now: Now) -> Answer:
        """The reply of the shard this group belongs to, or a KafkaError why there is none."""
        return self.ask_each([(group_id, decide)], lambda replies: respond(replies[0]), now)

    def ask_each(
        self, asked: Sequence[tuple[str, Decide]], respond: Callable[[list[object]], object], now: Now
    ) -> Answer:
        """The same for several groups, in their order."""
        if not self.offsets_topic.was_seen and len(self._early) + len(asked) <= MOST_EARLY:
            tickets = [self._asked_early(group_id, decide, now) for group_id, decide in asked]
        else:
            partition_of = self.offsets_topic.partition_of
            tickets = [self._asked(partition_of(group_id), decide, now) for group_id, decide in asked]
        return self._when_all_are_answered(tickets, respond, now)

    def ask_all(self, decide: Decide, respond: Callable[[list[object]], object], now: Now) -> Answer:
        """The replies of all shards here."""
        tickets = [self._asked(index, decide, now) for index in sorted(self._hosted)]
        return self._when_all_are_answered(tickets, respond, now)

    def _asked(self, index: int, decide: Decide, now: Now) -> _Ticket:
        ticket = _Ticket()
        self._decide(ticket, index, decide, now)
        return ticket

    def _asked_early(self, group_id: str, decide: Decide, now: Now) -> _Ticket:
        early = _Early(_Ticket(), group_id, decide, now.monotonic_ms + EARLY_MS)
        self._early.append(early)
        self.wake_at(early.until_ms)
        return early.ticket

    def _maybe_decide_early(self, now: Now) -> None:
        early, self._early = self._early, []
        for each in early:
            if self.offsets_topic.was_seen or each.until_ms <= now.monotonic_ms:
                self._decide(each.ticket, self.offsets_topic.partition_of(each.group_id), each.decide, now)
            else:
                self._early.append(each)
        if self._early:
            self.wake_at(self._early[0].until_ms)

    def _decide(self, ticket: _Ticket, index: int, decide: Decide, now: Now) -> None:
        try:
            hosted = self._serving(index, now)
        except KafkaError as error:
            self._give(ticket, error)
        else:
            self._carry_out(hosted, self._decided(hosted, decide, ticket, now), now)

    def _when_all_are_answered(
        self, tickets: list[_Ticket], respond: Callable[[list[object]], object], now: Now
    ) -> Answer:
        def replies() -> object:
            return respond([_reply_of(ticket) for ticket in tickets])

        def complete() -> bool:
            return all(ticket.is_answered for ticket in tickets)

        if complete():
            return Reply(replies())
        return Later(Changed(tickets, complete), now.monotonic_ms + LONG_MS, lambda now, in_time: replies())

    def shards(self) -> list[Shard]:
        """Those that are loaded."""
        return [hosted.shard for _, hosted in sorted(self._hosted.items()) if hosted.loading is None]

    def _members_bytes(self) -> int:
        return sum(hosted.shard.memory.used_bytes for hosted in self._hosted.values())

    def is_counted_on(self, now: Now) -> bool:
        return self.counted_on_until_ms is None or now.monotonic_ms < self.counted_on_until_ms

    def _serving(self, index: int, now: Now) -> _Hosted:
        hosted = self._hosted.get(index)
        if hosted is None or hosted.partition.failure is not None:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)
        if not self.is_counted_on(now):
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "The controller has not answered for a while.")
        if hosted.loading is not None:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return hosted

    # Carrying out.

    def _decided(self, hosted: _Hosted, decide: Decide, ticket: _Ticket, now: Now) -> Verdict:
        try:
            return decide(hosted.shard, ticket, now)
        except KafkaError as error:
            if isinstance(error, NoRoom) and not self._has_told_of_room:
                self._has_told_of_room = True
                self._tell(MemberRefused(error.message or ""))
            return Verdict([Answered(ticket, error)])

    def _carry_out(self, hosted: _Hosted, verdict: Verdict, now: Now) -> None:
        """Write the records, make them true here, and answer when they are safe."""
        if verdict.records:
            try:
                self._write(hosted, verdict, now)
            except KafkaError as error:
                failure = KafkaError(_at_home(error.code, verdict), error.message)
                for ticket, _ in verdict.response:
                    self._give(ticket, failure)
                if not verdict.response:
                    self._tell(GroupsNotWritten(str(hosted.partition.topic_partition), str(error)))
                self._look_at_clock(hosted)
                return
        follows = hosted.shard.settle(now)
        self._look_at_clock(hosted)
        if verdict.response:
            self._answer_when_safe(hosted, verdict.response, now)
        if follows is not None:
            self._carry_out(hosted, follows, now)

    def _write(self, hosted: _Hosted, verdict: Verdict, now: Now) -> None:
        """In one batch, so that all of them are there after a crash or none. Tombstones alone need not go together, and
        may be too many for one."""
        can_split = all(record.value is None for record in verdict.records)
        most_bytes = hosted.partition.log.settings.max_message_bytes
        batch = BatchBuilder(self._codec)
        first = 0
        for position, record in enumerate(verdict.records):
            key, value = encoded(record)
            size = RECORD_OVERHEAD_BYTES + len(key) + len(value or b"")
            if can_split and batch.count and batch.size_bytes + size > most_bytes:
                self._append(hosted, batch, verdict.records[first:position], now)
                batch, first = BatchBuilder(self._codec), position
            batch.append(key, value, now.wall_ms)
        self._append(hosted, batch, verdict.records[first:], now)

    def _append(self, hosted: _Hosted, batch: BatchBuilder, records: Sequence[GroupRecord], now: Now) -> None:
        appended = hosted.partition.append(memoryview(batch.build()), ALL, now, validation=Built(batch))
        hosted.written = appended.last_offset + 1
        for record in records:
            hosted.shard.replay(record)

    def _answer_when_safe(self, hosted: _Hosted, answers: list[Answered], now: Now) -> None:
        partition, end, terms = hosted.partition, hosted.written, hosted.partition.terms_ended
        if partition.high_watermark >= end:
            for answer in answers:
                self._give(*answer)
            return

        def deliver(now: Now, in_time: bool) -> None:
            failure = self._failure(hosted, end, terms, now)
            for ticket, reply in answers:
                self._give(ticket, reply if failure is None else KafkaError(failure))

        deadline_ms = now.monotonic_ms + self._settings.commit_timeout_ms
        later = Later(Committed([(partition, end)]), deadline_ms, lambda now, in_time: None)
        self._broker.waiting.add(Waiter(later, OF_THIS_NODE, deliver), deadline_ms)

    def _failure(self, hosted: _Hosted, end: Offset, terms: int, now: Now) -> ErrorCode | None:
        """Why an answer may not leave, if it may not."""
        partition = hosted.partition
        if partition.deleted or partition.failure is not None or partition.terms_ended != terms:
            return ErrorCode.NOT_COORDINATOR
        if partition.high_watermark < end or not self.is_counted_on(now):
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        return None

    def _give(self, ticket: Ticket, reply: object) -> None:
        assert isinstance(ticket, _Ticket)
        if not ticket.is_answered:
            ticket.is_answered = True
            if isinstance(reply, KafkaError):
                # It may stay until many others are answered, and would keep every frame that it passed through.
                reply.__traceback__ = None
            ticket.reply = reply
            self._broker.waiting.changed(ticket)

    # Leading and following.

    def begin(self, now: Now) -> None:
        """The broker's logs are open, and it leads what it leads."""
        self.offsets_topic.begin(now)
        for partition in self._broker.partitions.by_name(CONSUMER_OFFSETS) or ():
            if partition is not None:
                self.look(partition, now)

    def follow(self, changes: Changes, now: Now) -> None:
        """The metadata moved on."""
        self.offsets_topic.follow(changes)
        if self._early:
            self._maybe_decide_early(now)
        if not self._hosted or not (changes.topics_created or changes.topics_deleted or changes.partitions_changed):
            return
        gone = [topic.name for topic in changes.topics_deleted if topic.name not in self._broker.image.topics]
        for hosted in list(self._hosted.values()):
            if hosted.loading is None:
                self._carry_out(hosted, hosted.shard.follow(self._broker.image, gone, now), now)

    def configure(self, config: BrokerConfig) -> None:
        """The broker's settings, from now on."""
        self._settings = GroupSettings.of(config)
        for hosted in self._hosted.values():
            hosted.shard.configure(self._settings)

    def failed(self, partition: Partition) -> None:
        """Its disk broke a promise."""
        hosted = self._hosted.get(partition.topic_partition.partition)
        if hosted is not None and hosted.partition is partition:
            self._give_up(hosted)

    def look(self, partition: Partition, now: Now) -> None:
        """A partition of the groups' offsets has another role than before."""
        index = partition.topic_partition.partition
        hosted = self._hosted.get(index)
        leads = partition.is_leader and not partition.deleted and partition.failure is None
        if hosted is not None and (not leads or hosted.partition is not partition):
            self._give_up(hosted)
            hosted = None
        if hosted is None and leads:
            shard = Shard(self._settings, self._random, self._broker.image, self._members_bytes)
            name = str(partition.topic_partition)
            loading = Loading(partition.log, shard.replay, lambda why: self._tell(GroupRecordSkipped(name, why)))
            hosted = self._hosted[index] = _Hosted(partition, shard, loading)
            self._load(hosted, now)

    def _give_up(self, hosted: _Hosted) -> None:
        del self._hosted[hosted.partition.topic_partition.partition]
        for ticket in hosted.shard.everybody_waiting():
            self._give(ticket, KafkaError(ErrorCode.NOT_COORDINATOR))

    # Time.

    def tick(self, now: Now) -> None:
        """One slice of what is being loaded, and every timer that is due."""
        if self.next_due_ms is None or self.next_due_ms > now.monotonic_ms:
            return
        self.next_due_ms = None
        self.offsets_topic.tick(now)
        if self._early:
            self._maybe_decide_early(now)
        is_counted_on = self._sees_whether_it_counts(now)
        left = MOST_TIMERS_AT_ONCE
        for hosted in list(self._hosted.values()):
            if hosted.loading is not None:
                self._load(hosted, now)
                continue
            while is_counted_on and left and (verdict := self._ticked(hosted, now)) is not None:
                left -= 1
                self._carry_out(hosted, verdict, now)
            self._look_at_clock(hosted)
        if not is_counted_on and self._hosted:
            # Not at once, though timers are due: they wait until it counts again.
            self.next_due_ms = now.monotonic_ms + LOOK_AGAIN_MS

    def wake_at(self, due_ms: float) -> None:
        """Have `tick` called then, at the latest."""
        if self.next_due_ms is None or due_ms < self.next_due_ms:
            self.next_due_ms = due_ms

    def _ticked(self, hosted: _Hosted, now: Now) -> Verdict | None:
        try:
            return hosted.shard.tick(now)
        except KafkaError as error:
            # A timer has nobody to tell. What it was about is looked at again when somebody asks.
            self._tell(GroupsNotWritten(str(hosted.partition.topic_partition), str(error)))
            return Decision([])

    def _sees_whether_it_counts(self, now: Now) -> bool:
        """While nobody is answered, nobody can be heard of, so no session ends; afterwards all begin anew."""
        if not self.is_counted_on(now):
            self._has_lapsed = True
            return False
        if self._has_lapsed:
            self._has_lapsed = False
            for hosted in self._hosted.values():
                if hosted.loading is None:
                    hosted.shard.expect_everybody(now)
        return True

    def _load(self, hosted: _Hosted, now: Now) -> None:
        loading = hosted.loading
        assert loading is not None
        try:
            is_done = loading.step()
        except (DiskFailed, KafkaError) as error:
            # Nothing can be said of these groups before somebody has looked at the log, or another replica leads.
            self._tell(GroupsNotLoaded(str(hosted.partition.topic_partition), str(error)))
            self._broker.fail(hosted.partition, f"The groups' records cannot be read: {error}")
            self._give_up(hosted)
            return
        if not is_done:
            self.wake_at(now.monotonic_ms)
            return
        hosted.loading = None
        hosted.written = hosted.partition.log.end_offset
        if loading.count:
            self._tell(GroupsLoaded(str(hosted.partition.topic_partition), loading.count))
        self._carry_out(hosted, hosted.shard.begin(self._broker.image, now), now)

    def _look_at_clock(self, hosted: _Hosted) -> None:
        due_ms = hosted.shard.next_due_ms
        if due_ms is not None:
            self.wake_at(due_ms)


def _at_home(code: ErrorCode, verdict: Verdict) -> ErrorCode:
    if code == ErrorCode.MESSAGE_TOO_LARGE and isinstance(verdict.records[0].key, OffsetCommitKey):
        return ErrorCode.INVALID_COMMIT_OFFSET_SIZE
    return AT_HOME.get(code, ErrorCode.UNKNOWN_SERVER_ERROR)


def _reply_of(ticket: _Ticket) -> object:
    """After a day without one, the client had better ask again."""
    return ticket.reply if ticket.is_answered else KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
