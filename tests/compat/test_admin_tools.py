"""Kafka's admin tools see and change what they would on Kafka: topics, configs, offsets, log directories."""
# ruff: noqa: N802  (tests are named after the rows of the system)

import json
import re
from pathlib import Path

import pytest

from tests.compat.java_client import JavaClient
from tests.compat.java_tools import JavaTools, Ran
from tests.harness.node import Node, under_test
from tests.harness.topics import create_topic
from tests.harness.waiting import wait_until
from tests.harness.workload import FIRST_TIMESTAMP_MS, Sent

TOOLS = "org.apache.kafka.tools."
SERVED = {
    "Produce": (0, 13),
    "Fetch": (4, 18),
    "ListOffsets": (1, 11),
    "Metadata": (0, 13),
    "OffsetCommit": (2, 10),
    "OffsetFetch": (1, 10),
    "FindCoordinator": (0, 6),
    "JoinGroup": (0, 9),
    "Heartbeat": (0, 4),
    "LeaveGroup": (0, 5),
    "SyncGroup": (0, 5),
    "DescribeGroups": (0, 6),
    "ListGroups": (0, 5),
    "DeleteGroups": (0, 2),
    "OffsetDelete": (0, 0),
    "ConsumerGroupHeartbeat": (0, 1),
    "ConsumerGroupDescribe": (0, 1),
    "ApiVersions": (0, 4),
    "CreateTopics": (2, 7),
    "DeleteTopics": (1, 6),
    "DeleteRecords": (0, 2),
    "InitProducerId": (0, 5),
    "OffsetForLeaderEpoch": (2, 4),
    "DescribeConfigs": (1, 4),
    "AlterConfigs": (0, 2),
    "DescribeLogDirs": (1, 5),
    "CreatePartitions": (0, 3),
    "IncrementalAlterConfigs": (0, 1),
    "DescribeCluster": (0, 2),
    "ListConfigResources": (0, 1),
    "DescribeTopicPartitions": (0, 0),
}


class Admin:
    """The tools bound to one broker: `admin.topics("--list")`."""

    def __init__(self, tools: JavaTools, bootstrap: str) -> None:
        self._tools = tools
        self._bootstrap = bootstrap

    def create(self, topic: str, *arguments: str) -> None:
        """Creates a topic and waits until the broker shows it, which may be a moment later."""
        assert f"Created topic {topic}." in self.topics("--create", "--topic", topic, *arguments).checked()
        wait_until(lambda: self.topics("--describe", "--topic", topic).code == 0, f"{topic} is shown")

    def topics(self, *arguments: str) -> Ran:
        return self._run(f"{TOOLS}TopicCommand", *arguments)

    def configs(self, *arguments: str) -> Ran:
        return self._run("kafka.admin.ConfigCommand", *arguments)

    def offsets(self, topic: str, time: str) -> str:
        return self._run(f"{TOOLS}GetOffsetShell", "--topic", topic, "--time", time).checked().strip()

    def tool(self, name: str, *arguments: str) -> Ran:
        return self._run(TOOLS + name, *arguments)

    def cluster(self, command: str) -> Ran:
        return self._tools.run(f"{TOOLS}ClusterTool", command, "--bootstrap-server", self._bootstrap)

    def _run(self, tool: str, *arguments: str) -> Ran:
        return self._tools.run(tool, "--bootstrap-server", self._bootstrap, *arguments)


@pytest.fixture
def admin(tools: JavaTools, node: Node) -> Admin:
    return Admin(tools, node.bootstrap)


