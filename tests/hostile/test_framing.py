"""Bytes that are no frames, frames that are no requests, and requests that nobody serves."""

import struct

import pytest

from klamm.errors import ErrorCode
from klamm.wire.apis import API_BY_KEY
from klamm.wire.frames import DEFAULT_LIMIT_BYTES
from klamm.wire.messages.api_versions import ApiVersionsRequest
from klamm.wire.messages.metadata import MetadataRequest
from tests.hostile.raw import api_called, body_of, framed, header
from tests.hostile.target import Target

API_VERSIONS = ApiVersionsRequest(client_software_name="hostile", client_software_version="1")
VERSIONS_BODY = body_of(API_VERSIONS, 3)

TLS_CLIENT_HELLO = bytes.fromhex("16030100c8010000c40303") + bytes(range(1, 193))
HTTP_GET = b"GET /metrics HTTP/1.1\r\nHost: broker:9092\r\nAccept: */*\r\n\r\n"
SASL_PLAIN_TOKEN = b"\0\0\0\x0b\0admin\0admin"


@pytest.mark.parametrize("size", [0, -1, -(2**31), 2**31 - 1, DEFAULT_LIMIT_BYTES + 1])
def test_a_frame_of_impossible_size_closes_the_connection(target: Target, size: int) -> None:
    with target.connect() as client:
        client.send_bytes(struct.pack(">i", size))
        if size == 0:
            client.send_bytes(framed(VERSIONS_BODY))
        assert client.is_closed_by_broker()


@pytest.mark.parametrize("size", range(1, 14))
def test_a_frame_too_short_for_a_header_closes_the_connection(target: Target, size: int) -> None:
    with target.connect() as client:
        client.send_bytes(framed(VERSIONS_BODY[:size]))
        assert client.is_closed_by_broker()


@pytest.mark.parametrize(
    "words", [HTTP_GET, TLS_CLIENT_HELLO, SASL_PLAIN_TOKEN, b"\r\n" * 40, bytes(64), b"\xff" * 64], ids=repr
)
def test_another_protocol_is_shown_the_door(target: Target, words: bytes) -> None:
    with target.connect() as client:
        client.send_bytes(words)
        assert client.is_closed_by_broker()


def test_a_frame_cut_at_each_byte_harms_nobody(target: Target) -> None:
    whole = framed(VERSIONS_BODY)
    for length in range(len(whole)):
        with target.connect() as client:
            client.send_bytes(whole[:length])


def test_a_frame_sent_byte_by_byte_is_answered(target: Target) -> None:
    with target.connect() as client:
        for position in range(len(whole := framed(VERSIONS_BODY))):
            client.send_bytes(whole[position : position + 1])
        assert client.answer_to(API_VERSIONS, 3, correlation_id=1).error_code == 0


def test_two_frames_in_one_packet_are_two_requests(target: Target) -> None:
    with target.connect() as client:
        client.send_bytes(framed(body_of(API_VERSIONS, 3, 7)) + framed(body_of(MetadataRequest(topics=[]), 12, 8)))
        assert client.answer_to(API_VERSIONS, 3, correlation_id=7).error_code == 0
        assert client.answer_to(MetadataRequest(), 12, correlation_id=8).topics == []


def test_a_request_before_a_bad_one_in_the_same_packet_is_answered_first(target: Target) -> None:
    with target.connect() as client:
        client.send_bytes(framed(body_of(API_VERSIONS, 3, 7)) + framed(header(999, 0)))
        assert client.answer_to(API_VERSIONS, 3, correlation_id=7).error_code == 0
        assert client.is_closed_by_broker()


def test_a_request_before_an_impossible_size_in_the_same_packet_is_answered_first(target: Target) -> None:
    with target.connect() as client:
        client.send_bytes(framed(body_of(API_VERSIONS, 3, 7)) + struct.pack(">i", -5))
        assert client.answer_to(API_VERSIONS, 3, correlation_id=7).error_code == 0
        assert client.is_closed_by_broker()


def test_nothing_after_a_bad_request_is_heard(target: Target) -> None:
    with target.connect() as client:
        client.send_bytes(framed(header(999, 0)) + framed(VERSIONS_BODY))
        assert client.is_closed_by_broker()


def test_bytes_after_the_body_are_ignored_as_kafka_does(target: Target) -> None:
    with target.connect() as client:
        client.send_bytes(framed(body_of(MetadataRequest(topics=[]), 12) + b"and then some"))
        assert client.answer_to(MetadataRequest(), 12, correlation_id=1).topics == []


