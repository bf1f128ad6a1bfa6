"""What an acknowledgement means: with `flush.messages=1` that the record is on disk, and never less than was promised.

Group commit: while one flush is under way, everything that comes in shares the next. A flush that failed is never tried
again, because the system may have dropped the pages and would call the second try a success.
"""

import gc

import pytest

from klamm.broker.facts import PartitionFailed
from klamm.broker.waiting import Waiter
from klamm.errors import ErrorCode
from klamm.node.effects import Flush
from klamm.wire.messages.init_producer_id import InitProducerIdRequest
from tests.node.requests import (
    ALL,
    NAMED,
    acknowledged,
    batch_of,
    create,
    creation,
    fetch,
    fetched,
    metadata,
    offsets,
    produce,
    produce_to,
    producer_id,
    read_all,
    send,
    values_in,
)
from tests.node.world import Client, World

STORAGE_ERROR = ErrorCode.KAFKA_STORAGE_ERROR


@pytest.fixture
def world() -> World:
    """One topic that waits for the disk and one that does not; flushes are held back from here on."""
    world = World()
    client = world.connect()
    create(client, "safe", 2, flush_messages="1")
    create(client, "quick", 2)
    world.holds_flushes = True
    return world


@pytest.fixture
def client(world: World) -> Client:
    return world.connect()


def flushes(world: World) -> list[Flush]:
    return [effect for effect in world.effects if isinstance(effect, Flush)]


# acks.


@pytest.mark.parametrize("acks", [1, ALL])
def test_nothing_is_acknowledged_before_it_is_on_disk(world: World, client: Client, acks: int) -> None:
    client.post(produce("safe", b"one", acks=acks), version=NAMED)
    assert client.answers == [] and len(world.flushes) == 1
    assert offsets_held(world) == (1, 0)
    world.flush()
    assert acknowledged(client.take()).base_offset == 0
    assert offsets_held(world) == (1, 1)


def offsets_held(world: World) -> tuple[int, int]:
    partition = world.partition("safe")
    return partition.log.end_offset, partition.high_watermark


@pytest.mark.parametrize("acks", [1, ALL])
def test_without_the_setting_the_log_is_enough(world: World, client: Client, acks: int) -> None:
    assert acknowledged(client.ask(produce("quick", b"one", acks=acks), NAMED)).base_offset == 0
    assert not world.flushes


@pytest.mark.parametrize("topic", ["safe", "quick"])
def test_acks_0_is_never_answered(world: World, client: Client, topic: str) -> None:
    """Trap 18. The record is there all the same."""
    world.holds_flushes = False
    client.post(produce(topic, b"one", acks=0), version=NAMED)
    assert client.answers == [] and client.is_open
    assert read_all(client, topic) == [b"one"]


def test_an_error_with_acks_0_closes_the_connection(client: Client) -> None:
    client.post(produce("nowhere", b"one", acks=0), version=NAMED)
    assert client.answers == [] and not client.is_open


@pytest.mark.parametrize("acks", [2, -2, 100])
def test_other_acks_are_refused(client: Client, acks: int) -> None:
    answer = acknowledged(client.ask(produce("quick", b"one", acks=acks), NAMED))
    assert answer.error_code == ErrorCode.INVALID_REQUIRED_ACKS and answer.base_offset == -1
    assert offsets(client, "quick") == (0, 0)


def test_a_producer_that_runs_out_of_time_is_told_so(world: World, client: Client) -> None:
    """The record may still become safe; what the producer hears is that nobody knows yet."""
    request = produce("safe", b"slow")
    request.timeout_ms = 1_500
    client.post(request, version=NAMED)
    world.advance(1_499)
    assert client.answers == []
    world.advance(1)
    assert acknowledged(client.take()).error_code == ErrorCode.REQUEST_TIMED_OUT
    world.flush()
    assert client.answers == []
    world.holds_flushes = False
    assert read_all(client, "safe") == [b"slow"]


def test_one_request_to_several_partitions_waits_for_all_of_them(world: World, client: Client) -> None:
    client.post(produce_to([("quick", 0), ("safe", 0), ("safe", 1)], b"x"), version=NAMED)
    assert client.answers == []
    world.flush()
    answer = client.take()
    assert [each.partition_responses[0].error_code for each in answer.responses] == [0, 0, 0]


