"""Varints, lengths, counts and tags inside requests that are wrong in themselves."""

import struct

import pytest

from klamm.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from klamm.wire.messages.metadata import MetadataRequest
from tests.hostile.raw import body_of, framed, header
from tests.hostile.target import NAMED, Target

METADATA, METADATA_VERSION = 3, 12
FLEXIBLE_HEADER = header(METADATA, METADATA_VERSION) + b"\0"
FLAGS = b"\0\0\0"
"""Two booleans and no tags: how a Metadata request ends."""

INT32_MAX = 2**31 - 1


# Varints and lengths.


@pytest.mark.parametrize(
    "count",
    [
        b"\xff\xff\xff\xff\xff\x01",
        b"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00",
        b"\xff\xff\xff\xff\x7f",
        b"\xff\xff\xff\xff\x0f",
        b"\xff\xff\xff\xff\x07",
        b"\x80\x80\x80\x80",
        b"\x80",
    ],
    ids=bytes.hex,
)
def test_a_count_that_is_no_varint_or_more_than_there_is_closes_the_connection(target: Target, count: bytes) -> None:
    with target.connect() as client:
        client.send_bytes(framed(FLEXIBLE_HEADER + count + (FLAGS if len(count) > 1 else b"")))
        assert client.is_closed_by_broker()


def test_a_varint_longer_than_needed_is_read_as_kafka_reads_it(target: Target) -> None:
    with target.connect() as client:
        client.send_bytes(framed(FLEXIBLE_HEADER + b"\x81\x80\x80\x80\x00" + FLAGS))
        assert client.answer_to(MetadataRequest(), METADATA_VERSION, correlation_id=1).topics == []


def test_a_compact_length_of_0_is_null_and_of_1_is_empty(target: Target, topic: str) -> None:
    """TRAPS 11: no topics at all, or all of them."""
    target.create_topic(topic)
    with target.connect() as client:
        client.send_bytes(framed(FLEXIBLE_HEADER + b"\x00" + FLAGS) + framed(FLEXIBLE_HEADER + b"\x01" + FLAGS))
        everything = client.answer_to(MetadataRequest(), METADATA_VERSION, correlation_id=1)
        assert topic in [each.name for each in everything.topics]
        assert client.answer_to(MetadataRequest(), METADATA_VERSION, correlation_id=1).topics == []


def test_null_where_it_is_not_allowed_closes_the_connection(target: Target) -> None:
    with target.connect() as client:
        client.send_bytes(framed(header(19, 7) + b"\0" + b"\x00" + struct.pack(">i?x", 1000, False)))
        assert client.is_closed_by_broker(), "CreateTopics of null"
    with target.connect() as client:
        client.send_bytes(framed(header(19, 2) + struct.pack(">iih", 1, -1, -1)))
        assert client.is_closed_by_broker(), "a topic without a name"


@pytest.mark.parametrize("count", [-2, -(2**31), 1, 2**16 - 1, INT32_MAX])
def test_an_array_length_that_cannot_be_closes_the_connection(target: Target, count: int) -> None:
    """Kafka takes every negative length for null; only -1 ever is."""
    with target.connect() as client:
        client.send_bytes(framed(header(METADATA, 1) + struct.pack(">i", count)))
        assert client.is_closed_by_broker()


@pytest.mark.parametrize("length", [-2, -32768, 5, 32767])
def test_a_string_length_that_cannot_be_closes_the_connection(target: Target, length: int) -> None:
    with target.connect() as client:
        client.send_bytes(framed(header(METADATA, 1) + struct.pack(">ih", 1, length) + b"name"))
        assert client.is_closed_by_broker()


def test_a_name_that_is_no_text_closes_the_connection(target: Target) -> None:
    with target.connect() as client:
        client.send_bytes(framed(header(METADATA, 1) + struct.pack(">ih", 1, 4) + b"\xc3\x28\xff\xfe"))
        assert client.is_closed_by_broker()


# Tags.


@pytest.mark.parametrize(
    "tags",
    [
        b"\x02\x00\x00\x00\x00",
        b"\x02\x05\x00\x04\x00",
        b"\x02\x05\x00\x05\x00",
        b"\x01\x05\x7f",
        b"\x05\x01\x00\x02\x00",
        b"\x7f\x01\x00",
        b"\xff\xff\xff\xff\x07",
    ],
    ids=["the first twice", "descending", "twice", "longer than the rest", "fewer", "many fewer", "a bomb"],
)
def test_tags_in_the_body_that_do_not_fit_close_the_connection(target: Target, tags: bytes) -> None:
    with target.connect() as client:
        client.send_bytes(framed(FLEXIBLE_HEADER + b"\x01" + b"\0\0" + tags))
        assert client.is_closed_by_broker()


def test_unknown_tags_are_skipped(target: Target) -> None:
    tags = b"\x03\x00\x00\x05\x03abc\x90\x4e\x01x"
    with target.connect() as client:
        client.send_bytes(framed(header(METADATA, METADATA_VERSION) + tags + b"\x01" + b"\0\0" + tags))
        assert client.answer_to(MetadataRequest(), METADATA_VERSION, correlation_id=1).topics == []


# Arrays that multiply.


def test_arrays_that_multiply_run_out_of_budget_before_memory(fresh_target: Target) -> None:
    """CVE-2026-111108: bytes that become many more bytes of objects."""
    before = fresh_target.peak_mib()
    many = FetchTopic(topic="t", partitions=[FetchPartition(partition=0)] * 1000)
    request = FetchRequest(topics=[many] * 1000, session_epoch=-1)
    with fresh_target.connect() as client:
        client.send_bytes(framed(body_of(request, NAMED)))
        assert client.is_closed_by_broker()
    with fresh_target.connect() as client:
        names = b"\x01" * 20_000_000
        client.send_bytes(framed(header(10, 6) + b"\0" + b"\0" + b"\x81\xda\xc4\x09" + names + b"\0"))
        assert client.is_closed_by_broker(), "20 million empty coordinator keys"
    assert fresh_target.peak_mib() - before < 150
    fresh_target.check_memory()
