"""Frames going out with their size first, and bytes coming in however the network cuts them."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klamm.codec.compiler import decode, encode
from klamm.codec.primitives import Malformed
from klamm.wire.apis import API_BY_KEY
from klamm.wire.frames import LEAST_RESPONSE_BYTES, FrameCutter, encoded_request, encoded_response
from klamm.wire.headers import read_request_header, read_response_header
from klamm.wire.messages.api_versions import ApiVersionsResponse
from klamm.wire.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from klamm.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

PRODUCE, FETCH, API_VERSIONS = API_BY_KEY[0], API_BY_KEY[1], API_BY_KEY[18]


class Region:
    """A part of a file."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def __len__(self) -> int:
        return len(self.data)

    def __bytes__(self) -> bytes:
        return self.data


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def test_a_response_is_one_piece_that_begins_with_its_size() -> None:
    (piece,) = encoded_response(API_VERSIONS, 4, 7, ApiVersionsResponse(error_code=35))
    (frame,), _ = FrameCutter(least_bytes=LEAST_RESPONSE_BYTES).cut(piece, len(piece))
    correlation_id, position = read_response_header(API_VERSIONS, 4, frame)
    assert correlation_id == 7
    assert decode(ApiVersionsResponse, 4, frame[position:], exact=True).error_code == 35


@pytest.mark.parametrize("version", [4, 11, 12, 18])
def test_a_response_with_regions_counts_them_in_its_size(version: int) -> None:
    regions = [Region(b"a" * 10_000), Region(b"b" * 5)]
    partitions = [PartitionData(index, records=region) for index, region in enumerate(regions)]
    response = FetchResponse(responses=[FetchableTopicResponse(topic="orders", partitions=partitions)])
    pieces = encoded_response(FETCH, version, 9, response)
    assert [piece for piece in pieces if isinstance(piece, Region)] == regions
    data = b"".join(map(bytes, pieces))
    assert struct.unpack_from(">i", data) == (len(data) - 4,)
    correlation_id, position = read_response_header(FETCH, version, data[4:])
    (topic,) = decode(FetchResponse, version, data[4 + position :], exact=True).responses
    assert correlation_id == 9
    assert [partition.records for partition in topic.partitions] == [b"a" * 10_000, b"b" * 5]


@pytest.mark.parametrize("version", [3, 9, 12])
def test_a_request_arrives_as_it_was_sent(version: int) -> None:
    partition = PartitionProduceData(index=3, records=b"batch" * 2000)
    request = ProduceRequest(acks=-1, topic_data=[TopicProduceData(name="orders", partition_data=[partition])])
    data = b"".join(encoded_request(PRODUCE, version, 5, "me", request))
    (frame,), rest = FrameCutter().cut(data, len(data))
    header, position = read_request_header(frame)
    assert (header.api_key, header.api_version, header.client_id) == (0, version, "me")
    assert decode(ProduceRequest, version, frame[position:], exact=True) == request
    assert rest == len(data)


@given(st.lists(st.binary(min_size=10, max_size=40), max_size=6), st.data())
def test_frames_come_out_whole_however_they_arrive(bodies: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(map(framed, bodies))
    cutter, buffer, position, found = FrameCutter(), bytearray(stream), 0, []
    filled = 0
    while filled < len(stream):
        filled += data.draw(st.integers(1, len(stream) - filled))
        frames, position = cutter.cut(buffer, filled, position)
        found += [bytes(frame) for frame in frames]
        if cutter.pending_bytes:
            assert position + cutter.pending_bytes > filled
    assert found == bodies
    assert position == len(stream)
    assert cutter.pending_bytes == 0


def test_a_frame_cut_at_every_byte_is_not_there_yet() -> None:
    stream = framed(b"x" * 20)
    cutter = FrameCutter()
    for filled in range(len(stream)):
        assert cutter.cut(stream, filled) == ([], 0)
        assert cutter.pending_bytes == (24 if filled >= 4 else 0)


def test_bytes_beyond_what_is_filled_are_not_looked_at() -> None:
    """The buffer is larger than what has arrived; what lies there is from earlier."""
    buffer = bytearray(framed(b"x" * 20) + b"\xff" * 100)
    frames, position = FrameCutter().cut(buffer, 24)
    assert [bytes(frame) for frame in frames] == [b"x" * 20]
    assert position == 24


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (struct.pack(">i", 0), "size 0"),
        (struct.pack(">i", 3) + b"abc", "too short for a header"),
        (struct.pack(">i", -1), "negative"),
        (struct.pack(">i", 2**31 - 1), "2^31-1"),
        (struct.pack(">i", 104_857_601), "one over the limit"),
        (b"GET / HTTP/1.1\r\n", "a browser"),
        (bytes.fromhex("16030100a5010000a1"), "a TLS ClientHello"),
    ],
)
def test_what_is_no_frame_is_refused_by_its_first_four_bytes(data: bytes, what: str) -> None:
    with pytest.raises(Malformed):
        FrameCutter().cut(data[:4] + bytes(100), 8)


def test_the_limit_can_be_small_until_somebody_has_logged_in() -> None:
    cutter = FrameCutter(limit_bytes=512 * 1024)
    with pytest.raises(Malformed):
        cutter.cut(struct.pack(">i", 512 * 1024 + 1), 4)
    cutter.limit_bytes = 1024 * 1024
    assert cutter.cut(struct.pack(">i", 512 * 1024 + 1), 4) == ([], 0)
    assert cutter.pending_bytes == 512 * 1024 + 5


def test_frames_before_a_bad_one_are_given_first() -> None:
    """They were whole and are answered, as Kafka does; then the connection ends."""
    data = framed(b"x" * 20) + struct.pack(">i", -1)
    (frame,), rest = FrameCutter().cut(data, len(data))
    assert bytes(frame) == b"x" * 20
    with pytest.raises(Malformed):
        FrameCutter().cut(data, len(data), rest)


def test_a_frame_is_a_view_that_writes_through() -> None:
    buffer = bytearray(framed(b"x" * 20))
    (frame,), _ = FrameCutter().cut(buffer, len(buffer))
    frame[0] = ord("y")
    assert buffer[4] == ord("y")


def test_encode_is_the_same_bytes_without_a_frame() -> None:
    response = ApiVersionsResponse(error_code=35)
    (piece,) = encoded_response(API_VERSIONS, 0, 1, response)
    assert bytes(piece[8:]) == encode(response, 0)
