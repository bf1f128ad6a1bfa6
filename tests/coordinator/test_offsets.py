"""Committed offsets against a dict: commits, deletions, expiry, topics that go and come back."""

from collections.abc import Iterable
from random import Random

import pytest

from klamm.coordinator.offsets import Offsets
from klamm.coordinator.records import GroupRecord, OffsetCommitKey, OffsetCommitValue
from klamm.coordinator.wishes import CommittedOffset, OffsetToCommit
from klamm.errors import ErrorCode
from klamm.ids import ZERO_UUID

FIRST, SECOND = b"1" * 16, b"2" * 16
RETENTION_MS = 100


def replay(offsets: Offsets, records: Iterable[GroupRecord]) -> None:
    for key, value in records:
        assert isinstance(key, OffsetCommitKey) and (value is None or isinstance(value, OffsetCommitValue))
        offsets.replay(key, value)


def committed(*each: OffsetToCommit, group_id: str = "g", now_ms: int = 0, retention_ms: int = -1) -> Offsets:
    offsets = Offsets()
    records, codes = offsets.commit(group_id, each, retention_ms, 4_096, now_ms)
    assert not any(codes)
    replay(offsets, records)
    return offsets


def nowhere(topic: str) -> bytes:
    return ZERO_UUID


def places(records: Iterable[GroupRecord]) -> set[tuple[str, str, int]]:
    assert all(value is None for _, value in records)
    return {(key.group, key.topic, key.partition) for key, _ in records if isinstance(key, OffsetCommitKey)}


def test_a_commit_is_not_there_before_its_record_is() -> None:
    offsets = Offsets()
    records, codes = offsets.commit("g", [OffsetToCommit("t", 0, 5, 3, "note")], -1, 4, 9)
    assert codes == [ErrorCode.NONE] and offsets.committed("g", None, nowhere) == {}
    replay(offsets, records)
    assert offsets.committed("g", None, nowhere) == {("t", 0): CommittedOffset(5, 3, "note")}
    assert offsets.committed("other", None, nowhere) == {}
    assert offsets.committed("g", [("t", 1)], nowhere) == {}


@pytest.mark.parametrize(
    ("metadata", "fits"), [("a" * 10, True), ("a" * 11, False), ("ä" * 10, True), ("𝄞" * 6, False)]
)
def test_the_limit_of_metadata_counts_as_java_does(metadata: str, fits: bool) -> None:
    """Characters, not bytes; those beyond the sixteen-bit ones are two."""
    wishes = [OffsetToCommit("t", 0, 5, metadata=metadata), OffsetToCommit("t", 1, 6)]
    records, codes = Offsets().commit("g", wishes, -1, 10, 0)
    assert codes == [ErrorCode.NONE if fits else ErrorCode.OFFSET_METADATA_TOO_LARGE, ErrorCode.NONE]
    assert len(records) == 1 + fits, "the others are committed all the same"


def test_a_topic_of_the_same_name_does_not_inherit() -> None:
    offsets = committed(OffsetToCommit("t", 0, 5, topic_id=FIRST), OffsetToCommit("t", 1, 6))
    known = {("t", 0), ("t", 1)}
    assert set(offsets.committed("g", None, lambda topic: FIRST)) == known
    assert set(offsets.committed("g", None, lambda topic: SECOND)) == {("t", 1)}, "who told no id means the name"
    assert set(offsets.committed("g", sorted(known), lambda topic: SECOND)) == {("t", 1)}
    assert set(offsets.committed("g", None, nowhere)) == known, "gone, or not heard of yet"


def test_deletion_is_of_what_there_is() -> None:
    offsets = committed(OffsetToCommit("t", 0, 5), OffsetToCommit("u", 0, 5))
    assert places(offsets.deletion("g", [("t", 0), ("t", 1)])) == {("g", "t", 0)}
    assert offsets.deletion("other", [("t", 0)]) == []
    assert places(offsets.of_topics({"u", "v"})) == {("g", "u", 0)}


def test_what_a_client_of_long_ago_asked_for_counts_alone() -> None:
    offsets = committed(OffsetToCommit("t", 0, 5), now_ms=1_000, retention_ms=7)
    assert offsets.expired("g", frozenset(), None, 0, 1_006) == []
    assert places(offsets.expired("g", frozenset(), None, 0, 1_007)) == {("g", "t", 0)}
    assert offsets.expired("g", frozenset("t"), None, 0, 1_007) == [], "but not while it is read"


def test_expiry_is_from_when_the_group_says() -> None:
    offsets = committed(OffsetToCommit("t", 0, 5), OffsetToCommit("read", 0, 5), now_ms=1_000)
    read = frozenset({"read"})
    assert offsets.expired("g", read, 1_050, RETENTION_MS, 1_149) == []
    assert places(offsets.expired("g", read, 1_050, RETENTION_MS, 1_150)) == {("g", "t", 0)}
    assert offsets.expired("g", read, 950, RETENTION_MS, 1_099) == [], "what was committed later is as old as that"
    assert offsets.expired("g", None, 1_050, RETENTION_MS, 9_999) == [], "nobody can tell what is read"


@pytest.mark.parametrize("seed", range(30))
def test_any_history(seed: int) -> None:
    random = Random(seed)
    offsets = Offsets()
    naive: dict[tuple[str, str, int], tuple[int, int]] = {}
    for now_ms in range(0, 1_500, 5):
        group, topic, partition = random.choice("gh"), random.choice("tuv"), random.randrange(3)
        place = (group, topic, partition)
        match random.randrange(5):
            case 0 | 1:
                wish = OffsetToCommit(topic, partition, now_ms)
                records = offsets.commit(group, [wish], -1, 10, now_ms)[0]
                naive[place] = (now_ms, now_ms)
            case 2:
                records = offsets.deletion(group, [(topic, partition)])
                naive.pop(place, None)
            case 3:
                records = offsets.expired(group, frozenset("v"), None, RETENTION_MS, now_ms)
                old = [each for each, (_, ms) in naive.items() if each[0] == group and now_ms - ms >= RETENTION_MS]
                for each in old:
                    if each[1] != "v":
                        del naive[each]
            case _:
                gone = {topic} if random.random() < 0.1 else set()
                records = offsets.of_topics(gone)
                naive = {each: value for each, value in naive.items() if each[1] not in gone}
        replay(offsets, records)
        for name in "gh":
            found = {(name, *place): each.offset for place, each in offsets.committed(name, None, nowhere).items()}
            assert found == {each: value[0] for each, value in naive.items() if each[0] == name}
            assert {(name, *place) for place in offsets.places_of(name)} == set(found)
        assert set(offsets._by_group) == {each[0] for each in naive}, "a group without offsets takes no room"
