"""A connection to brokers of any age, and to what is no broker at all."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klamm.codec.compiler import decode
from klamm.errors import ErrorCode
from klamm.pipeline.kafka.connection import Address, Connection
from klamm.pipeline.kafka.fetching import next_position
from klamm.pipeline.kafka.problems import ClusterProblem, NoAnswer
from klamm.records.builder import BatchBuilder
from klamm.wire.apis import API_BY_KEY, API_VERSIONS, FETCH, METADATA, OFFSET_COMMIT
from klamm.wire.frames import encoded_response
from klamm.wire.headers import read_request_header
from klamm.wire.messages.api_versions import ApiVersion, ApiVersionsResponse
from klamm.wire.messages.metadata import MetadataRequest, MetadataResponse, MetadataResponseBroker

OLD = [
    ApiVersion(api_key=FETCH, min_version=0, max_version=11),
    ApiVersion(api_key=METADATA, min_version=0, max_version=5),
]


@contextmanager
def listening(answer: Callable[[bytes], bytes]) -> Iterator[Address]:
    """Somebody who takes one connection and answers each frame."""
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        connection, _ = server.accept()
        # Whoever hears nonsense hangs up in the middle of it.
        with suppress(ConnectionResetError), connection, connection.makefile("rb") as requests:
            while size := requests.read(4):
                connection.sendall(answer(requests.read(int.from_bytes(size, "big"))))

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield Address(*server.getsockname()[:2])
    server.close()
    thread.join(10)


def old_broker(frame: bytes) -> bytes:
    header, position = read_request_header(frame)
    api = API_BY_KEY[header.api_key]
    if api.key == API_VERSIONS:
        code = ErrorCode.NONE if header.api_version == 0 else ErrorCode.UNSUPPORTED_VERSION
        keys = OLD if header.api_version == 0 else []
        response: object = ApiVersionsResponse(error_code=code, api_keys=keys)
        return b"".join(encoded_response(api, 0, header.correlation_id, response))
    assert (header.api_key, header.api_version) == (METADATA, 5)
    assert decode(MetadataRequest, 5, frame[position:]).topics is None
    return b"".join(encoded_response(api, 5, header.correlation_id, MetadataResponse(cluster_id="old")))


def test_an_old_broker_is_asked_in_its_versions() -> None:
    with listening(old_broker) as address:
        connection = Connection(address, 10)
        assert (connection.version(FETCH), connection.version(METADATA), connection.version(FETCH, 9)) == (11, 5, 9)
        connection.send(METADATA, MetadataRequest(topics=None))
        connection.send(METADATA, MetadataRequest(topics=None))
        assert [connection.receive().cluster_id for _ in range(2)] == ["old", "old"]
        with pytest.raises(ClusterProblem, match="OffsetCommit in versions 0 to -1, this reader speaks 2 to 10"):
            connection.version(OFFSET_COMMIT)
        connection.close()


def test_somebody_who_is_no_broker() -> None:
    with (
        listening(lambda frame: b"HTTP/1.1 400 Bad Request\r\n\r\n") as address,
        pytest.raises(NoAnswer, match=r"an answer of 1213486160 bytes.*Is it a broker's listener"),
    ):
        Connection(address, 10)


def test_nobody_there() -> None:
    with pytest.raises(NoAnswer, match=r"127\.0\.0\.1:1: Connection refused"):
        Connection(Address("127.0.0.1", 1), 10)


def test_a_large_answer_does_not_stay_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers keep their connections, and one answer may be of a gigabyte."""
    monkeypatch.setattr("klamm.pipeline.kafka.connection.KEPT_BUFFER_BYTES", 100_000)

    def talkative(frame: bytes) -> bytes:
        header, _ = read_request_header(frame)
        if header.api_key == API_VERSIONS:
            return old_broker(frame)
        response = MetadataResponse(brokers=[MetadataResponseBroker(host="x" * 30_000)] * 30)
        return b"".join(encoded_response(API_BY_KEY[METADATA], 5, header.correlation_id, response))

    with listening(talkative) as address:
        connection = Connection(address, 10)
        for _ in range(2):
            assert len(connection.ask(METADATA, MetadataRequest(topics=None)).brokers) == 30
        assert len(connection._buffer) <= 100_000
        connection.close()


@given(st.lists(st.tuples(st.integers(1, 4), st.integers(0, 9)), max_size=6), st.integers(0, 80))
def test_the_next_position_is_behind_the_last_whole_batch(shape: list[tuple[int, int]], torn: int) -> None:
    """Gaps before a batch do not matter, and what is torn does not count."""
    offset, written = 0, bytearray()
    ends: list[tuple[int, int | None]] = [(0, None)]
    for count, gap in shape:
        builder = BatchBuilder(base_offset=offset + gap)
        for _ in range(count):
            builder.append(None, b"value", 1)
        written += builder.build()
        offset += gap + count
        ends.append((len(written), offset))
    seen = max(0, len(written) - torn)
    assert next_position(memoryview(written)[:seen]) == [end for size, end in ends if size <= seen][-1]
