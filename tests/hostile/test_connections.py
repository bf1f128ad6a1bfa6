"""Connections that say little, say too much, never listen, or are too many."""

import contextlib
import errno
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from klamm.wire.messages.api_versions import ApiVersionsRequest
from klamm.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from klamm.wire.messages.find_coordinator import FindCoordinatorRequest
from klamm.wire.messages.metadata import MetadataRequest
from tests.harness.waiting import wait_until
from tests.hostile.batches import batch_of
from tests.hostile.raw import Raw, body_of, framed
from tests.hostile.target import MEBIBYTE, NAMED, Target, fetch, produce

API_VERSIONS = ApiVersionsRequest(client_software_name="hostile", client_software_version="1")
VERSIONS_FRAME = framed(body_of(API_VERSIONS, 3))
RESET_ON_CLOSE = struct.pack("ii", 1, 0)


@contextlib.contextmanager
def crowd(target: Target, count: int) -> Iterator[list[Raw]]:
    """So many connections at once."""
    clients: list[Raw] = []
    try:
        for _ in range(count):
            clients.append(target.connect())
        yield clients
    finally:
        for client in clients:
            client.close()


# Those who say little.


def test_two_thousand_idle_connections_cost_little_and_hold_nobody_up(fresh_target: Target) -> None:
    before = fresh_target.resident_mib()
    with crowd(fresh_target, 2_000) as clients:
        fresh_target.check_others_are_served()
        clients[0].send_bytes(VERSIONS_FRAME)
        clients[-1].send_bytes(VERSIONS_FRAME)
        assert clients[0].frame() is not None and clients[-1].frame() is not None
        assert fresh_target.resident_mib() - before < 40


def test_slowloris_gets_its_answer_in_the_end_and_holds_nobody_up(target: Target) -> None:
    """Three hundred clients say one byte at a time, in turn."""
    with crowd(target, 300) as clients:
        for position in range(len(VERSIONS_FRAME)):
            for client in clients:
                client.send_bytes(VERSIONS_FRAME[position : position + 1])
            if position % 10 == 0:
                target.check_witness_is_served()
        for client in clients:
            assert client.frame() is not None


def test_who_says_nothing_or_half_a_frame_for_too_long_is_closed(start_target: Callable[..., Target]) -> None:
    target = start_target(connections_max_idle_ms="500")
    silent, half_a_size, half_a_frame = (target.connect() for _ in range(3))
    half_a_size.send_bytes(b"\0\0")
    half_a_frame.send_bytes(VERSIONS_FRAME[:20])
    stop = threading.Event()
    busy = threading.Thread(target=_keep_asking, args=(target, stop))
    busy.start()
    try:
        for client in (silent, half_a_size, half_a_frame):
            assert client.is_closed_by_broker()
            client.close()
    finally:
        stop.set()
        busy.join()
    # The witness said nothing meanwhile either.
    target.reconnect()


def _keep_asking(target: Target, stop: threading.Event) -> None:
    with target.connect() as client:
        while not stop.wait(0.1):
            assert client.ask(API_VERSIONS, 3).error_code == 0


# Those who leave without a word.


def test_connections_reset_in_the_middle_of_everything_harm_nobody(target: Target, topic: str) -> None:
    target.create_topic(topic)
    waiting = framed(body_of(fetch(topic, wait_ms=60_000), NAMED))
    for words in (b"", VERSIONS_FRAME[:7], VERSIONS_FRAME, waiting, waiting * 50, VERSIONS_FRAME * 200):
        for _ in range(20):
            with target.connect() as client:
                client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
                client.send_bytes(words)


def test_a_flood_of_connections_is_survived(target: Target) -> None:
    for number in range(3_000):
        client = target.connect()
        if number % 3 == 0:
            client.send_bytes(VERSIONS_FRAME)
        client.close()
        if number % 500 == 0:
            target.check_witness_is_served()


# Those who are too many.


@pytest.mark.parametrize("setting", ["max_connections", "max_connections_per_ip"])
def test_a_connection_over_the_limit_is_closed_and_room_is_made_again(
    start_target: Callable[..., Target], setting: str
) -> None:
    target = start_target(**{setting: "20"})
    target.check_witness_is_served()
    with crowd(target, 19) as clients:
        for client in clients:
            client.send_bytes(VERSIONS_FRAME)
            assert client.frame() is not None
        for _ in range(50):
            with target.connect() as one_more:
                assert one_more.is_closed_by_broker()
        target.check_witness_is_served()
        clients.pop().close()
        wait_until(lambda: _is_answered(target), "room for another connection")
    assert "refused a connection" in target.said


def _is_answered(target: Target) -> bool:
    with target.connect() as client, contextlib.suppress(ConnectionError):
        client.send_bytes(VERSIONS_FRAME)
        return client.frame() is not None
    return False


# Those who ask and ask.


def test_ten_thousand_pipelined_requests_are_answered_in_order(target: Target) -> None:
    metadata = MetadataRequest(topics=[])
    frames = b"".join(
        framed(body_of(metadata, 12, number) if number % 2 else body_of(API_VERSIONS, 3, number))
        for number in range(10_000)
    )
    with target.connect(patience=30) as client:
        sender = threading.Thread(target=client.send_bytes, args=(frames,))
        sender.start()
        for number in range(10_000):
            frame = client.frame()
            assert frame is not None and struct.unpack(">i", frame[:4]) == (number,)
        sender.join()


