"""Three brokers, two groups at work, and the brokers go: what was committed stays, and nothing is skipped."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from klamm.errors import ErrorCode
from klamm.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from klamm.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from klamm.wire.messages.delete_groups import DeleteGroupsRequest
from klamm.wire.messages.describe_groups import DescribeGroupsRequest
from klamm.wire.messages.find_coordinator import FindCoordinatorRequest
from klamm.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from klamm.wire.messages.offset_delete import OffsetDeleteRequest
from tests.compat.cluster.clusters import Cluster, started_cluster
from tests.groups.conftest import SETTINGS
from tests.groups.feeder import Feeder
from tests.groups.gathering import PARTITIONS, Gathering
from tests.harness.groups import GROUP, Member, commit, committed, fetch_all, wait_coordinator
from tests.harness.raw import Raw
from tests.harness.topics import create_topic
from tests.harness.waiting import wait_until

REPLICATED = {
    **SETTINGS,
    "offsets.topic.replication.factor": "3",
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "group.consumer.session.timeout.ms": "10000",
}
MOVING = 50
"""So many records further in every partition: whoever got there had a coordinator that takes commits."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    running = started_cluster(tmp_path_factory.mktemp("three") / "cluster", brokers=3, racks=1, settings=REPLICATED)
    yield running
    running.close()


def test_only_the_coordinator_answers(cluster: Cluster) -> None:
    """All others say that they are not, in everything that is about one group; whether it exists or not."""
    group = "asked-everywhere"
    create_topic(cluster.bootstrap, "asked", 1)
    coordinator = _coordinator(cluster, group)
    for broker_id in set(cluster.brokers) - {coordinator}:
        port = _port(cluster, broker_id)
        with Member(port, group) as member:
            raw = member.raw
            identity = [MemberIdentity("x")]
            codes = [
                raw.call("JoinGroup", 9, member.join_request()).error_code,
                member.sync(generation_id=1, member_id="x").error_code,
                member.heartbeat(generation_id=1, member_id="x"),
                raw.call("LeaveGroup", 5, LeaveGroupRequest(group, "", identity)).error_code,
                commit(raw, group, "asked", 1),
                fetch_all(raw, group).error_code,
                raw.call("DescribeGroups", 6, DescribeGroupsRequest([group])).groups[0].error_code,
                raw.call("DeleteGroups", 2, DeleteGroupsRequest([group])).results[0].error_code,
                raw.call("OffsetDelete", 0, OffsetDeleteRequest(group)).error_code,
                raw.call("ConsumerGroupDescribe", 1, ConsumerGroupDescribeRequest([group])).groups[0].error_code,
                raw.call(
                    "ConsumerGroupHeartbeat",
                    1,
                    ConsumerGroupHeartbeatRequest(group, "x", 0, None, None, 5000, ["asked"], topic_partitions=[]),
                ).error_code,
            ]
            assert codes == [ErrorCode.NOT_COORDINATOR] * len(codes), codes


def test_the_coordinators_broker_is_killed_under_load(cluster: Cluster, topic: str) -> None:
    with _at_work(cluster, topic) as (feeder, groups):
        for group in groups:
            coordinator = _coordinator(cluster, group.group)
            before = {partition: group.committed(partition) for partition in range(PARTITIONS)}
            cluster.kill(coordinator)
            _wait_moving(feeder, groups)
            assert _coordinator(cluster, group.group) != coordinator
            _check_kept(cluster, group, topic, before)
            cluster.start(coordinator)
        _change_of_members(groups)
        _finish(feeder, groups)


def test_all_brokers_are_restarted_one_by_one(cluster: Cluster, topic: str) -> None:
    with _at_work(cluster, topic) as (feeder, groups):
        for broker_id in cluster.brokers:
            cluster.stop(broker_id)
            cluster.start(broker_id)
            _wait_moving(feeder, groups)
        _change_of_members(groups)
        _finish(feeder, groups)


@contextmanager
def _at_work(cluster: Cluster, topic: str) -> Iterator[tuple[Feeder, list[Gathering]]]:
    """A classic group by three libraries, and one of the newer protocol; both have begun."""
    create_topic(cluster.bootstrap, topic, PARTITIONS)
    with (
        Feeder(cluster.bootstrap, topic, PARTITIONS) as feeder,
        Gathering(cluster.bootstrap, topic, f"classic-{topic}") as classic,
        Gathering(cluster.bootstrap, topic, f"newer-{topic}") as newer,
    ):
        for client in ("confluent-kafka", "kafka-python", "aiokafka"):
            classic.start(client, 1, session_ms=10_000)
        newer.start("confluent-kafka", 2, protocol="consumer")
        classic.wait_shared(among=3)
        newer.wait_shared(among=2)
        _wait_moving(feeder, [classic, newer])
        yield feeder, [classic, newer]


def _wait_moving(feeder: Feeder, groups: list[Gathering]) -> None:
    further = {partition: end + MOVING for partition, end in feeder.ends.items()}
    for group in groups:
        group.wait_handled(further, within_seconds=60)


def _change_of_members(groups: list[Gathering]) -> None:
    """Others begin where these stop: if a commit were lost, the reckoning would show it."""
    for group, protocol in zip(groups, ("classic", "consumer"), strict=True):
        group.running[0].leave()
        group.start("confluent-kafka", 1, protocol=protocol, session_ms=10_000)
        group.wait_joined(len(group.running))
        group.wait_shared(among=len(group.running))


def _finish(feeder: Feeder, groups: list[Gathering]) -> None:
    ends = feeder.stop()
    for group in groups:
        group.wait_handled(ends)
        print(group.group, group.reckoned(ends))


def _check_kept(cluster: Cluster, group: Gathering, topic: str, before: dict[int, int]) -> None:
    with Raw(_port(cluster, _coordinator(cluster, group.group))) as raw:
        now = {partition: committed(raw, group.group, topic, partition) for partition in before}
    assert all(now[partition] >= offset for partition, offset in before.items()), (before, now)


def _coordinator(cluster: Cluster, group: str) -> int:
    """Whom a broker that runs names; it waits until there is one."""
    running = next(one for one in cluster.brokers if one not in cluster.down)
    found: list[int] = []

    def is_there() -> bool:
        with Raw(_port(cluster, running)) as raw:
            answer = raw.call("FindCoordinator", 3, FindCoordinatorRequest(group, GROUP))
        found.append(answer.node_id)
        return bool(answer.error_code == 0)

    wait_until(is_there, f"{group} has a coordinator", within_seconds=30)
    with Raw(_port(cluster, found[-1])) as raw:
        wait_coordinator(raw, group)
    return found[-1]


def _port(cluster: Cluster, broker_id: int) -> int:
    return int(cluster.address(broker_id).rpartition(":")[2])
