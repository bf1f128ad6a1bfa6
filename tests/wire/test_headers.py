"""Request and response headers, and what a stranger may put there."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klamm.codec.primitives import Malformed
from klamm.wire.apis import API_BY_KEY, API_VERSIONS, PRODUCE, Api
from klamm.wire.headers import (
    RequestHeader,
    UnsupportedVersion,
    read_request_header,
    read_response_header,
    request_header_bytes,
    response_header_bytes,
    why_unsupported,
)

DESCRIBE_ACLS = 29

EVERY_VERSION = [
    (api, version) for api in API_BY_KEY.values() for version in range(api.min_version, api.max_version + 1)
]


def test_a_header_as_librdkafka_sends_it() -> None:
    data = bytes.fromhex("0012" + "0003" + "00000007" + "0007" + "72646b61666b61" + "00") + b"body"
    header, position = read_request_header(data)
    assert header == RequestHeader(18, 3, 7, "rdkafka")
    assert data[position:] == b"body"


@given(st.sampled_from(EVERY_VERSION), st.integers(-(2**31), 2**31 - 1), st.none() | st.text(max_size=50))
def test_what_a_client_writes_the_broker_reads(
    api_version: tuple[Api, int], correlation_id: int, client_id: str | None
) -> None:
    api, version = api_version
    try:
        data = request_header_bytes(api, version, correlation_id, client_id)
    except UnicodeEncodeError:
        return
    header, position = read_request_header(memoryview(data + b"body"))
    assert header == RequestHeader(api.key, version, correlation_id, client_id or "")
    assert position == len(data)
    answer = response_header_bytes(api, version, correlation_id)
    assert read_response_header(api, version, answer + b"body") == (correlation_id, len(answer))


def test_the_flexible_header_keeps_the_old_client_id() -> None:
    old = request_header_bytes(API_BY_KEY[PRODUCE], 8, 1, "me")
    flexible = request_header_bytes(API_BY_KEY[PRODUCE], 9, 1, "me")
    assert flexible == old[:3] + b"\x09" + old[4:] + b"\x00"


def test_the_response_to_api_versions_always_has_the_old_header() -> None:
    api = API_BY_KEY[API_VERSIONS]
    assert [len(response_header_bytes(api, version, 1)) for version in range(5)] == [4] * 5
    assert len(response_header_bytes(API_BY_KEY[PRODUCE], 9, 1)) == 5
    assert read_response_header(api, 4, b"\0\0\0\x01" + b"body") == (1, 4)


@pytest.mark.parametrize(("key", "version"), [(4, 0), (93, 0), (-1, 0), (0, 2), (0, 14), (1, 3), (3, -1), (8, 1)])
def test_an_unknown_api_or_version_carries_its_header(key: int, version: int) -> None:
    data = key.to_bytes(2, "big", signed=True) + version.to_bytes(2, "big", signed=True) + b"\0\0\0\x05" + b"\xff\xff"
    with pytest.raises(UnsupportedVersion) as caught:
        read_request_header(data)
    assert caught.value.header == RequestHeader(key, version, 5, "")


@pytest.mark.parametrize(
    ("key", "version", "said"),
    [
        (4, 0, "there is no API with the key 4"),
        (1, 3, "Fetch is served in versions 4 to 18, not in 3, as in Kafka 4: the client is older"),
        (0, 14, "Produce is served in versions 3 to 13, not in 14"),
        (DESCRIBE_ACLS, 1, "DescribeAcls is not served here"),
    ],
)
def test_whoever_reads_the_log_learns_what_a_client_asked_for(key: int, version: int, said: str) -> None:
    assert why_unsupported(RequestHeader(key, version, 5, ""), is_served_here=key != DESCRIBE_ACLS) == said


@pytest.mark.parametrize("version", [5, 99, 32_767, -1])
def test_api_versions_of_an_unknown_version_can_be_answered(version: int) -> None:
    """Whatever follows the client id is of a version we do not know, so it is left alone."""
    data = b"\0\x12" + version.to_bytes(2, "big", signed=True) + b"\0\0\0\x05" + b"\0\x02me" + b"\xff\xff\xff"
    header, _ = read_request_header(data)
    assert header == RequestHeader(18, version, 5, "me")


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ("", "ends too early"),
        ("0000" + "0009" + "00000001", "ends too early"),
        ("0000" + "0009" + "00000001" + "0005" + "6161", "longer than the request"),
        ("0000" + "0009" + "00000001" + "fffe" + "00", "negative length"),
        ("0000" + "0009" + "00000001" + "0001" + "ff" + "00", "no text"),
        ("0000" + "0009" + "00000001" + "ffff", "ends too early"),
        ("0000" + "0009" + "00000001" + "ffff" + "01" + "00", "ends too early"),
        ("0000" + "0009" + "00000001" + "ffff" + "02" + "0100" + "0100", "tag 1 after tag 1"),
        ("0000" + "0009" + "00000001" + "ffff" + "01" + "00" + "05" + "00", "tag 0 of 5 bytes"),
        ("0000" + "0009" + "00000001" + "ffff" + "ffff03" + "0000", "over 127"),
    ],
)
def test_nonsense(data: str, why: str) -> None:
    with pytest.raises(Malformed, match=why):
        read_request_header(bytes.fromhex(data))


def test_a_header_full_of_tags_is_refused_before_they_are_read() -> None:
    """CVE-2026-111115, which needed no login: ApiVersions version 3 with millions of tags."""
    head = bytes.fromhex("0012" + "0003" + "00000001" + "ffff")
    with pytest.raises(Malformed, match="over 127"):
        read_request_header(head + b"\xff\xff\x7f" + b"\x01\x00" * 2_000_000)


@given(st.binary(max_size=60))
def test_arbitrary_bytes_are_a_header_or_malformed(data: bytes) -> None:
    try:
        header, position = read_request_header(data)
    except Malformed:
        return
    assert header.api_key in API_BY_KEY
    assert position <= len(data)


@given(st.binary(max_size=20), st.sampled_from(EVERY_VERSION))
def test_arbitrary_bytes_are_a_response_header_or_malformed(data: bytes, api_version: tuple[Api, int]) -> None:
    api, version = api_version
    try:
        _, position = read_response_header(api, version, data)
    except Malformed:
        return
    assert position <= len(data)