def test_S1_topics_are_created_listed_described_grown_and_deleted(admin: Admin, topic: str) -> None:
    admin.create(topic, "--partitions", "2", "--config", "retention.ms=1234567")
    assert topic in admin.topics("--list").checked().split()

    described = admin.topics("--describe", "--topic", topic).checked()
    head, *partitions = described.strip().splitlines()
    assert re.search(r"TopicId: \S{22}\tPartitionCount: 2\tReplicationFactor: 1\tConfigs: .*retention.ms=1234567", head)
    assert [_fields(line) for line in partitions] == [
        {"Topic": topic, "Partition": str(number), "Leader": "0", "Replicas": "0", "Isr": "0"} for number in range(2)
    ]

    admin.topics("--alter", "--topic", topic, "--partitions", "5").checked()
    wait_until(
        lambda: "PartitionCount: 5" in admin.topics("--describe", "--topic", topic).checked(),
        "five partitions are seen",
    )
    assert admin.topics("--describe", "--topic", topic, "--unavailable-partitions").checked() == ""

    admin.topics("--delete", "--topic", topic).checked()
    wait_until(lambda: topic not in admin.topics("--list").checked().split(), "the topic is gone")


def test_topics_tool_is_told_why_not(admin: Admin, topic: str) -> None:
    admin.create(topic, "--partitions", "5")
    again = admin.topics("--create", "--topic", topic)
    assert again.code == 1 and "already exists" in again.out
    admin.topics("--create", "--topic", topic, "--if-not-exists").checked()
    shrunk = admin.topics("--alter", "--topic", topic, "--partitions", "3")
    assert shrunk.code == 1 and "5 partition" in shrunk.out
    too_many_replicas = admin.topics("--create", "--topic", f"{topic}-r3", "--replication-factor", "3")
    assert too_many_replicas.code == 1 and "replicat" in too_many_replicas.out
    wrong_config = admin.topics("--create", "--topic", f"{topic}-c", "--config", "retention.ms=soon")
    assert wrong_config.code == 1
    assert f"{topic}-" not in admin.topics("--list").checked()


def test_S5_topics_tool_leaves_the_number_of_partitions_to_the_broker(admin: Admin, topic: str) -> None:
    admin.create(topic)
    described = admin.topics("--describe", "--topic", topic).checked()
    assert "PartitionCount: 1\tReplicationFactor: 1" in described


def test_configs_of_a_topic_are_added_shown_and_deleted(admin: Admin, topic: str) -> None:
    entity = ["--entity-type", "topics", "--entity-name", topic]
    admin.create(topic, "--config", "retention.ms=1234567")
    admin.configs(
        "--alter", *entity, "--add-config", "max.message.bytes=2000,cleanup.policy=[compact,delete]"
    ).checked()

    wait_until(lambda: "  max.message.bytes" in admin.configs("--describe", *entity).checked(), "the change is seen")
    own = admin.configs("--describe", *entity).checked()
    assert re.search(r"cleanup.policy=compact,delete sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:", own)
    assert re.search(
        r"max.message.bytes=2000 sensitive=false synonyms="
        r"{DYNAMIC_TOPIC_CONFIG:max.message.bytes=2000, DEFAULT_CONFIG:message.max.bytes=1048588}",
        own,
    )
    assert "retention.ms=1234567" in own and "segment.bytes" not in own
    everything = admin.configs("--describe", "--all", *entity).checked()
    assert (
        "segment.bytes=1073741824 sensitive=false synonyms={DEFAULT_CONFIG:log.segment.bytes=1073741824}" in everything
    )
    assert "min.insync.replicas=1" in everything and "message.timestamp.type=CreateTime" in everything

    admin.configs("--alter", *entity, "--delete-config", "max.message.bytes").checked()
    wait_until(lambda: "  max.message" not in admin.configs("--describe", *entity).checked(), "the default is back")
    assert "retention.ms=1234567" in admin.configs("--describe", *entity).checked(), "the others stay"


