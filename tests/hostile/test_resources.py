"""What many small things add up to: unfinished frames, sessions, producers, topics, answers, log lines."""

import contextlib
import re
from collections.abc import Callable

import pytest

from klamm.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from klamm.wire.messages.delete_topics import DeleteTopicsRequest
from klamm.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from klamm.wire.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from klamm.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from klamm.wire.messages.find_coordinator import FindCoordinatorRequest
from klamm.wire.messages.init_producer_id import InitProducerIdRequest
from klamm.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from klamm.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.hostile.batches import batch_of
from tests.hostile.extremes import request_of, text_of_control_characters, turning_points
from tests.hostile.raw import Raw, body_of, framed, header
from tests.hostile.target import MEBIBYTE, NAMED, Target, fetch, produce, wait_for_leader
from tests.records.made import changed

ANNOUNCED = 100 * MEBIBYTE
BUDGET = 250_000
"""A little fewer array elements than one request may have."""


# Unfinished frames.


def begun(target: Target, sent_bytes: int) -> Raw:
    """A client that has announced a frame of 100 MiB and sent so much of it, if it was let."""
    client = target.connect()
    client.send_bytes(framed(header(0, 9), size=ANNOUNCED))
    client.socket.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        client.socket.send(bytes(sent_bytes))
    return client


@pytest.mark.parametrize("count, sent_bytes", [(1_000, 0), (1_000, 1_000), (1_000, 300_000), (3_000, 1_000_000)])
def test_a_thousand_clients_and_more_that_announce_100_mebibytes_each(
    fresh_target: Target, count: int, sent_bytes: int
) -> None:
    """CVE-2022-34917: what is announced costs nothing, what was sent has a bound for all together."""
    clients = [begun(fresh_target, sent_bytes) for _ in range(count)]
    fresh_target.check_others_are_served()
    fresh_target.check_memory()
    for client in clients:
        client.close()
    _check_large_frames_pass(fresh_target, 3)


def test_sixty_who_announce_100_mebibytes_and_send_20_do_not_hold_up_an_ordinary_request(
    fresh_target: Target, topic: str
) -> None:
    """The room is used up, and stays so: nobody has to be closed before somebody else is read."""
    fresh_target.create_topic(topic)
    clients = [begun(fresh_target, 0) for _ in range(60)]
    left = dict.fromkeys(clients, 20_000_000)
    for _ in range(40):
        for client in clients:
            with contextlib.suppress(BlockingIOError):
                left[client] -= client.socket.send(bytes(min(left[client], MEBIBYTE)))
        fresh_target.check_witness_is_served()
    assert sum(20_000_000 - each for each in left.values()) > 64 * MEBIBYTE, "more than the room"
    with fresh_target.connect(patience=60) as honest:
        answer = honest.ask(produce(topic, batch_of(bytes(900_000))), NAMED)
        assert answer.responses[0].partition_responses[0].error_code == 0
    for client in clients:
        with pytest.raises(BlockingIOError):
            client.socket.recv(1)  # It was not closed.
        client.close()


def test_frames_that_were_large_and_bad_leave_nothing_of_the_budget_taken(fresh_target: Target) -> None:
    """Once they are gone, several clients can be in the middle of a frame again."""
    bad = framed(header(999, 0) + bytes(2 * MEBIBYTE))
    for _ in range(60):
        with fresh_target.connect() as client:
            client.send_bytes(bad[:MEBIBYTE])
            # The broker has taken the first part aside once it has answered somebody who came later.
            fresh_target.check_witness_is_served()
            client.send_bytes(bad[MEBIBYTE:])
            assert client.is_closed_by_broker()
    _check_large_frames_pass(fresh_target, 3)


def _check_large_frames_pass(target: Target, count: int) -> None:
    """Clients in the middle of a frame, all at once; then each goes on, the one with the least first."""
    body = body_of(MetadataRequest(topics=[]), 12) + bytes(MEBIBYTE)
    # What thousands had under way is still read before it is known that they are gone, one after the other.
    clients = [target.connect(patience=60) for _ in range(count)]
    for number, client in enumerate(clients, 1):
        client.send_bytes(framed(body)[: number * 300_000])
        target.check_witness_is_served()
    for number, client in enumerate(clients, 1):
        client.send_bytes(framed(body)[number * 300_000 :])
        assert client.frame() is not None
        client.close()


