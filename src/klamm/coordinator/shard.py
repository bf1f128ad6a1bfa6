"""One partition of `__consumer_offsets`: the groups whose records stand there, and their offsets.

Whoever asks gets a verdict: records to write, and who is to be told what once they are committed. `replay` is where the
records become state, live and when the partition is loaded after a failover alike. A group comes into being when its
first member joins or its first offset is committed, and is gone when it is deleted, or when it is empty and its last
offset has expired.
"""

from collections.abc import Callable, Collection
from random import Random

from klamm.coordinator.groups.classic import ClassicGroup
from klamm.coordinator.groups.consumer import ConsumerGroup
from klamm.coordinator.groups.group import CONSUMER, CONSUMER_PROTOCOL_TYPE, Group, Surroundings, TimerName
from klamm.coordinator.groups.member_checks import check_heartbeat
from klamm.coordinator.memory import GroupMemory, bytes_of_heartbeat, bytes_of_join
from klamm.coordinator.offsets import Offsets, Place
from klamm.coordinator.records import (
    ConsumerGroupMetadataKey,
    GroupMetadataKey,
    GroupMetadataValue,
    GroupRecord,
    OffsetCommitKey,
    OffsetCommitValue,
)
from klamm.coordinator.settings import GroupSettings
from klamm.coordinator.wishes import (
    JOINS,
    NO_MEMBER,
    Answered,
    BeatWish,
    CommitWish,
    HeartbeatWish,
    JoinWish,
    LeaveWish,
    LeftMember,
    ListedGroup,
    OffsetDeletionWish,
    OffsetsWish,
    SyncWish,
    Ticket,
    Verdict,
)
from klamm.errors import ErrorCode, KafkaError
from klamm.ids import ZERO_UUID, Now, Uuid
from klamm.machine import Decision
from klamm.metadata.image import Image

EXPIRY = TimerName("expiry", "")
MOST_EXPIRED_AT_ONCE = 1_000
LOOKED_AT_AT_ONCE = 2_000
"""Offsets and groups, in one slice of looking for what has expired."""
BETWEEN_SLICES_MS = 20


