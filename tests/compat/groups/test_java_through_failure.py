"""Java members while their coordinator's broker is killed, and while all brokers are restarted one by one."""

from collections.abc import Iterator, Mapping

import pytest

from tests.compat.cluster.clusters import Cluster, started_cluster
from tests.groups.brokers import (
    REPLICATED,
    at_work,
    change_of_members,
    check_kept,
    coordinator,
    finish,
    wait_moving,
)
from tests.groups.gathering import PARTITIONS
from tests.groups.member import Command


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    running = started_cluster(tmp_path_factory.mktemp("three") / "cluster", brokers=3, racks=1, settings=REPLICATED)
    yield running
    running.close()


def test_java_members_while_brokers_go(cluster: Cluster, topic: str, commands: Mapping[str, Command]) -> None:
    """Each group's coordinator is killed once and comes back; then every broker is restarted."""
    with at_work(cluster, topic, ("java", "java"), "java", commands) as (feeder, groups):
        for group in groups:
            leading = coordinator(cluster, group.group)
            before = {partition: group.committed(partition) for partition in range(PARTITIONS)}
            cluster.kill(leading)
            wait_moving(feeder, groups)
            check_kept(cluster, group, topic, before)
            cluster.start(leading)
        for broker_id in cluster.brokers:
            cluster.stop(broker_id)
            cluster.start(broker_id)
            wait_moving(feeder, groups)
        change_of_members(groups)
        finish(feeder, groups)