def test_consumers_see_only_what_is_on_disk(world: World, client: Client) -> None:
    client.post(produce("safe", b"one"), version=NAMED)
    reader = world.connect()
    answer = fetched(reader.ask(fetch("safe"), NAMED))
    assert values_in(answer) == [] and answer.high_watermark == 0
    world.flush()
    answer = fetched(reader.ask(fetch("safe"), NAMED))
    assert values_in(answer) == [b"one"] and answer.high_watermark == 1


def test_a_repeated_batch_waits_like_the_first(world: World, client: Client) -> None:
    """A retry of what is not on disk yet must not be acknowledged from memory."""
    world.holds_flushes = False
    identity = producer_id(client)
    world.holds_flushes = True
    other = world.connect()
    client.post(produce("safe", batch=batch_of(b"x", producer=(identity, 0, 0))), version=NAMED)
    other.post(produce("safe", batch=batch_of(b"x", producer=(identity, 0, 0))), version=NAMED)
    assert client.answers == other.answers == []
    world.flush()
    assert [acknowledged(each.take()).base_offset for each in (client, other)] == [0, 0]


# Group commit.


def test_many_producers_share_one_flush(world: World) -> None:
    clients = [world.connect() for _ in range(100)]
    clients[0].post(produce("safe", b"first"), version=NAMED)
    for number, client in enumerate(clients[1:]):
        client.post(produce("safe", b"later", index=number % 2), version=NAMED)
    assert len(world.flushes) == 1, "one at a time"
    world.flush()
    assert [len(client.answers) for client in clients] == [1] + 99 * [0]
    assert len(world.flushes) == 1
    world.flush()
    assert all(len(client.answers) == 1 for client in clients)
    assert not world.flushes and len(flushes(world)[-2:]) == 2


def test_a_flush_covers_what_was_there_when_it_began(world: World) -> None:
    """What came while it was under way is not taken for flushed with it."""
    first, second = world.connect(), world.connect()
    first.post(produce("safe", b"one"), version=NAMED)
    second.post(produce("safe", b"two"), version=NAMED)
    world.flush()
    assert len(first.answers) == 1 and second.answers == []
    assert world.partition("safe").high_watermark == 1


def test_metadata_and_records_share_a_flush(world: World) -> None:
    first, second, third = world.connect(), world.connect(), world.connect()
    first.post(produce("safe", b"one"), version=NAMED)
    second.post(produce("safe", b"two"), version=NAMED)
    third.post(creation("new"))
    world.flush()
    assert len(world.flushes) == 1
    groups = [{file.path.split("/")[0] for file in group} for group in world.flushes[0].groups]
    assert groups == [{"__cluster_metadata-0"}, {"safe-0"}]
    world.flush()
    assert acknowledged(second.take()).base_offset == 1 and third.take().topics[0].error_code == 0


def test_who_was_answered_is_forgotten() -> None:
    """A fetch that waits must not keep the answered requests of others alive: at ten thousand a second and a timeout of
    thirty seconds that would be hundreds of megabytes."""
    world = World()
    reader, writer = world.connect(), world.connect()
    create(reader, "safe", 2, flush_messages="1")
    reader.post(fetch("safe", index=1, wait_ms=5_000), version=NAMED)
    before = waiters_in_memory()
    for _ in range(500):
        send(writer, "safe", b"x")
    assert waiters_in_memory() - before < 250


def waiters_in_memory() -> int:
    gc.collect()
    return sum(type(each) is Waiter for each in gc.get_objects())


# A flush that fails.


def test_everybody_who_waits_hears_of_a_failed_flush(world: World) -> None:
    clients = [world.connect() for _ in range(5)]
    for client in clients:
        client.post(produce("safe", b"x"), version=NAMED)
    world.flush(error="safe-0: Input/output error")
    for client in clients:
        answer = acknowledged(client.take())
        assert answer.error_code == STORAGE_ERROR and answer.base_offset == -1
        assert "Input/output error" in answer.error_message


def test_a_partition_whose_flush_failed_is_offline_and_the_others_go_on(world: World, client: Client) -> None:
    client.post(produce("safe", b"x", index=0), version=NAMED)
    world.flush(error="Input/output error")
    client.take()
    world.holds_flushes = False
    assert acknowledged(client.ask(produce("safe", b"y", index=0), NAMED)).error_code == STORAGE_ERROR
    assert fetched(client.ask(fetch("safe", index=0), NAMED)).error_code == STORAGE_ERROR
    assert send(client, "safe", b"y", index=1) == 0
    assert send(client, "quick", b"y") == 0
    create(client, "another")
    assert [fact.partition for fact in world.told_of(PartitionFailed)] == ["safe-0"]


