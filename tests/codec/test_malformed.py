"""Bytes that are no message: each becomes `Malformed`, and none becomes much memory."""

import random
import tracemalloc
from struct import error as struct_error
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from klamm.codec.compiler import DEFAULT_BUDGET, decode, encode
from klamm.codec.primitives import Malformed, read_unsigned_varint, skip_tags, write_unsigned_varint
from klamm.codec.schema import array, int16, int32, message, nested, string, struct
from klamm.wire.messages.offset_commit import OffsetCommitRequest
from klamm.wire.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest, Subtopology, Topology
from tests.codec.drawing import drawn, every_message

EVERY_MESSAGE = list(every_message())


@struct
class Inner:
    values: list[int] = array(int32())
    name: str | None = string(nullable="0+", default=None)


@message(versions="0-1", flexible="1+")
class Outer:
    title: str = string()
    inner: list[Inner] = array(Inner)
    codes: list[int] | None = array(int16(), nullable="0+", default=None)
    one: Inner | None = nested(Inner, versions="1+", nullable="1+", default=None)
    tagged: list[int] = array(int32(), versions="1+", tag=1, tagged="1+")
    note: str = string(versions="1+", tag=4, tagged="1+")


def refused(version: int, data: bytes | str, why: str | None = None) -> None:
    with pytest.raises(Malformed, match=why):
        decode(Outer, version, bytes.fromhex(data) if isinstance(data, str) else data)


# Version 1 of Outer, piece by piece: title "", no inner, null codes, null `one`, no tags.
EMPTY = "01" + "01" + "00" + "ff" + "00"


def test_the_smallest_message_there_is() -> None:
    assert encode(Outer(), 1).hex() == EMPTY
    assert decode(Outer, 1, bytes.fromhex(EMPTY), exact=True) == Outer()


def test_bytes_after_the_message_are_ignored_as_kafka_does_unless_they_must_not_be() -> None:
    data = bytes.fromhex(EMPTY + "0000")
    assert decode(Outer, 1, data) == Outer()
    with pytest.raises(Malformed, match="2 bytes too many"):
        decode(Outer, 1, data, exact=True)


