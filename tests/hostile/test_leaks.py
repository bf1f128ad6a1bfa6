"""What is gone leaves nothing behind in a node. Told in process, where one can look."""

from klamm.runtime.files import RealFiles
from klamm.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from klamm.wire.messages.delete_topics import DeleteTopicsRequest
from klamm.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from tests.fuzz.solo import Solo, asked
from tests.hostile.raw import body_of
from tests.hostile.target import NAMED

TOPIC = "quiet"


def solo_with_topic(files: RealFiles) -> Solo:
    solo = Solo(files, seed=1)
    new = CreatableTopic(name=TOPIC, num_partitions=1, replication_factor=1)
    asked(solo, CreateTopicsRequest(topics=[new], timeout_ms=1000), 5)
    return solo


def fetch(session_id: int, epoch: int, *, wait_ms: int = 0, partitions: int = 1) -> FetchRequest:
    wanted = [FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)] * partitions
    return FetchRequest(
        max_wait_ms=wait_ms,
        min_bytes=1_000_000,
        max_bytes=1_000_000,
        session_id=session_id,
        session_epoch=epoch,
        topics=[FetchTopic(topic=TOPIC, partitions=wanted)] * partitions,
    )


def test_a_session_closed_while_a_fetch_of_it_waits_is_gone(real_files: RealFiles) -> None:
    """Else every such session stays with its partitions, and every append asks all of them."""
    solo = solo_with_topic(real_files)
    for _ in range(10):
        session_id = asked(solo, fetch(0, 0), NAMED).session_id
        waiting = solo.connect()
        solo.send(waiting, body_of(fetch(session_id, 1, wait_ms=100), NAMED))
        assert not solo.sent_to(waiting)
        asked(solo, fetch(session_id, -1, partitions=0), NAMED)
        solo.pass_time(200)
        assert solo.sent_to(waiting), "it is answered all the same"
        solo.hang_up(waiting)
    assert len(solo.node.broker.sessions) == 0
    partition = solo.node.broker.partitions.get(TOPIC, 0)
    assert partition is not None and not partition.sessions


def test_those_who_hang_up_while_they_wait_are_forgotten(real_files: RealFiles) -> None:
    solo = solo_with_topic(real_files)
    for _ in range(500):
        connection = solo.connect()
        solo.send(connection, *[body_of(fetch(0, -1, wait_ms=10**9), NAMED)] * 5)
        solo.hang_up(connection)
    waiting = solo.node.broker.waiting
    assert len(waiting) == 0
    assert len(waiting._deadlines) < 300, "and not kept in a heap for their deadline"


def test_a_fetch_that_waits_for_a_topic_that_is_deleted_hears_of_it(real_files: RealFiles) -> None:
    solo = solo_with_topic(real_files)
    waiting = solo.connect()
    solo.send(waiting, body_of(fetch(0, -1, wait_ms=10**6), NAMED))
    assert not solo.sent_to(waiting)
    asked(solo, DeleteTopicsRequest(topic_names=[TOPIC], timeout_ms=1000), 5)
    assert solo.sent_to(waiting)
    assert len(solo.node.broker.waiting) == 0