# Requests that are answered with much more than they are.


def many_fetches(count: int) -> FetchRequest:
    partitions = [FetchPartition(partition=number, partition_max_bytes=1000) for number in range(count)]
    return FetchRequest(
        max_bytes=1000, session_epoch=-1, topics=[FetchTopic(topic="no-such-topic", partitions=partitions)]
    )


LARGE_REQUESTS: dict[str, Callable[[], tuple[object, int]]] = {
    "all settings again and again": lambda: (
        DescribeConfigsRequest(
            resources=[DescribeConfigsResource(resource_type=4, resource_name="0", configuration_keys=None)] * 20_000,
            include_synonyms=True,
            include_documentation=True,
        ),
        4,
    ),
    "coordinators of many groups": lambda: (FindCoordinatorRequest(coordinator_keys=[""] * BUDGET), 6),
    "many partitions to fetch": lambda: (many_fetches(BUDGET), 12),
    "many offsets": lambda: (
        ListOffsetsRequest(
            topics=[
                ListOffsetsTopic(
                    name="t", partitions=[ListOffsetsPartition(partition_index=number) for number in range(BUDGET)]
                )
            ]
        ),
        7,
    ),
    "many topics": lambda: (
        MetadataRequest(
            topics=[MetadataRequestTopic(name=f"{number}/") for number in range(BUDGET)],
            allow_auto_topic_creation=True,
        ),
        9,
    ),
    "many log directories": lambda: (
        DescribeLogDirsRequest(topics=[DescribableLogDirTopic(topic="taken", partitions=[0] * BUDGET)]),
        4,
    ),
    "many topics that grow": lambda: (
        CreatePartitionsRequest(
            topics=[CreatePartitionsTopic(name=str(number), count=1) for number in range(BUDGET // 3)]
        ),
        3,
    ),
    "many topics to delete": lambda: (DeleteTopicsRequest(topic_names=[str(each) for each in range(BUDGET)]), 5),
}


@pytest.mark.parametrize("question", LARGE_REQUESTS)
def test_a_request_for_as_much_as_there_may_be_stays_under_the_ceiling(fresh_target: Target, question: str) -> None:
    fresh_target.create_topic("taken")
    request, version = LARGE_REQUESTS[question]()
    with fresh_target.connect(patience=20) as client:
        client.send_bytes(framed(body_of(request, version)))
        client.frame()
    fresh_target.check_memory()


# What clients leave behind.


def test_more_fetch_sessions_than_there_are_slots_are_served_without_one(
    start_target: Callable[..., Target], topic: str
) -> None:
    target = start_target(max_incremental_fetch_session_cache_slots="100")
    target.create_topic(topic)
    request = fetch(topic)
    request.session_epoch = 0
    with target.connect() as client:
        sessions = [client.ask(request, NAMED).session_id for _ in range(300)]
        assert len({each for each in sessions if each}) == 100
        assert sessions[100:] == [0] * 200
        request.session_id, request.session_epoch = sessions[0], 1
        assert client.ask(request, NAMED).error_code == 0


def test_fetch_sessions_of_many_partitions_stay_under_the_ceiling(fresh_target: Target) -> None:
    """The slots bound how many there are, not how large each is."""
    request = many_fetches(100_000)
    request.session_epoch = 0
    body = framed(body_of(request, NAMED))
    with fresh_target.connect(patience=20) as client:
        for _ in range(10):
            client.send_bytes(body)
            assert client.frame() is not None
    fresh_target.check_memory()


def test_fetches_that_wait_for_weeks_and_are_answered_at_once_leave_nothing_behind(
    fresh_target: Target, topic: str
) -> None:
    """Somebody who really waits must not make the broker remember all who no longer do."""
    fresh_target.create_topic(topic)
    fresh_target.create_topic(f"{topic}-quiet")
    with fresh_target.connect() as patient, fresh_target.connect() as reader, fresh_target.connect() as writer:
        patient.post(fetch(f"{topic}-quiet", wait_ms=10**9), NAMED)
        for offset in range(200):
            _read_when_written(reader, writer, topic, offset)
        before = fresh_target.resident_mib()
        for offset in range(200, 4_200):
            _read_when_written(reader, writer, topic, offset)
        assert fresh_target.resident_mib() - before < 3.0


def _read_when_written(reader: Raw, writer: Raw, topic: str, offset: int) -> None:
    request = fetch(topic, offset, wait_ms=2 * 10**9)
    reader.post(request, NAMED)
    writer.ask(produce(topic, batch_of(b"x")), NAMED)
    assert reader.answer_to(request, NAMED).responses[0].partitions[0].error_code == 0


def test_producer_ids_are_given_to_whoever_asks_and_none_twice(target: Target) -> None:
    request = InitProducerIdRequest(transactional_id=None, producer_id=-1, producer_epoch=-1)
    with target.connect(patience=20) as client:
        for _ in range(2_500):
            client.post(request, 4)
        given = [client.answer_to(request, 4, correlation_id=number + 1) for number in range(2_500)]
    taken = [each.producer_id for each in given if not each.error_code]
    assert len(set(taken)) == len(taken) > 1_000


def test_twenty_thousand_producers_of_one_partition_stay_under_the_ceiling(fresh_target: Target, topic: str) -> None:
    fresh_target.create_topic(topic)
    batch = batch_of(b"x")
    before = fresh_target.resident_mib()
    with fresh_target.connect(patience=20) as client:
        for start in range(0, 20_000, 500):
            for producer_id in range(start, start + 500):
                one = changed(batch, producer_id=producer_id, producer_epoch=0, base_sequence=0)
                client.post(produce(topic, one), NAMED)
            for producer_id in range(start, start + 500):
                answer = client.answer_to(produce(topic, batch), NAMED, correlation_id=producer_id + 1)
                assert answer.responses[0].partition_responses[0].error_code == 0
    grown = fresh_target.resident_mib() - before
    assert grown < 30, f"{grown:.0f} MiB for 20,000 producers"


def test_a_thousand_topics_nobody_ordered_are_made_and_removed_again(fresh_target: Target) -> None:
    """Auto-creation by names in Metadata; what is gone gives its memory back to the next."""
    names = [f"nobody-ordered-{number}" for number in range(1_000)]
    request = MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in names])
    peaks = []
    with fresh_target.connect(patience=20) as client:
        for _ in range(3):
            client.ask(request, 9)
            wait_for_leader(client, names[-1])
            deleted = client.ask(DeleteTopicsRequest(topic_names=names, timeout_ms=10_000), 5)
            assert {each.error_code for each in deleted.responses} == {0}
            peaks.append(fresh_target.resident_mib())
        assert client.ask(MetadataRequest(topics=None), 9).topics == []
    assert peaks[2] - peaks[1] < 5, peaks


