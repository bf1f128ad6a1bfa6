"""KIP-392: a consumer that says in which rack it is reads from an in-sync replica there."""

from typing import Any

from klamm.errors import ErrorCode
from klamm.handlers import fetch
from klamm.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from tests.broker.toy_controller import TOPIC_ID
from tests.broker.world import World

RACK_AWARE = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
VERSION = 17


def world_with_racks(selector: str = RACK_AWARE) -> World:
    world = World(3, replica_selector_class=selector)
    world.create_topic([0, 1, 2])
    world.settle_all()
    world[0].produce(b"a")
    world.settle_all()
    return world


def read(
    world: World,
    broker_id: int,
    rack: str = "",
    offset: int = 0,
    wait_ms: int = 0,
    epoch: int = -1,
    last_epoch: int = -1,
) -> Any:
    partition = FetchPartition(
        partition=0,
        fetch_offset=offset,
        partition_max_bytes=1 << 20,
        current_leader_epoch=epoch,
        last_fetched_epoch=last_epoch,
    )
    request = FetchRequest(
        max_wait_ms=wait_ms,
        min_bytes=1,
        session_epoch=-1,
        topics=[FetchTopic(topic_id=TOPIC_ID, partitions=[partition])],
        rack_id=rack,
    )
    answers: list[Any] = []
    world[broker_id].ask(fetch.handle, request, VERSION, answers.append)
    return answers[0].responses[0].partitions[0] if answers else None


def test_the_leader_sends_a_consumer_to_the_replica_in_its_rack() -> None:
    world = world_with_racks()
    answer = read(world, 0, "rack-2")
    assert answer.preferred_read_replica == 2 and len(answer.records) == 0 and answer.error_code == 0


def test_it_does_so_at_once_even_if_there_is_nothing_to_read() -> None:
    world = world_with_racks()
    assert read(world, 0, "rack-2", offset=1, wait_ms=500).preferred_read_replica == 2


def test_who_is_in_the_leaders_rack_or_says_nothing_stays() -> None:
    world = world_with_racks()
    for rack in ("rack-0", "", "rack-9"):
        answer = read(world, 0, rack)
        assert answer.preferred_read_replica == -1 and len(answer.records) > 0


def test_a_replica_that_is_not_in_sync_or_has_not_got_there_is_not_recommended() -> None:
    world = world_with_racks()
    world[0].produce(b"b")
    world.settle_all(deaf=frozenset({2}))
    assert read(world, 0, "rack-2", offset=2, wait_ms=0).preferred_read_replica == -1
    world.controller.fence(2)
    world[0].follow_all()
    assert read(world, 0, "rack-2", offset=0).preferred_read_replica == -1


def test_followers_hear_of_the_watermark_at_once_and_serve_below_it() -> None:
    world = world_with_racks()
    assert world[2].partition().high_watermark == 1, "without a word of time passing"
    assert len(read(world, 2, "rack-2").records) > 0
    assert len(read(world, 2, "rack-2", offset=1).records) == 0
    assert read(world, 2, epoch=7).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH


def test_a_consumer_that_waits_at_a_follower_is_woken_when_the_watermark_comes() -> None:
    world = world_with_racks()
    partition = FetchPartition(partition=0, fetch_offset=1, partition_max_bytes=1 << 20)
    request = FetchRequest(
        max_wait_ms=500,
        min_bytes=1,
        session_epoch=-1,
        topics=[FetchTopic(topic_id=TOPIC_ID, partitions=[partition])],
        rack_id="rack-2",
    )
    answers: list[Any] = []
    world[2].ask(fetch.handle, request, VERSION, answers.append)
    world[0].produce(b"b")
    assert not answers
    world.settle_all()
    assert len(answers[0].responses[0].partitions[0].records) > 0


def test_by_default_only_the_leader_serves_readers_and_others_name_it() -> None:
    world = world_with_racks("")
    assert read(world, 0, "rack-2").preferred_read_replica == -1
    answer = read(world, 2)
    assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert (answer.current_leader.leader_id, answer.current_leader.leader_epoch) == (0, 0)


def test_a_follower_that_is_behind_does_not_say_that_the_consumers_history_is_another() -> None:
    world = world_with_racks()
    world[0].produce(b"b")
    world.settle_all(deaf=frozenset({2}))
    assert read(world, 2, "rack-2", offset=2, last_epoch=0).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert read(world, 2, "rack-2", offset=2, last_epoch=0).diverging_epoch.epoch == -1
    answer = read(world, 0, offset=3, last_epoch=0)
    assert (answer.diverging_epoch.epoch, answer.diverging_epoch.end_offset) == (0, 2), "the leader knows"