@given(st.integers(0, 2**32 - 1))
def test_varints_come_back(value: int) -> None:
    out = bytearray()
    write_unsigned_varint(out, value)
    assert read_unsigned_varint(bytes(out), 0) == (value, len(out))
    assert len(out) == max(1, -(-value.bit_length() // 7))


@pytest.mark.parametrize("data", ["8080808080" + "01", "ffffffffff" + "0f", "ffffffff10", "8080808070"])
def test_a_varint_over_five_bytes_or_32_bits(data: str) -> None:
    with pytest.raises(Malformed, match="32 bits"):
        read_unsigned_varint(bytes.fromhex(data), 0)


def test_a_varint_longer_than_it_needs_is_read_as_kafka_reads_it() -> None:
    assert read_unsigned_varint(bytes.fromhex("8100"), 0) == (1, 2)
    assert read_unsigned_varint(bytes.fromhex("8180808000"), 0) == (1, 5)
    assert decode(Outer, 1, bytes.fromhex("8100" + EMPTY[2:]), exact=True) == Outer()


def test_a_varint_that_ends_in_the_middle() -> None:
    refused(1, "80", "ends too early")


def test_compact_length_zero_is_null_and_one_is_empty() -> None:
    refused(1, "00" + EMPTY[2:], "title: null")
    refused(1, "01" + "00", "inner: null")
    assert decode(Outer, 1, bytes.fromhex("01" + "01" + "01" + "ff" + "00")).codes == []
    assert decode(Outer, 1, bytes.fromhex("01" + "01" + "00" + "ff" + "00")).codes is None


def test_a_negative_length_other_than_minus_one() -> None:
    refused(0, "ffff", "title: null")
    refused(0, "fffe", "title: null")
    refused(0, "0000" + "ffffffff", "inner: null")
    refused(0, "0000" + "00000000" + "fffffffe", "codes: negative length")
    refused(0, "0000" + "00000000" + "80000000", "codes: negative length")
    assert decode(Outer, 0, bytes.fromhex("0000" + "00000000" + "ffffffff")).codes is None


def test_a_length_over_the_bytes_that_remain() -> None:
    refused(1, "03" + "61", "title: longer")
    refused(0, "0002" + "61", "title: longer")
    refused(1, "01" + "fe7f", "inner: more elements than bytes")
    refused(0, "0000" + "7fffffff", "inner: more elements than bytes")
    refused(0, "0000" + "00000000" + "00000002" + "0001", "codes: more elements than bytes")


def test_a_count_is_held_against_the_smallest_element_not_against_bytes() -> None:
    """CVE-2026-111108: as many objects as bytes remain is already too many."""
    element = "01" + "00" + "00"
    refused(1, "01" + "05" + element * 3, "inner: more elements than bytes")


def test_a_string_over_kafkas_limit() -> None:
    refused(1, b"\x81\x80\x02" + b"a" * 32_768, "string over 32767 bytes")


def test_text_that_is_no_utf8() -> None:
    refused(1, "02" + "ff" + EMPTY[2:], "utf-8")
    refused(1, "03" + "eda0" + EMPTY[2:], "utf-8")


def test_unknown_tags_are_skipped() -> None:
    data = EMPTY[:-2] + "03" + "00" + "02" + "aabb" + "02" + "00" + "7f" + "01" + "cc"
    assert decode(Outer, 1, bytes.fromhex(data), exact=True) == Outer()


def test_known_tags_between_unknown_ones_are_read() -> None:
    data = EMPTY[:-2] + "03" + "00" + "00" + "01" + "05" + "02" + "00000007" + "04" + "03" + "03" + "6869"
    assert decode(Outer, 1, bytes.fromhex(data), exact=True) == Outer(tagged=[7], note="hi")


@pytest.mark.parametrize("tags", ["02" + "0400" * 2, "02" + "0500" + "0300", "02" + "0101" + "01" + "0101" + "01"])
def test_duplicate_and_unordered_tags(tags: str) -> None:
    refused(1, EMPTY[:-2] + tags)


def test_a_tagged_field_that_is_not_as_long_as_its_tag_says() -> None:
    refused(1, EMPTY[:-2] + "01" + "01" + "06" + "02" + "00000007" + "00", "not as long")
    refused(1, EMPTY[:-2] + "01" + "01" + "04" + "02" + "00000007", "not as long")


def test_a_tag_that_is_longer_than_the_message() -> None:
    refused(1, EMPTY[:-2] + "01" + "09" + "05" + "00", "tag 9 of 5 bytes")


def test_tag_count_bomb() -> None:
    """CVE-2026-111115: two bytes a tag became an object each, before anybody had logged in."""
    bomb = b"".join(bytes((128 | i & 127, 128 | i >> 7 & 127, i >> 14, 0)) for i in range(200_000))
    count = bytearray()
    write_unsigned_varint(count, 200_000)
    refused(1, bytes.fromhex(EMPTY[:-2]) + bytes(count) + bomb, "tagged fields")
    with pytest.raises(Malformed, match="over 127"):
        skip_tags(bomb, 0, 200)


def test_nested_arrays_cannot_multiply() -> None:
    """The budget is the whole message's: many arrays of many elements count together."""
    data = encode(Outer(inner=[Inner(values=[0] * 30) for _ in range(30)]), 1)
    assert decode(Outer, 1, data, budget=30 * 2 + 30 * 30) is not None
    with pytest.raises(Malformed, match="budget"):
        decode(Outer, 1, data, budget=30 * 2 + 30 * 30 - 1)


def test_a_message_cut_at_every_byte() -> None:
    value = Outer("title", [Inner([1, 2], "a"), Inner()], [3], Inner([4]), [5], "note")
    data = encode(value, 1)
    for end in range(len(data)):
        with pytest.raises(Malformed):
            decode(Outer, 1, data[:end])


@pytest.mark.parametrize(("key", "cls", "version"), EVERY_MESSAGE[:: len(EVERY_MESSAGE) // 40])
def test_every_message_cut_short(key: int, cls: type, version: int) -> None:
    data = encode(drawn(random.Random(key), cls, version), version)
    for end in {0, 1, len(data) // 2, len(data) - 1} & set(range(len(data))):
        with pytest.raises(Malformed):
            decode(cls, version, data[:end])


@settings(max_examples=500, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(EVERY_MESSAGE), st.binary(max_size=400))
def test_arbitrary_bytes_are_a_message_or_malformed(message_type: tuple[int, type[Any], int], data: bytes) -> None:
    _, cls, version = message_type
    try:
        value = decode(cls, version, data)
    except Malformed:
        return
    again = encode(value, version)
    assert encode(decode(cls, version, again, exact=True), version) == again


@settings(max_examples=500, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(EVERY_MESSAGE), st.integers(0, 2**32), st.data())
def test_a_message_with_wrong_bytes_in_it_is_a_message_or_malformed(
    message_type: tuple[int, type, int], seed: int, data: st.DataObject
) -> None:
    _, cls, version = message_type
    broken = bytearray(encode(drawn(random.Random(seed), cls, version), version))
    for position in data.draw(st.lists(st.integers(0, max(0, len(broken) - 1)), max_size=4)):
        if broken:
            broken[position] = data.draw(st.sampled_from((0, 1, 2, 0x7F, 0x80, 0xFE, 0xFF)))
    try:
        decode(cls, version, broken)
    except Malformed:
        return


def peak_bytes_of_reading(cls: type, version: int, data: bytes, budget: int = DEFAULT_BUDGET) -> int:
    encode(cls(), version)  # Compiles what has to be compiled.
    tracemalloc.start()
    try:
        decode(cls, version, data, budget=budget)
    except Malformed:
        pass
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    return peak


def test_a_count_over_the_budget_allocates_nothing() -> None:
    """Two million topics of four bytes each: refused by their number, before the first of them is made."""
    head = encode(OffsetCommitRequest(group_id="g"), 9)
    start = head.rindex(b"\x01")  # The empty list of topics.
    count = bytearray()
    write_unsigned_varint(count, 2_000_001)
    hostile = head[:start] + bytes(count) + b"\x01\x01\x00" * 2_000_000 + b"\x00"
    assert peak_bytes_of_reading(OffsetCommitRequest, 9, hostile) < 64_000


def test_within_the_budget_an_object_costs_about_a_hundred_bytes() -> None:
    """The most generous structure there is: eight bytes become an object with six lists, which counts as seven."""
    budget = 7_000
    data = encode(StreamsGroupHeartbeatRequest(topology=Topology(0, [Subtopology()] * (budget // 7))), 0)
    assert peak_bytes_of_reading(StreamsGroupHeartbeatRequest, 0, data, budget) < budget * 100
    assert DEFAULT_BUDGET * 100 < 32_000_000


def test_numbers_that_do_not_fit_are_our_own_mistake() -> None:
    with pytest.raises(struct_error):
        encode(Outer(codes=[2**15]), 0)