def test_a_failed_flush_is_never_tried_again(world: World, client: Client) -> None:
    """Not by later producers, not by housekeeping, not at shutdown."""
    client.post(produce("safe", b"x"), version=NAMED)
    world.flush(error="Input/output error")
    world.holds_flushes = False
    world.disk.flushed_paths.clear()
    world.connect().ask(produce("safe", b"y"), NAMED)
    send(world.connect(), "safe", b"z", index=1)
    world.advance(120_000)
    world.stop()
    asked = [path for paths in world.disk.flushed_paths for path in paths]
    assert not [path for path in asked if path.startswith("safe-0/")]
    assert [path for path in asked if path.startswith("safe-1/")]


def test_no_clean_shutdown_is_claimed_after_a_failed_flush(world: World, client: Client) -> None:
    client.post(produce("safe", b"x"), version=NAMED)
    world.flush(error="Input/output error")
    world.stop()
    assert not world.disk.exists(".kafka_cleanshutdown")


def test_a_restart_brings_the_partition_back(world: World, client: Client) -> None:
    """The record that was refused may be there or not; what was acknowledged before is."""
    world.holds_flushes = False
    send(client, "safe", b"acknowledged")
    world.holds_flushes = True
    client.post(produce("safe", b"refused"), version=NAMED)
    world.flush(error="Input/output error")
    world.holds_flushes = False
    world.stop()
    world.start_again()
    client = world.connect()
    assert read_all(client, "safe")[:1] == [b"acknowledged"]
    assert send(client, "safe", b"more") == len(read_all(client, "safe")) - 1


def test_a_disk_that_fails_in_a_flush_is_believed(world: World, client: Client) -> None:
    """The same with a real refusal of the disk instead of a word of the test."""
    world.holds_flushes = False
    world.disk.fail_once("flush")
    assert acknowledged(client.ask(produce("safe", b"x"), NAMED)).error_code == STORAGE_ERROR
    assert acknowledged(client.ask(produce("safe", b"x"), NAMED)).error_code == STORAGE_ERROR


# The metadata log.


def test_a_topic_is_not_there_before_its_record_is_on_disk(world: World, client: Client) -> None:
    client.post(creation("new"))
    assert client.answers == []
    other = world.connect()
    assert other.ask(metadata("new")).topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    world.flush()
    assert client.take().topics[0].error_code == ErrorCode.NONE
    assert other.ask(metadata("new")).topics[0].error_code == ErrorCode.NONE


def test_a_failed_metadata_flush_decides_nothing_more(world: World, client: Client) -> None:
    client.post(creation("new"))
    world.flush(error="__cluster_metadata-0: Input/output error")
    world.holds_flushes = False
    assert client.take().topics[0].error_code != ErrorCode.NONE
    answer = client.ask(creation("newer")).topics[0]
    assert answer.error_code == STORAGE_ERROR and "Input/output error" in answer.error_message
    assert client.ask(metadata("new", "newer", create_missing=True)).topics[0].error_code != ErrorCode.NONE


def test_records_go_on_though_metadata_cannot(world: World, client: Client) -> None:
    client.post(creation("new"))
    world.flush(error="Input/output error")
    client.take()
    world.holds_flushes = False
    assert send(client, "safe", b"x") == 0 and send(client, "quick", b"y") == 0
    assert read_all(client, "safe") == [b"x"]


def test_who_asks_for_a_producer_id_after_that_is_not_left_waiting(world: World, client: Client) -> None:
    client.post(InitProducerIdRequest(transactional_id=None))
    world.flush(error="Input/output error")
    assert client.take().error_code != ErrorCode.NONE
    world.holds_flushes = False
    assert client.ask(InitProducerIdRequest(transactional_id=None)).error_code != ErrorCode.NONE


def test_no_clean_shutdown_is_claimed_after_a_failed_metadata_flush(world: World, client: Client) -> None:
    """The next start has to check the metadata log batch by batch: what the disk made of its end, nobody knows."""
    client.post(creation("new"))
    world.flush(error="Input/output error")
    world.stop()
    assert not world.disk.exists(".kafka_cleanshutdown")


def test_a_restart_after_a_failed_metadata_flush(world: World, client: Client) -> None:
    world.holds_flushes = False
    send(client, "safe", b"x")
    world.holds_flushes = True
    client.post(creation("new"))
    world.flush(error="Input/output error")
    world.holds_flushes = False
    world.stop()
    world.start_again()
    client = world.connect()
    assert read_all(client, "safe") == [b"x"]
    create(client, "newest")
