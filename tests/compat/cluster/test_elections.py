"""`kafka-leader-election`: the preferred leaders return, and an unclean one leads only where a person says so."""
# ruff: noqa: N802  (tests are named after the rows of the system)

import json
from pathlib import Path

from tests.compat.cluster.admin import NOBODY, Admin
from tests.compat.cluster.clusters import Cluster
from tests.compat.java_client import JavaClient
from tests.harness.waiting import wait_until
from tests.harness.workload import FIRST_TIMESTAMP_MS, Sent

TEN_RECORDS = [Sent(0, None, b"%d" % number, (), FIRST_TIMESTAMP_MS) for number in range(10)]


def test_S22_preferred_leaders_return_when_they_are_told_to(
    admin: Admin, cluster: Cluster, topic: str, tmp_path: Path
) -> None:
    """One partition, a list of partitions in a file, and all that there are."""
    admin.create(topic, "0:1,1:2,1:0,2:0")
    cluster.stop(1)
    admin.wait_leaders(topic, "0", "2", "0", "2")
    cluster.start(1)
    admin.wait_in_sync(topic, {0, 1}, {1, 2}, {0, 1}, {0, 2})
    admin.wait_leaders(topic, "0", "2", "0", "2")  # Nobody moves by itself.

    refused = admin.elect("preferred", "--topic", f"{topic}-not", "--partition", "0")
    assert refused.code == 1 and "UnknownTopicOrPartitionException" in refused.out

    assert "Valid replica already elected" in admin.elect("preferred", "--topic", topic, "--partition", "3").checked()
    assert "Successfully completed" in admin.elect("preferred", "--topic", topic, "--partition", "1").checked()
    admin.wait_leaders(topic, "0", "1", "0", "2")

    plan = tmp_path / "plan.json"
    wanted = [{"topic": topic, "partition": number} for number in range(4)]
    plan.write_text(json.dumps({"partitions": [*wanted, {"topic": f"{topic}-not", "partition": 0}]}))
    mixed = admin.elect("preferred", "--path-to-json-file", str(plan))
    assert (
        mixed.code == 1
        and f"Successfully completed leader election (PREFERRED) for partitions {topic}-2\n" in mixed.out
    )
    assert f"Error completing leader election (PREFERRED) for partition: {topic}-not-0" in mixed.out
    admin.wait_leaders(topic, "0", "1", "1", "2")

    cluster.stop(2)
    admin.wait_leaders(topic, "0", "1", "1", "0")
    cluster.start(2)
    admin.wait_in_sync(topic, {0, 1}, {1, 2}, {0, 1}, {0, 2})
    assert f"{topic}-3" in admin.elect("preferred", "--all-topic-partitions").checked()
    admin.wait_leaders(topic, "0", "1", "1", "2")


def test_an_unclean_leader_is_elected_only_by_hand(
    admin: Admin, cluster: Cluster, topic: str, java: JavaClient
) -> None:
    """Broker 2 missed the records of broker 1, which is gone: whoever elects 2 loses them, and is told so by nobody."""
    admin.create(topic, "1:2", min_insync_replicas="1")
    cluster.stop(2)
    java.produce(cluster.bootstrap, topic, TEN_RECORDS)
    cluster.kill(1)
    cluster.start(2)
    admin.wait_leaders(topic, NOBODY)

    (lost,) = admin.described(topic, "--unavailable-partitions")
    assert (lost.leader, lost.in_sync, lost.eligible) == (NOBODY, set(), {1})
    refused = admin.elect("preferred", "--topic", topic, "--partition", "0")
    assert refused.code == 1 and "PreferredLeaderNotAvailableException" in refused.out

    assert "Successfully completed" in admin.elect("unclean", "--topic", topic, "--partition", "0").checked()
    admin.wait_leaders(topic, "2")
    wait_until(lambda: admin.described(topic, "--unavailable-partitions") == [], "it is available to every broker")
    assert admin.offsets(topic) == f"{topic}:0:0"
    assert admin.elect("unclean", "--all-topic-partitions").checked().strip() == "", "there is nothing else to elect"

    java.produce(cluster.bootstrap, topic, TEN_RECORDS[:3])
    cluster.start(1)
    admin.wait_in_sync(topic, {1, 2})
    admin.elect("preferred", "--topic", topic, "--partition", "0").checked()
    admin.wait_leaders(topic, "1")
    held = java.consume(cluster.bootstrap, topic, [0])[0]
    assert [record.value for record in held] == [b"0", b"1", b"2"], "the former leader gave up what only it had"


def test_the_former_leader_returns_with_its_records(
    admin: Admin, cluster: Cluster, topic: str, java: JavaClient
) -> None:
    """The same loss, and nobody loses patience."""
    admin.create(topic, "1:2", min_insync_replicas="1")
    cluster.stop(2)
    java.produce(cluster.bootstrap, topic, TEN_RECORDS)
    cluster.kill(1)
    cluster.start(2)
    admin.wait_leaders(topic, NOBODY)
    cluster.start(1)
    admin.wait_leaders(topic, "1")
    admin.wait_in_sync(topic, {1, 2})
    assert len(java.consume(cluster.bootstrap, topic, [0])[0]) == len(TEN_RECORDS)