def test_ten_thousand_requests_behind_one_that_waits_are_answered_after_it(target: Target, topic: str) -> None:
    """TRAPS 8. More may be pipelined than the broker keeps waiting at once."""
    target.create_topic(topic)
    frames = b"".join(framed(body_of(API_VERSIONS, 3, number)) for number in range(1, 10_001))
    with target.connect(patience=30) as client:
        client.send_bytes(framed(body_of(fetch(topic, wait_ms=60_000), NAMED, 0)))
        sender = threading.Thread(target=client.send_bytes, args=(frames,))
        sender.start()
        target.check_witness_is_served()
        with target.connect() as other:
            other.ask(produce(topic, batch_of(b"at last")), NAMED)
        for number in range(10_001):
            frame = client.frame()
            assert frame is not None and struct.unpack(">i", frame[:4]) == (number,)
        sender.join()


def test_who_asks_for_much_at_once_waits_for_it_alone(fresh_target: Target, topic: str) -> None:
    """A connection gets its turn, then the others get theirs, however much it has asked for already."""
    new = CreatableTopic(name=topic, num_partitions=1_000, replication_factor=1)
    costly = framed(body_of(CreateTopicsRequest(topics=[new], validate_only=True), 7))
    with fresh_target.connect() as hog:
        hog.send_bytes(costly * 1_000)
        fresh_target.check_others_are_served()


# Those who never listen.


def filled(target: Target, topic: str, mebibytes: int) -> str:
    target.create_topic(topic)
    with target.connect() as client:
        for _ in range(mebibytes):
            client.ask(produce(topic, batch_of(bytes(MEBIBYTE - 100))), NAMED)
    return topic


def unheard(target: Target, request: bytes, readers: int) -> list[Raw]:
    """Clients that ask as often as they can and read nothing."""
    clients = []
    for _ in range(readers):
        client = target.connect(receive_buffer=4096)
        client.socket.setblocking(False)
        clients.append(client)
    deadline = time.monotonic() + 2.0
    talkative = set(clients)
    while talkative and time.monotonic() < deadline:
        for client in tuple(talkative):
            try:
                client.socket.send(request * 20)
            except OSError as error:
                assert error.errno in (errno.EAGAIN, errno.ECONNRESET, errno.EPIPE)
                talkative.discard(client)
    return clients


def test_slow_readers_of_huge_fetches_hold_up_themselves_alone(fresh_target: Target, topic: str) -> None:
    filled(fresh_target, topic, 32)
    clients = unheard(fresh_target, framed(body_of(fetch(topic), NAMED)), 50)
    fresh_target.check_others_are_served()
    fresh_target.check_memory()
    for client in clients:
        client.close()


def test_many_slow_readers_of_small_fetches_fill_no_memory(fresh_target: Target, topic: str) -> None:
    """Small records are read before they are sent. What waits for all readers together has to have a bound."""
    fresh_target.create_topic(topic)
    with fresh_target.connect() as client:
        client.ask(produce(topic, batch_of(bytes(50_000))), NAMED)
    clients = unheard(fresh_target, framed(body_of(fetch(topic, max_bytes=60_000), NAMED)), 300)
    fresh_target.check_others_are_served()
    fresh_target.check_memory()
    for client in clients:
        client.close()


def test_slow_readers_of_long_answers_hold_up_themselves_alone(fresh_target: Target, topic: str) -> None:
    """Answers that are made in memory, and take their time to make: every topic there is."""
    fresh_target.create_topic(topic, partitions=1_000)
    clients = unheard(fresh_target, framed(body_of(MetadataRequest(topics=None), 12)), 100)
    fresh_target.check_others_are_served()
    fresh_target.check_memory()
    for client in clients:
        client.close()


def test_answers_behind_one_that_waits_fill_no_memory(fresh_target: Target, topic: str) -> None:
    """They cannot be sent, however quickly the client would read: what waits so has to have a bound too."""
    fresh_target.create_topic(topic)
    waiting = framed(body_of(fetch(topic, wait_ms=10**8), NAMED))
    long_answer = framed(body_of(FindCoordinatorRequest(coordinator_keys=["group"] * 500), 6))
    clients = []
    for _ in range(10):
        clients.append(fresh_target.connect())
        clients[-1].send_bytes(waiting)
        clients[-1].socket.settimeout(0.3)
        # A broker that keeps its bound stops to listen.
        with contextlib.suppress(TimeoutError):
            clients[-1].send_bytes(long_answer * 900)
        fresh_target.check_witness_is_served()
    fresh_target.check_memory()
    for client in clients:
        client.close()


def test_a_slow_reader_gets_everything_once_it_reads(fresh_target: Target, topic: str) -> None:
    filled(fresh_target, topic, 8)
    client = fresh_target.connect(receive_buffer=4096, patience=30)
    request = fetch(topic)
    for _ in range(10):
        client.post(request, NAMED)
    fresh_target.check_others_are_served()
    for number in range(1, 11):
        answer = client.answer_to(request, NAMED, correlation_id=number)
        assert len(answer.responses[0].partitions[0].records) > 7 * MEBIBYTE
    client.close()