@pytest.mark.parametrize("key", [-1, -32768, 4, 5, 6, 7, 93, 999, 32767])
def test_an_unknown_api_closes_the_connection(target: Target, key: int) -> None:
    with target.connect() as client:
        client.send_bytes(framed(header(key, 0) + b"\0\0\0\0\0\0\0\0"))
        assert client.is_closed_by_broker()


@pytest.mark.parametrize("name", ["Produce", "Fetch", "Metadata", "CreateTopics", "DescribeCluster"])
def test_a_version_outside_the_range_closes_the_connection(target: Target, name: str) -> None:
    api = api_called(name)
    for version in (-1, api.min_version - 1, api.max_version + 1, 32767):
        with target.connect() as client:
            client.send_bytes(framed(header(api.key, version) + b"\0\0\0\0\0\0\0\0"))
            assert client.is_closed_by_broker(), f"{name} version {version}"


def test_an_api_of_the_controllers_is_not_served_to_clients(target: Target) -> None:
    for key, api in sorted(API_BY_KEY.items()):
        if api.listener == "controller":
            with target.connect() as client:
                client.send_bytes(framed(header(key, api.max_version) + bytes(40)))
                assert client.is_closed_by_broker(), api.name


@pytest.mark.parametrize("version", [5, 99, 32767, -1])
def test_an_unknown_version_of_api_versions_is_answered_in_version_0(target: Target, version: int) -> None:
    """TRAPS 2: it is how clients find out what to ask instead; its body is not looked at."""
    with target.connect() as client:
        client.send_bytes(framed(header(18, version, correlation_id=77) + b"\0\xff\xff\xff\xff nonsense"))
        response = client.answer_to(API_VERSIONS, 0, correlation_id=77)
        assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
        assert any(each.api_key == 18 and each.max_version >= 3 for each in response.api_keys)
        assert client.ask(API_VERSIONS, 3).error_code == 0, "and the connection goes on"


def test_software_names_with_strange_characters_are_an_invalid_request(target: Target) -> None:
    with target.connect() as client:
        for name in ("", "-x", "x y", "x\n", "ключ", "x" * 5000 + "-"):
            request = ApiVersionsRequest(client_software_name=name, client_software_version="1")
            assert client.ask(request, 3).error_code == ErrorCode.INVALID_REQUEST, name


def test_a_null_an_empty_and_the_longest_client_id_are_fine(target: Target) -> None:
    with target.connect() as client:
        for client_id in (None, b"", b"c" * 32767, "ключ".encode()):
            client.send_bytes(framed(header(3, 1, 5, client_id) + struct.pack(">i", 0)))
            assert client.answer_to(MetadataRequest(), 1, correlation_id=5).topics == []


@pytest.mark.parametrize("length", [-2, -32768, 20, 32767])
def test_a_client_id_of_impossible_length_closes_the_connection(target: Target, length: int) -> None:
    """Kafka takes every negative length for null; only -1 ever is."""
    with target.connect() as client:
        client.send_bytes(framed(struct.pack(">hhih", 3, 1, 5, length) + b"\0\0\0\0"))
        assert client.is_closed_by_broker()


def test_a_client_id_that_is_no_text_closes_the_connection(target: Target) -> None:
    """Kafka reads it with replacement characters."""
    with target.connect() as client:
        client.send_bytes(framed(header(3, 1, 5, b"\xff\xfe\x80") + b"\0\0\0\0"))
        assert client.is_closed_by_broker()


@pytest.mark.parametrize(
    "tags", [b"\xff\xff\xff\xff\x07", b"\x80\x80\x80\x80\x10", b"\xff" * 10, b"\x7f", b"\x01\x00\xff\xff\xff\xff\x0f"]
)
def test_tags_of_the_header_that_do_not_fit_close_the_connection(target: Target, tags: bytes) -> None:
    """CVE-2026-111115: their count alone let anybody fill the memory, before authentication."""
    with target.connect() as client:
        client.send_bytes(framed(header(18, 3) + tags + b"\0" * 64))
        assert client.is_closed_by_broker()


def test_a_header_full_of_tags_costs_nothing(fresh_target: Target) -> None:
    """CVE-2026-111115: two bytes each, millions of them."""
    tags = b"".join(_varint(tag) + b"\0" for tag in range(1_000_000))
    before = fresh_target.peak_mib()
    for _ in range(3):
        with fresh_target.connect() as client:
            client.send_bytes(framed(header(18, 3) + _varint(1_000_000) + tags + b"\x02x\x02y\0"))
            assert client.is_closed_by_broker()
    assert fresh_target.peak_mib() - before < 40


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)
