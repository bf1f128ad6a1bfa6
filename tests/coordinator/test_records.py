"""Records of `__consumer_offsets`: what goes in comes out, in the bytes Kafka writes; all else is Malformed."""

from contextlib import suppress
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klamm.codec.compiler import encode
from klamm.codec.primitives import Malformed
from klamm.coordinator import records
from klamm.coordinator.records import (
    ClassicMemberValue,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMetadataKey,
    GroupMetadataKey,
    GroupMetadataValue,
    GroupRecord,
    OffsetCommitKey,
    OffsetCommitValue,
    decoded,
    encoded,
)
from tests.codec.drawing import drawn

KINDS = records._KINDS
VERSIONS = [
    (number, version)
    for number, (_, value_type, newest) in KINDS.items()
    if value_type is not None
    for version in range(newest + 1)
]


@pytest.mark.parametrize(("number", "version"), VERSIONS)
def test_what_goes_in_comes_out(number: int, version: int) -> None:
    """Of whatever version it was: what is written again says the same."""
    key_type, value_type, _ = KINDS[number]
    assert value_type is not None

    @given(st.integers(0, 2**32))
    def check(seed: int) -> None:
        random = Random(seed)
        key, value = drawn(random, key_type, 0), drawn(random, value_type, version)
        if isinstance(value, OffsetCommitValue):
            value.expire_timestamp = max(value.expire_timestamp, -1)
        raw_key = number.to_bytes(2, "big") + encode(key, 0)
        record = decoded(raw_key, version.to_bytes(2, "big") + encode(value, version))
        assert record == GroupRecord(key, value)
        again = encoded(record)
        assert again[0] == raw_key
        assert decoded(*again) == record
        assert decoded(memoryview(again[0]), memoryview(again[1] or b"")) == record
        assert decoded(*encoded(GroupRecord(key, None))) == GroupRecord(key, None)

    check()


# Known bytes. Strings in keys have a length of two bytes, flexible values one of a varint, one more than it is.

KEYS = [
    (OffsetCommitKey("g", "t", 3), "0001 000167 000174 00000003"),
    (GroupMetadataKey("g"), "0002 000167"),
    (ConsumerGroupMetadataKey("g"), "0003 000167"),
    (ConsumerGroupPartitionMetadataKey("g"), "0004 000167"),
    (ConsumerGroupMemberMetadataKey("g", "m"), "0005 000167 00016d"),
    (ConsumerGroupTargetAssignmentMetadataKey("g"), "0006 000167"),
    (ConsumerGroupTargetAssignmentMemberKey("g", "m"), "0007 000167 00016d"),
    (ConsumerGroupCurrentMemberAssignmentKey("g", "m"), "0008 000167 00016d"),
    (ConsumerGroupRegularExpressionKey("g", "x"), "0010 000167 000178"),
]


@pytest.mark.parametrize(("key", "known"), KEYS, ids=lambda each: type(each).__name__)
def test_known_keys(key: Any, known: str) -> None:
    assert encoded(GroupRecord(key, None)) == (bytes.fromhex(known), None)
    assert decoded(bytes.fromhex(known), None) == GroupRecord(key, None)


TOPIC_ID = bytes(range(16))
OFFSETS = [
    ("0000", "0000000000000007 00026869 0000000000000009", OffsetCommitValue(7, -1, "hi", 9)),
    ("0001", "0000000000000007 00026869 0000000000000009 000000000000000b", OffsetCommitValue(7, -1, "hi", 9, 11)),
    ("0002", "0000000000000007 00026869 0000000000000009", OffsetCommitValue(7, -1, "hi", 9)),
    ("0003", "0000000000000007 00000005 00026869 0000000000000009", OffsetCommitValue(7, 5, "hi", 9)),
    ("0004", "0000000000000007 00000005 036869 0000000000000009 00", OffsetCommitValue(7, 5, "hi", 9)),
    (
        "0004",
        "0000000000000007 00000005 036869 0000000000000009 01 00 10 " + TOPIC_ID.hex(),
        OffsetCommitValue(7, 5, "hi", 9, topic_id=TOPIC_ID),
    ),
]


@pytest.mark.parametrize(("version", "known", "value"), OFFSETS)
def test_known_offsets(version: str, known: str, value: OffsetCommitValue) -> None:
    key = OffsetCommitKey("g", "t", 3)
    raw_key, raw_value = bytes.fromhex(KEYS[0][1]), bytes.fromhex(version + known)
    assert decoded(raw_key, raw_value) == GroupRecord(key, value)
    assert decoded(b"\0\0" + raw_key[2:], raw_value) == GroupRecord(key, value), "keys of long ago had the number 0"