class Shard:
    def __init__(
        self, settings: GroupSettings, random: Random, image: Image, used_by_all: Callable[[], int] | None = None
    ) -> None:
        """`used_by_all`: what the groups of all shards of this broker take."""
        self._settings = settings
        self.memory = GroupMemory(used_by_all)
        self._around = Surroundings(settings, random, image)
        self._groups: dict[str, Group] = {}
        self._offsets = Offsets()
        self._to_expire: list[str] = []
        """Groups that are still to be looked at, in this round."""
        self._became_classic: set[str] = set()
        """Groups that were of the newer protocol before the last records."""

    # Members of the classic protocol.

    def join(self, wish: JoinWish, ticket: Ticket, now: Now) -> Verdict:
        _check_group_id(wish.group_id)
        settings = self._settings
        if not settings.min_session_ms <= wish.session_timeout_ms <= settings.max_session_ms:
            allowed = f"{settings.min_session_ms} to {settings.max_session_ms} ms"
            raise KafkaError(ErrorCode.INVALID_SESSION_TIMEOUT, f"A session timeout has to be within {allowed}.")
        self._check_room(wish, bytes_of_join(wish))
        verdict = self._joined(wish, ticket, now)
        self._note_size(wish.group_id)
        return verdict

    def _joined(self, wish: JoinWish, ticket: Ticket, now: Now) -> Verdict:
        group = self._groups.get(wish.group_id)
        if group is None:
            if wish.member_id != NO_MEMBER:
                raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
            return self._join_first(wish, [], ticket, now)
        if isinstance(group, ConsumerGroup) and group.is_empty and wish.member_id == NO_MEMBER:
            # Nobody is left in the group of the newer protocol: it is a classic one from now on, with its offsets.
            return self._join_first(wish, group.tombstones(), ticket, now)
        return group.join(wish, ticket, now)

    def _join_first(self, wish: JoinWish, before: list[GroupRecord], ticket: Ticket, now: Now) -> Verdict:
        """There is such a group from now on, unless its first member cannot join."""
        group = ClassicGroup(wish.group_id, self._around)
        verdict = group.join(wish, ticket, now)
        if any(isinstance(reply, KafkaError) for _, reply in verdict.response):
            return verdict
        self._groups[wish.group_id] = group
        verdict.records[:0] = [*before, group.begin_record(now)]
        return verdict

    def sync(self, wish: SyncWish, ticket: Ticket, now: Now) -> Verdict:
        _check_group_id(wish.group_id)
        return self._group_with_members(wish.group_id).sync(wish, ticket, now)

    def beat(self, wish: BeatWish, ticket: Ticket, now: Now) -> Verdict:
        _check_group_id(wish.group_id)
        return self._group_with_members(wish.group_id).beat(wish, ticket, now)

    def leave(self, wish: LeaveWish, ticket: Ticket, now: Now) -> Verdict:
        _check_group_id(wish.group_id)
        group = self._groups.get(wish.group_id)
        if group is None:
            gone = [LeftMember(*each, ErrorCode.UNKNOWN_MEMBER_ID) for each in wish.members]
            return Decision([Answered(ticket, gone)])
        verdict = group.leave(wish, ticket, now)
        self._note_size(wish.group_id)
        return verdict

    # Members of the newer one.

    def heartbeat(self, wish: HeartbeatWish, ticket: Ticket, now: Now) -> Verdict:
        if CONSUMER not in self._settings.protocols:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, "Groups of the consumer protocol are not served here.")
        check_heartbeat(wish, self._settings)
        self._check_room(wish, bytes_of_heartbeat(wish))
        group = self._groups.get(wish.group_id)
        if isinstance(group, ConsumerGroup):
            return group.heartbeat(wish, ticket, now)
        if wish.member_epoch != JOINS:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {wish.group_id} is not a consumer group.")
        if group is None:
            return ConsumerGroup(wish.group_id, self._around).heartbeat(wish, ticket, now)
        assert isinstance(group, ClassicGroup)
        verdict = ConsumerGroup.upgrade(group.snapshot(), self._around, wish, ticket, now)
        if verdict.records:
            # Classic members join again, and find a coordinator that assigns.
            again = KafkaError(ErrorCode.REBALANCE_IN_PROGRESS)
            verdict.response += [Answered(waiting, again) for waiting in group.release(now)]
        return verdict

    # Offsets.

    def commit(self, wish: CommitWish, ticket: Ticket, now: Now) -> Verdict:
        group = self._groups.get(wish.group_id)
        if group is not None:
            group.check_commit(wish, now)
        elif wish.generation >= 0:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND if wish.knows_epochs else ErrorCode.ILLEGAL_GENERATION)
        longest = self._settings.metadata_max_bytes
        records, codes = self._offsets.commit(wish.group_id, wish.offsets, wish.retention_ms, longest, now.wall_ms)
        return Decision([Answered(ticket, codes)], records)

    def offsets(self, wish: OffsetsWish, ticket: Ticket, now: Now) -> Verdict:
        group = self._groups.get(wish.group_id)
        if group is not None:
            group.check_reading(wish)
        found = self._offsets.committed(wish.group_id, wish.partitions, self._topic_id)
        return Decision([Answered(ticket, found)])

    def delete_offsets(self, wish: OffsetDeletionWish, ticket: Ticket, now: Now) -> Verdict:
        group = self._existing(wish.group_id)
        if not group.is_empty and group.listed().protocol_type != CONSUMER_PROTOCOL_TYPE:
            # Nobody can tell what its members read.
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)
        read = group.topics_read()
        codes = [
            ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if read is None or topic in read else ErrorCode.NONE
            for topic, _ in wish.partitions
        ]
        free = [place for place, code in zip(wish.partitions, codes, strict=True) if not code]
        return Decision([Answered(ticket, codes)], self._offsets.deletion(wish.group_id, free))

    # Whole groups.

    def delete(self, group_id: str, ticket: Ticket, now: Now) -> Verdict:
        group = self._existing(group_id)
        if not group.is_empty:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)
        records = self._offsets.deletion(group_id, self._offsets.places_of(group_id)) + group.tombstones()
        return Decision([Answered(ticket, ErrorCode.NONE)], records)

    def describe_classic(self, group_id: str, ticket: Ticket, now: Now) -> Verdict:
        group = self._existing(group_id)
        if not isinstance(group, ClassicGroup):
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a classic group.")
        return Decision([Answered(ticket, group.described())])

    def describe_consumer(self, group_id: str, ticket: Ticket, now: Now) -> Verdict:
        _check_group_id(group_id)
        group = self._existing(group_id)
        if not isinstance(group, ConsumerGroup):
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group.")
        return Decision([Answered(ticket, group.described())])

    def listed(self, ticket: Ticket, now: Now) -> Verdict:
        listed: list[ListedGroup] = [self._groups[group_id].listed() for group_id in sorted(self._groups)]
        return Decision([Answered(ticket, listed)])

    # What is watched from outside. It may be ahead of what is committed.

    @property
    def group_ids(self) -> list[str]:
        """In any order: there may be a hundred thousand."""
        return list(self._groups)

    @property
    def group_count(self) -> int:
        return len(self._groups)

    def member_count(self, group_id: str) -> int:
        group = self._groups.get(group_id)
        return 0 if group is None else group.member_count

    def positions_of(self, group_id: str) -> list[tuple[Place, int]]:
        return self._offsets.positions_of(group_id)

    # Time, and what happens elsewhere.

    def begin(self, image: Image, now: Now) -> Verdict:
        """Everything is replayed, and this shard answers from now on. Offsets of topics that were deleted while nobody
        could take them along go now."""
        self._became_classic.clear()
        self._around.image = image
        self.expect_everybody(now)
        self._around.timers.set(EXPIRY, now.monotonic_ms + self._settings.offsets_check_ms)
        return Decision([], self._offsets.of_other_topics(image.topics))

    def expect_everybody(self, now: Now) -> None:
        """Every member has its whole time again to be heard of."""
        for group in self._groups.values():
            group.begin(now)

    def configure(self, settings: GroupSettings) -> None:
        self._settings = self._around.settings = settings

    @property
    def next_due_ms(self) -> float | None:
        return self._around.timers.next_due_ms

    def tick(self, now: Now) -> Verdict | None:
        """What one timer brings that is due; None if none is."""
        name = self._around.timers.take_due(now)
        if name is None:
            return None
        if name == EXPIRY:
            return self._expire(now)
        group = self._groups.get(name.group_id)
        if group is None:
            return Decision([])
        verdict = group.rang(name, now)
        self._note_size(name.group_id)
        return verdict

    def follow(self, image: Image, topics_deleted: Collection[str], now: Now) -> Verdict:
        """The cluster's metadata moved on. Offsets of topics that are gone go, too."""
        self._around.image = image
        for group in self._groups.values():
            if isinstance(group, ConsumerGroup):
                group.topics_changed()
        return Decision([], self._offsets.of_topics(set(topics_deleted)) if topics_deleted else [])

    def settle(self, now: Now) -> Verdict | None:
        """After records were replayed: what follows for groups that are of another kind now."""
        if not self._became_classic:
            return None
        verdict: Verdict = Decision([])
        for group_id in sorted(self._became_classic):
            group = self._groups.get(group_id)
            if isinstance(group, ClassicGroup) and not group.is_empty:
                group.begin(now)
                more = group.rebalance(now)
                verdict.response += more.response
                verdict.records += more.records
        self._became_classic.clear()
        return verdict

    def everybody_waiting(self) -> list[Ticket]:
        return [ticket for group in self._groups.values() for ticket in group.everybody_waiting()]

    def _expire(self, now: Now) -> Verdict:
        """Some groups at a time: looking at an offset is quick, and there may be a hundred thousand."""
        records: list[GroupRecord] = []
        looked_at = 0
        self._to_expire = self._to_expire or sorted(self._groups, reverse=True)
        while self._to_expire and looked_at < LOOKED_AT_AT_ONCE and len(records) < MOST_EXPIRED_AT_ONCE:
            group_id = self._to_expire.pop()
            group = self._groups.get(group_id)
            if group is None:
                continue
            count = self._offsets.count_of(group_id)
            looked_at += 1 + count
            gone = self._offsets.expired(
                group_id,
                group.topics_read(),
                group.unused_since_ms,
                self._settings.offsets_retention_ms,
                now.wall_ms,
            )
            records += gone
            if group.is_empty and len(gone) == count:
                records += group.tombstones()
        pause_ms = BETWEEN_SLICES_MS if self._to_expire else self._settings.offsets_check_ms
        self._around.timers.set(EXPIRY, now.monotonic_ms + pause_ms)
        return Decision([], records)

    # The log.

    def replay(self, record: GroupRecord) -> None:
        key, value = record
        if isinstance(key, OffsetCommitKey):
            assert value is None or isinstance(value, OffsetCommitValue)
            self._offsets.replay(key, value)
            if value is not None and key.group not in self._groups:
                # Somebody who assigns partitions to itself: a group without members.
                self._groups[key.group] = ClassicGroup(key.group, self._around)
        elif isinstance(key, GroupMetadataKey):
            assert value is None or isinstance(value, GroupMetadataValue)
            self._replay_classic(key.group, value)
            self._note_size(key.group)
        else:
            self._replay_consumer(key.group, record)
            self._note_size(key.group)

    def _replay_classic(self, group_id: str, value: GroupMetadataValue | None) -> None:
        group = self._groups.get(group_id)
        if value is None:
            if isinstance(group, ClassicGroup):
                del self._groups[group_id]
            return
        if not isinstance(group, ClassicGroup):
            group = self._groups[group_id] = ClassicGroup(group_id, self._around)
            self._became_classic.add(group_id)
        group.replay(value)

    def _replay_consumer(self, group_id: str, record: GroupRecord) -> None:
        group = self._groups.get(group_id)
        if isinstance(record.key, ConsumerGroupMetadataKey) and record.value is None:
            if isinstance(group, ConsumerGroup):
                del self._groups[group_id]
            return
        if not isinstance(group, ConsumerGroup):
            if record.value is None:
                return
            group = self._groups[group_id] = ConsumerGroup(group_id, self._around)
        group.replay(record)

    # Room.

    def _check_room(self, wish: JoinWish | HeartbeatWish, size_bytes: int) -> None:
        group = self._groups.get(wish.group_id)
        before_bytes = 0 if group is None else group.bytes_of(wish.member_id, wish.instance_id)
        self.memory.check(wish.group_id, size_bytes - before_bytes, self._settings)

    def _note_size(self, group_id: str) -> None:
        group = self._groups.get(group_id)
        self.memory.note(group_id, 0 if group is None else group.size_bytes)

    # Finding.

    def _existing(self, group_id: str) -> Group:
        group = self._groups.get(group_id)
        if group is None:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
        return group

    def _group_with_members(self, group_id: str) -> Group:
        group = self._groups.get(group_id)
        if group is None:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        return group

    def _topic_id(self, name: str) -> Uuid:
        topic = self._around.image.topics.get(name)
        return ZERO_UUID if topic is None else topic.topic_id


def _check_group_id(group_id: str) -> None:
    if not group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID)