# The log.


LINE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} (INFO |WARN |ERROR|DEBUG) \[broker 0\] ")


def test_names_cannot_forge_lines_of_the_log(fresh_target: Target) -> None:
    """Line breaks and escapes in client ids, topics, settings: whatever is logged of them is shown, not obeyed."""
    forged = "a\n2026-01-01 00:00:00 ERROR [broker 0] forged\x1b[31m"
    for key, version in turning_points():
        request = request_of(key, version, text_of_control_characters, 3)
        with fresh_target.connect() as client:
            client.send_bytes(
                framed(body_of(request, version, client_id=forged)) + framed(body_of(request, version)[:-3])
            )
            client.send_bytes(framed(header(999, 0, client_id=forged.encode())))
            while client.frame() is not None:
                pass
    lines = fresh_target.said.splitlines()
    assert lines, "bad requests are mentioned"
    for line in lines:
        assert LINE.match(line), line
        assert "\x1b" not in line
        assert not re.search(r"ERROR \[broker 0\] forged", line[30:]) or "\\n" in line


def test_a_flood_of_bad_requests_is_no_flood_of_lines(fresh_target: Target) -> None:
    for _ in range(3_000):
        with fresh_target.connect() as client:
            client.send_bytes(framed(header(999, 0)))
    fresh_target.check_others_are_served()
    assert 0 < len(fresh_target.said.splitlines()) < 500