@pytest.mark.parametrize("which", [1, 3, 5])
def test_offsets_are_written_in_the_version_that_says_all(which: int) -> None:
    version, known, value = OFFSETS[which]
    assert encoded(GroupRecord(OffsetCommitKey("g", "t", 3), value))[1] == bytes.fromhex(version + known)


def test_known_group() -> None:
    member = ClassicMemberValue("m", "i", "c", "/h", 6, 7, b"s", b"a")
    value = GroupMetadataValue("consumer", 2, "range", "m", 9, [member])
    known = (
        "0003 0008 636f6e73756d6572 00000002 0005 72616e6765 0001 6d 0000000000000009 00000001"
        "0001 6d 0001 69 0001 63 0002 2f68 00000006 00000007 00000001 73 00000001 61"
    )
    record = GroupRecord(GroupMetadataKey("g"), value)
    assert encoded(record)[1] == bytes.fromhex(known)
    assert decoded(*encoded(record)) == record


@pytest.mark.parametrize("version", range(5))
def test_groups_of_every_version_are_read(version: int) -> None:
    value = GroupMetadataValue(
        "consumer", 2, None, None, 9, [ClassicMemberValue("m", "i", "c", "/h", 6, 7, b"s", b"a")]
    )
    record = decoded(b"\0\2\0\1g", version.to_bytes(2, "big") + encode(value, version))
    assert record is not None and isinstance(record.value, GroupMetadataValue)
    [member] = record.value.members
    assert (member.member_id, member.session_timeout, member.assignment) == ("m", 7, b"a")
    assert member.rebalance_timeout == (6 if version >= 1 else 0)
    assert record.value.current_state_timestamp == (9 if version >= 2 else -1)
    assert member.group_instance_id == ("i" if version >= 3 else None)


def test_known_epoch() -> None:
    record = GroupRecord(ConsumerGroupMetadataKey("g"), ConsumerGroupMetadataValue(5))
    assert encoded(record)[1] == bytes.fromhex("0000 00000005 00")
    hashed = GroupRecord(ConsumerGroupMetadataKey("g"), ConsumerGroupMetadataValue(5, 1))
    assert encoded(hashed)[1] == bytes.fromhex("0000 00000005 01 00 08 0000000000000001")


# What is not ours, and what is nobody's.


@pytest.mark.parametrize("number", [9, 10, 15, 17, 0x7FFF, 0xFFFF])
def test_other_kinds_are_somebody_elses(number: int) -> None:
    assert decoded(number.to_bytes(2, "big") + b"whatever", b"whatever") is None


def test_the_partition_metadata_of_before_is_never_read() -> None:
    record = decoded(b"\0\4\0\1g", b"\0\0whatever")
    assert record == GroupRecord(ConsumerGroupPartitionMetadataKey("g"), None)


@pytest.mark.parametrize("key", [None, b"", b"\0", b"\0\2", b"\0\2\0\5g", b"\0\2\0\1gg", b"\0\1\0\1g\0\1t\0\0\0"])
def test_keys_that_are_none(key: bytes | None) -> None:
    with pytest.raises(Malformed):
        decoded(key, None)


@pytest.mark.parametrize(
    "value", [b"", b"\0", b"\0\5" + bytes(40), b"\xff\xff" + bytes(40), b"\0\3\0", b"\0\4" + bytes(9)]
)
def test_values_that_are_none(value: bytes) -> None:
    with pytest.raises(Malformed):
        decoded(b"\0\1\0\1g\0\1t\0\0\0\3", value)


@given(st.sampled_from(sorted(KINDS)), st.binary(max_size=30), st.integers(0, 5), st.binary(max_size=60))
def test_any_bytes_are_a_record_or_malformed(number: int, key: bytes, version: int, value: bytes) -> None:
    with suppress(Malformed):
        decoded(number.to_bytes(2, "big") + key, version.to_bytes(2, "big") + value)
    raw_key = bytes.fromhex(dict(zip(sorted(KINDS), (known for _, known in KEYS), strict=True))[number])
    with suppress(Malformed):
        assert decoded(raw_key, version.to_bytes(2, "big") + value) is not None
