"""How far each group has read: the committed offsets of one shard.

An offset is what the last record of its key says. Offsets that nobody has asked to keep are forgotten: those of a group
that was empty for `offsets.retention.minutes`, those of topics that a group no longer reads, those of topics that are
gone. An offset remembers the id of the topic it was committed for, where the client told: a topic of the same name that
was created later does not inherit it.
"""

from collections.abc import Callable, Container, Iterable, Sequence
from typing import TypeAlias

from klamm.coordinator.records import GroupRecord, OffsetCommitKey, OffsetCommitValue
from klamm.coordinator.wishes import CommittedOffset, OffsetToCommit
from klamm.errors import ErrorCode
from klamm.ids import ZERO_UUID

Place: TypeAlias = tuple[str, int]
"""A topic's name and a partition."""


class Offsets:
    def __init__(self) -> None:
        self._by_group: dict[str, dict[Place, OffsetCommitValue]] = {}

    # Deciding.

    def commit(
        self, group_id: str, offsets: Sequence[OffsetToCommit], retention_ms: int, longest_metadata: int, now_ms: int
    ) -> tuple[list[GroupRecord], list[ErrorCode]]:
        """What to write, and what to tell of each."""
        records, codes = [], []
        for each in offsets:
            if _java_length(each.metadata) > longest_metadata:
                codes.append(ErrorCode.OFFSET_METADATA_TOO_LARGE)
                continue
            value = OffsetCommitValue(
                offset=each.offset,
                leader_epoch=each.leader_epoch,
                metadata=each.metadata,
                commit_timestamp=now_ms,
                expire_timestamp=now_ms + retention_ms if retention_ms >= 0 else -1,
                topic_id=each.topic_id,
            )
            records.append(GroupRecord(OffsetCommitKey(group_id, each.topic, each.partition), value))
            codes.append(ErrorCode.NONE)
        return records, codes

    def deletion(self, group_id: str, places: Iterable[Place]) -> list[GroupRecord]:
        known = self._by_group.get(group_id, {})
        return [_tombstone(group_id, place) for place in places if place in known]

    def of_topics(self, gone: set[str]) -> list[GroupRecord]:
        """Tombstones for what was committed for topics that are no more."""
        return [
            _tombstone(group_id, place)
            for group_id, known in self._by_group.items()
            for place in known
            if place[0] in gone
        ]

    def expired(
        self,
        group_id: str,
        read: frozenset[str] | None,
        unused_since_ms: int | None,
        retention_ms: int,
        now_ms: int,
    ) -> list[GroupRecord]:
        """Tombstones for what has outlived its time. What is being read does not grow old; None reads anything."""
        if read is None:
            return []
        found = []
        for place, value in self._by_group.get(group_id, {}).items():
            if place[0] in read:
                continue
            if value.expire_timestamp >= 0:
                # A client of long ago said itself how long.
                is_over = now_ms >= value.expire_timestamp
            else:
                since_ms = max(value.commit_timestamp, unused_since_ms or value.commit_timestamp)
                is_over = now_ms - since_ms >= retention_ms
            if is_over:
                found.append(_tombstone(group_id, place))
        return found

    def of_other_topics(self, known: Container[str]) -> list[GroupRecord]:
        """Tombstones for what was committed for topics that are not among these."""
        return [
            _tombstone(group_id, place)
            for group_id, places in self._by_group.items()
            for place in places
            if place[0] not in known
        ]

    # Looking.

    def committed(
        self, group_id: str, places: Sequence[Place] | None, topic_id: Callable[[str], bytes]
    ) -> dict[Place, CommittedOffset]:
        """`topic_id` is that of the topic which has the name now."""
        known = self._by_group.get(group_id, {})
        found = {}
        for place in known if places is None else places:
            value = known.get(place)
            if value is None:
                continue
            if value.topic_id != ZERO_UUID and topic_id(place[0]) not in (ZERO_UUID, value.topic_id):
                continue
            found[place] = CommittedOffset(value.offset, value.leader_epoch, value.metadata)
        return found

    def positions_of(self, group_id: str) -> list[tuple[Place, int]]:
        """Where the group stands, of topics that are there or were."""
        return [(place, value.offset) for place, value in self._by_group.get(group_id, {}).items()]

    def places_of(self, group_id: str) -> list[Place]:
        return list(self._by_group.get(group_id, ()))

    def count_of(self, group_id: str) -> int:
        return len(self._by_group.get(group_id, ()))

    # The log.

    def replay(self, key: OffsetCommitKey, value: OffsetCommitValue | None) -> None:
        place = (key.topic, key.partition)
        if value is not None:
            self._by_group.setdefault(key.group, {})[place] = value
            return
        known = self._by_group.get(key.group)
        if known is not None:
            known.pop(place, None)
            if not known:
                del self._by_group[key.group]


def _java_length(text: str) -> int:
    """UTF-16 code units, which is what Kafka's limit counts."""
    return len(text) if text.isascii() else len(text.encode("utf-16-be", "surrogatepass")) // 2


def _tombstone(group_id: str, place: Place) -> GroupRecord:
    return GroupRecord(OffsetCommitKey(group_id, *place), None)
