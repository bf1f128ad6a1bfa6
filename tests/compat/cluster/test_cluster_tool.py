"""`kafka-cluster`, and the tools that ask each broker: who is there, what it can, how it is set up, what it holds."""
# ruff: noqa: N802  (tests are named after the rows of the system)

import json
import re
import shutil
import subprocess

import pytest

from tests.compat.cluster.admin import CLUSTER_TOOL, Admin
from tests.compat.cluster.clusters import Cluster
from tests.compat.java_client import JavaClient
from tests.harness.waiting import wait_until
from tests.harness.workload import FIRST_TIMESTAMP_MS, Sent


def test_S6_the_cluster_lists_its_brokers_and_controllers(admin: Admin, cluster: Cluster) -> None:
    told = admin.cluster("cluster-id").checked()
    assert re.fullmatch(r"Cluster ID: \S{22}\n", told)
    assert admin.at_controllers(CLUSTER_TOOL, "cluster-id").checked() == told
    brokers = [(str(number), cluster.address(number), "broker") for number in cluster.brokers]
    assert _endpoints(admin.cluster("list-endpoints").checked()) == brokers
    controllers = list(enumerate(cluster.controllers.split(",")))
    assert _endpoints(admin.at_controllers(CLUSTER_TOOL, "list-endpoints").checked()) == [
        (str(number), address, "controller") for number, address in controllers
    ]


def test_S6_a_dead_broker_is_fenced_unregistered_and_comes_back(admin: Admin, cluster: Cluster, topic: str) -> None:
    admin.create(topic, "1:2")
    refused = admin.cluster("unregister", "--id", "7")
    assert refused.code == 1 and "BrokerIdNotRegisteredException" in refused.err

    cluster.kill(2)
    wait_until(lambda: "\n2 " not in admin.cluster("list-endpoints").checked(), "broker 2 is not shown")
    fenced = admin.cluster("list-endpoints", "--include-fenced-brokers").checked()
    assert re.search(r"^2 +.* fenced +broker", fenced, re.MULTILINE)
    assert "Broker 2 is no longer registered." in admin.cluster("unregister", "--id", "2").checked()
    wait_until(
        lambda: "\n2 " not in admin.cluster("list-endpoints", "--include-fenced-brokers").checked(),
        "broker 2 is forgotten",
    )
    assert admin.described(topic)[0].replicas == [1, 2], "what it was to hold is still its own"
    cluster.start(2)
    admin.wait_in_sync(topic, {1, 2})
    assert "\n2 " in admin.cluster("list-endpoints").checked()


def test_S11_topics_tool_tells_which_partitions_are_in_need(admin: Admin, cluster: Cluster, topic: str) -> None:
    """Min ISR is two. A partition loses one of its three replicas, one of its two, or none."""
    needs = ("--under-replicated-partitions", "--at-min-isr-partitions", "--under-min-isr-partitions")
    three, two = f"{topic}-3", f"{topic}-2"
    admin.create(three, "0:1:2")
    admin.create(two, "1:2,0:1")
    assert [_partitions(admin, three, need) for need in needs] == [[], [], []]
    assert [_partitions(admin, two, need) for need in needs] == [[], [0, 1], []]
    cluster.kill(2)
    admin.wait_in_sync(three, {0, 1})
    admin.wait_in_sync(two, {1}, {0, 1})
    assert [_partitions(admin, three, need) for need in needs] == [[0], [0], []]
    assert [_partitions(admin, two, need) for need in needs] == [[0], [1], [0]]
    assert _partitions(admin, two, "--unavailable-partitions") == []
    assert admin.described(two)[0].eligible == {2}, "it has everything that was ever committed"
    cluster.start(2)
    admin.wait_in_sync(three, {0, 1, 2})
    admin.wait_in_sync(two, {1, 2}, {0, 1})
    assert [_partitions(admin, three, need) for need in needs] == [[], [], []]


def test_S9_the_cluster_places_what_nobody_placed(admin: Admin, topic: str) -> None:
    """Three partitions with three replicas, as the cluster's defaults say: everybody leads one and follows two."""
    admin.topics("--create", "--topic", topic).checked()
    wait_until(lambda: len(admin.described(topic)) == 3, "it is seen")
    partitions = admin.described(topic)
    assert sorted(each.leader for each in partitions) == ["0", "1", "2"]
    assert all(sorted(each.replicas) == [0, 1, 2] for each in partitions)
    too_many = admin.topics("--create", "--topic", f"{topic}-4", "--replication-factor", "4")
    assert too_many.code == 1 and "only 3 broker(s) are registered" in too_many.out