@pytest.mark.parametrize("wrong", ["max.message.bytes=none", "max.mesage.bytes=1", "retention.ms=-5"])
def test_configs_tool_is_told_that_a_topic_config_is_wrong(admin: Admin, topic: str, wrong: str) -> None:
    admin.create(topic)
    entity = ["--entity-type", "topics", "--entity-name", topic]
    refused = admin.configs("--alter", *entity, "--add-config", wrong)
    assert refused.code == 1 and "InvalidConfigurationException" in refused.err
    assert f"  {wrong.split('=')[0]}=" not in admin.configs("--describe", *entity).checked()


def test_configs_of_the_brokers_become_the_topics_defaults(admin: Admin, topic: str) -> None:
    admin.create(topic)
    brokers = ["--entity-type", "brokers"]
    of_topic = ["--describe", "--all", "--entity-type", "topics", "--entity-name", topic]
    admin.configs("--alter", *brokers, "--entity-default", "--add-config", "message.max.bytes=2000000").checked()
    wait_until(
        lambda: (
            "max.message.bytes=2000000 sensitive=false synonyms={DYNAMIC_DEFAULT_BROKER_CONFIG:message.max.bytes="
            in admin.configs(*of_topic).checked()
        ),
        "the cluster's default is the topic's",
    )
    admin.configs("--alter", *brokers, "--entity-name", "0", "--add-config", "message.max.bytes=3000000").checked()
    wait_until(
        lambda: (
            "max.message.bytes=3000000 sensitive=false synonyms={DYNAMIC_BROKER_CONFIG:message.max.bytes=3000000"
            in admin.configs(*of_topic).checked()
        ),
        "the broker's own value comes before the cluster's",
    )
    shown = admin.configs("--describe", *brokers, "--entity-name", "0").checked()
    assert (
        "message.max.bytes=3000000 sensitive=false synonyms={DYNAMIC_BROKER_CONFIG:message.max.bytes=3000000" in shown
    )

    for which in (["--entity-name", "0"], ["--entity-default"]):
        admin.configs("--alter", *brokers, *which, "--delete-config", "message.max.bytes").checked()
    wait_until(
        lambda: "max.message.bytes=1048588" in admin.configs(*of_topic).checked(), "the built-in default is back"
    )


def test_configs_tool_is_told_that_a_broker_config_is_read_only(admin: Admin) -> None:
    of_broker = ["--entity-type", "brokers", "--entity-name", "0"]
    refused = admin.configs("--alter", *of_broker, "--add-config", "num.partitions=7")
    assert refused.code == 1 and "InvalidRequestException" in refused.err and "num.partitions" in refused.err


def test_configs_tool_shows_every_setting_of_a_broker(admin: Admin) -> None:
    shown = admin.configs("--describe", "--all", "--entity-type", "brokers", "--entity-name", "0").checked()
    for setting in ("node.id=0", "num.partitions=1", "log.retention.hours=168", "socket.request.max.bytes=104857600"):
        assert f"  {setting} " in shown, setting


def test_S23_offsets_tool_finds_earliest_latest_by_time_and_the_newest(
    admin: Admin, node: Node, topic: str, java: JavaClient
) -> None:
    """Ten records a second apart in partition 0, the newest of them in the middle; partition 1 stays empty."""
    create_topic(node.bootstrap, topic, 2)
    seconds = [0, 1, 2, 3, 99, 4, 5, 6, 7, 8]
    records = [Sent(0, None, b"v", (), FIRST_TIMESTAMP_MS + second * 1000) for second in seconds]
    java.produce(node.bootstrap, topic, records, "gzip")
    assert admin.offsets(topic, "earliest") == f"{topic}:0:0\n{topic}:1:0"
    assert admin.offsets(topic, "latest") == f"{topic}:0:10\n{topic}:1:0"
    assert admin.offsets(topic, "max-timestamp") == f"{topic}:0:4"
    assert admin.offsets(topic, str(FIRST_TIMESTAMP_MS + 2500)) == f"{topic}:0:3"
    assert admin.offsets(topic, str(FIRST_TIMESTAMP_MS + 3500)) == f"{topic}:0:4", "the first that late, in log order"
    assert admin.offsets(topic, str(FIRST_TIMESTAMP_MS + 99_001)) == "", "none is that late"


