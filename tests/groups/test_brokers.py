"""Three brokers, two groups at work, and the brokers go: what was committed stays, and nothing is skipped."""

from collections.abc import Iterator

import pytest

from klamm.errors import ErrorCode
from klamm.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from klamm.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from klamm.wire.messages.delete_groups import DeleteGroupsRequest
from klamm.wire.messages.describe_groups import DescribeGroupsRequest
from klamm.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from klamm.wire.messages.offset_delete import OffsetDeleteRequest
from tests.compat.cluster.clusters import Cluster, started_cluster
from tests.groups.brokers import (
    REPLICATED,
    at_work,
    change_of_members,
    check_kept,
    coordinator,
    finish,
    port,
    wait_moving,
)
from tests.groups.gathering import PARTITIONS
from tests.harness.groups import Member, commit, fetch_all
from tests.harness.topics import create_topic


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    running = started_cluster(tmp_path_factory.mktemp("three") / "cluster", brokers=3, racks=1, settings=REPLICATED)
    yield running
    running.close()


def test_only_the_coordinator_answers(cluster: Cluster) -> None:
    """All others say that they are not, in everything that is about one group; whether it exists or not."""
    group = "asked-everywhere"
    create_topic(cluster.bootstrap, "asked", 1)
    leading = coordinator(cluster, group)
    for broker_id in set(cluster.brokers) - {leading}:
        with Member(port(cluster, broker_id), group) as member:
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
    with at_work(cluster, topic) as (feeder, groups):
        for group in groups:
            leading = coordinator(cluster, group.group)
            before = {partition: group.committed(partition) for partition in range(PARTITIONS)}
            cluster.kill(leading)
            wait_moving(feeder, groups)
            assert coordinator(cluster, group.group) != leading
            check_kept(cluster, group, topic, before)
            cluster.start(leading)
        change_of_members(groups)
        finish(feeder, groups)


def test_all_brokers_are_restarted_one_by_one(cluster: Cluster, topic: str) -> None:
    with at_work(cluster, topic) as (feeder, groups):
        for broker_id in cluster.brokers:
            cluster.stop(broker_id)
            cluster.start(broker_id)
            wait_moving(feeder, groups)
        change_of_members(groups)
        finish(feeder, groups)