def test_configs_of_one_broker_and_of_all(admin: Admin) -> None:
    brokers = ["--entity-type", "brokers"]
    admin.configs("--alter", *brokers, "--entity-default", "--add-config", "log.retention.ms=70000001").checked()
    admin.configs("--alter", *brokers, "--entity-name", "1", "--add-config", "log.retention.ms=70000002").checked()

    def shown(broker_id: int) -> str:
        every = admin.configs("--describe", "--all", *brokers, "--entity-name", str(broker_id)).checked()
        return next(line.strip() for line in every.splitlines() if line.startswith("  log.retention.ms="))

    of_all = "DYNAMIC_DEFAULT_BROKER_CONFIG:log.retention.ms=70000001"
    for broker_id in (0, 2):
        wait_until(
            lambda number=broker_id: f"=70000001 sensitive=false synonyms={{{of_all}" in shown(number),  # type: ignore[misc]
            f"broker {broker_id} keeps to the cluster's",
        )
    own = "DYNAMIC_BROKER_CONFIG:log.retention.ms=70000002"
    wait_until(lambda: f"=70000002 sensitive=false synonyms={{{own}, {of_all}" in shown(1), "broker 1 has its own")
    listed = admin.configs("--describe", *brokers).checked()
    assert re.search(r"broker 1 are:\n  log.retention.ms=70000002", listed)
    assert re.search(r"brokers in the cluster are:\n(  .*\n)*  log.retention.ms=70000001", listed)

    for which in (["--entity-name", "1"], ["--entity-default"]):
        admin.configs("--alter", *brokers, *which, "--delete-config", "log.retention.ms").checked()
    wait_until(lambda: "70000" not in admin.configs("--describe", *brokers).checked(), "they are gone")


def test_S13_offsets_and_sizes_are_those_of_every_broker(
    admin: Admin, cluster: Cluster, topic: str, java: JavaClient
) -> None:
    admin.create(topic, "0:1,1:2,2:0")
    java.produce(
        cluster.bootstrap, topic, [Sent(number % 3, None, bytes(900), (), FIRST_TIMESTAMP_MS) for number in range(90)]
    )
    assert admin.offsets(topic) == "\n".join(f"{topic}:{number}:30" for number in range(3))
    assert admin.offsets(topic, "--time", "earliest") == "\n".join(f"{topic}:{number}:0" for number in range(3))
    homes = {0: (0, 2), 1: (0, 1), 2: (1, 2)}
    sizes = admin.sizes(topic)
    assert {broker: tuple(sorted(parts)) for broker, parts in sizes.items()} == homes
    for first, second, number in ((0, 1, 0), (1, 2, 1), (2, 0, 2)):
        assert sizes[first][number] == sizes[second][number] > 27_000, "leader and follower hold the same bytes"


def test_trap_05_every_broker_serves_the_same(admin: Admin, cluster: Cluster) -> None:
    shown = admin.tool("BrokerApiVersionsCommand").checked()
    answers = re.findall(r"^(\S+) \(id: (\d) rack: R1 isFenced: false\) -> \((.*?)^\)", shown, re.MULTILINE | re.DOTALL)
    assert sorted((int(number), address) for address, number, _ in answers) == [
        (number, cluster.address(number)) for number in cluster.brokers
    ]
    assert len({served for *_, served in answers}) == 1
    for wanted in ("ElectLeaders(43): 0 to 2", "AlterPartitionReassignments(45): 0 to 1", "DescribeQuorum(55): 0 to 2"):
        assert wanted in answers[0][2], wanted


def test_features_are_those_of_the_cluster(admin: Admin) -> None:
    shown = admin.tool("FeatureCommand", "describe").checked()
    assert re.search(r"^Feature: metadata.version\s.*FinalizedVersionLevel: 4\.\d-IV\d", shown, re.MULTILINE)
    assert re.search(r"^Feature: eligible.leader.replicas.version\s.*FinalizedVersionLevel: 1", shown, re.MULTILINE)


def test_S11_kcat_lists_brokers_leaders_and_replicas(admin: Admin, cluster: Cluster, topic: str) -> None:
    if shutil.which("kcat") is None:
        pytest.skip("needs kcat: apt-get install kcat")
    admin.create(topic, "0:1,1:2,2:0")
    command = ["kcat", "-b", cluster.bootstrap, "-L", "-J", "-t", topic]
    listed = json.loads(subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout)
    assert sorted((broker["id"], broker["name"]) for broker in listed["brokers"]) == [
        (number, cluster.address(number)) for number in cluster.brokers
    ]
    (shown,) = listed["topics"]
    partitions = sorted(shown["partitions"], key=lambda partition: int(partition["partition"]))
    assert [(each["leader"], [replica["id"] for replica in each["replicas"]]) for each in partitions] == [
        (0, [0, 1]),
        (1, [1, 2]),
        (2, [2, 0]),
    ]
    assert [{replica["id"] for replica in each["isrs"]} for each in partitions] == [{0, 1}, {1, 2}, {0, 2}]


def _endpoints(printed: str) -> list[tuple[str, str, str]]:
    """Number, address and kind of each."""
    rows = [line.split() for line in printed.splitlines()[1:]]
    return [(row[0], f"{row[1]}:{row[2]}", row[-1]) for row in rows]


def _partitions(admin: Admin, topic: str, need: str) -> list[int]:
    return [each.partition for each in admin.described(topic, need)]