def test_delete_records_moves_the_beginning(
    admin: Admin, node: Node, topic: str, java: JavaClient, tmp_path: Path
) -> None:
    create_topic(node.bootstrap, topic, 2)
    records = [Sent(number % 2, None, b"%d" % number, (), FIRST_TIMESTAMP_MS) for number in range(20)]
    java.produce(node.bootstrap, topic, records)
    wishes = [(0, 7), (1, -1)]  # Up to offset 7, and up to the high watermark.
    parts = [{"topic": topic, "partition": partition, "offset": offset} for partition, offset in wishes]
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"partitions": parts, "version": 1}))
    done = admin.tool("DeleteRecordsCommand", "--offset-json-file", str(plan)).checked()
    assert f"partition: {topic}-0\tlow_watermark: 7" in done and f"partition: {topic}-1\tlow_watermark: 10" in done
    assert admin.offsets(topic, "earliest") == f"{topic}:0:7\n{topic}:1:10"
    assert [record.value for record in java.consume(node.bootstrap, topic, [0])[0]] == [b"14", b"16", b"18"]

    parts[0]["offset"] = 11
    plan.write_text(json.dumps({"partitions": parts[:1], "version": 1}))
    beyond = admin.tool("DeleteRecordsCommand", "--offset-json-file", str(plan))
    assert "OffsetOutOfRangeException" in beyond.out + beyond.err


def test_log_dirs_shows_what_each_partition_takes(admin: Admin, node: Node, topic: str, java: JavaClient) -> None:
    create_topic(node.bootstrap, topic, 2)
    java.produce(node.bootstrap, topic, [Sent(1, None, b"x" * 1000, (), FIRST_TIMESTAMP_MS)] * 50)
    shown = admin.tool("LogDirsCommand", "--describe", "--topic-list", topic).checked()
    (broker,) = json.loads(shown.splitlines()[-1])["brokers"]
    (directory,) = broker["logDirs"]
    sizes = {part["partition"]: part["size"] for part in directory["partitions"]}
    stored = sum(path.stat().st_size for path in (node.dir / f"{topic}-1").glob("*.log"))
    assert sizes == {f"{topic}-0": 0, f"{topic}-1": stored} and stored > 50_000
    assert (broker["broker"], directory["error"]) == (0, None)
    assert Path(directory["logDir"]).resolve() == node.dir.resolve()


def test_trap_05_broker_api_versions_shows_what_is_served(admin: Admin) -> None:
    shown = admin.tool("BrokerApiVersionsCommand").checked()
    ranges = {name: (int(low), int(high)) for name, low, high in re.findall(r"(\w+)\(\d+\): (\d+) to (\d+)", shown)}
    ranges |= {name: (int(only), int(only)) for name, only in re.findall(r"(\w+)\(\d+\): (\d+) \[", shown)}
    assert {name: ranges.get(name) for name in SERVED} == SERVED


def test_features_and_cluster_id_are_told(admin: Admin) -> None:
    features = admin.tool("FeatureCommand", "describe").checked()
    assert all(line.startswith("Feature: ") for line in features.splitlines())
    if under_test() == "klamm":
        assert not re.search(r"transaction.version\s.*FinalizedVersionLevel: [1-9]", features), (
            "it comes with transactions"
        )
    assert re.fullmatch(r"Cluster ID: \S{22}\n", admin.cluster("cluster-id").checked())
    endpoints = admin.cluster("list-endpoints").checked()
    assert re.search(r"^0 +127\.0\.0\.1 +\d+ .*broker", endpoints, re.MULTILINE)


def _fields(line: str) -> dict[str, str]:
    pairs = [field.split(": ") for field in line.strip().split("\t") if ": " in field]
    return {name: value for name, value in pairs if "Elr" not in name}
