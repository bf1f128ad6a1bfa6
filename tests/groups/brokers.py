"""A cluster whose brokers go while two groups are at work: what both need to begin, to be seen moving, and to end."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from klamm.wire.messages.find_coordinator import FindCoordinatorRequest
from tests.compat.cluster.clusters import Cluster
from tests.groups.conftest import SETTINGS
from tests.groups.feeder import Feeder
from tests.groups.gathering import PARTITIONS, Gathering
from tests.groups.member import PYTHON, Command
from tests.harness.groups import GROUP, committed, wait_coordinator
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


@contextmanager
def at_work(
    cluster: Cluster,
    topic: str,
    classic_clients: tuple[str, ...] = ("confluent-kafka", "kafka-python", "aiokafka"),
    newer_client: str = "confluent-kafka",
    commands: Mapping[str, Command] = PYTHON,
) -> Iterator[tuple[Feeder, list[Gathering]]]:
    """A classic group, and one of the newer protocol; both have begun."""
    create_topic(cluster.bootstrap, topic, PARTITIONS)
    with (
        Feeder(cluster.bootstrap, topic, PARTITIONS) as feeder,
        Gathering(cluster.bootstrap, topic, f"classic-{topic}", commands=commands) as classic,
        Gathering(cluster.bootstrap, topic, f"newer-{topic}", commands=commands) as newer,
    ):
        for client in classic_clients:
            classic.start(client, 1, session_ms=10_000)
        newer.start(newer_client, 2, protocol="consumer")
        classic.wait_shared(among=len(classic_clients))
        newer.wait_shared(among=2)
        wait_moving(feeder, [classic, newer])
        yield feeder, [classic, newer]


def wait_moving(feeder: Feeder, groups: list[Gathering]) -> None:
    further = {partition: end + MOVING for partition, end in feeder.ends.items()}
    for group in groups:
        group.wait_handled(further, within_seconds=60)


def change_of_members(groups: list[Gathering]) -> None:
    """Others begin where these stop: if a commit were lost, the reckoning would show it."""
    for group, protocol in zip(groups, ("classic", "consumer"), strict=True):
        group.running[0].leave()
        group.start("confluent-kafka", 1, protocol=protocol, session_ms=10_000)
        group.wait_joined(len(group.running))
        group.wait_shared(among=len(group.running))


def finish(feeder: Feeder, groups: list[Gathering]) -> None:
    ends = feeder.stop()
    for group in groups:
        group.wait_handled(ends)
        print(group.group, group.reckoned(ends))


def check_kept(cluster: Cluster, group: Gathering, topic: str, before: dict[int, int]) -> None:
    with Raw(port(cluster, coordinator(cluster, group.group))) as raw:
        now = {partition: committed(raw, group.group, topic, partition) for partition in before}
    assert all(now[partition] >= offset for partition, offset in before.items()), (before, now)


def coordinator(cluster: Cluster, group: str) -> int:
    """Whom a broker that runs names; it waits until there is one."""
    running = next(one for one in cluster.brokers if one not in cluster.down)
    found: list[int] = []

    def is_there() -> bool:
        with Raw(port(cluster, running)) as raw:
            answer = raw.call("FindCoordinator", 3, FindCoordinatorRequest(group, GROUP))
        found.append(answer.node_id)
        return bool(answer.error_code == 0)

    wait_until(is_there, f"{group} has a coordinator", within_seconds=30)
    with Raw(port(cluster, found[-1])) as raw:
        wait_coordinator(raw, group)
    return found[-1]


def port(cluster: Cluster, broker_id: int) -> int:
    return int(cluster.address(broker_id).rpartition(":")[2])
