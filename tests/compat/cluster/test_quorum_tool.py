"""`kafka-metadata-quorum` and the metadata log itself: who leads, who follows, and what they have agreed on."""

import json
import re
from pathlib import Path

import pytest

from tests.compat.cluster.admin import QUORUM_TOOL, Admin
from tests.compat.cluster.clusters import Cluster
from tests.compat.java_tools import Ran
from tests.harness.node import under_test
from tests.harness.waiting import wait_until

METADATA = "__cluster_metadata-0"


@pytest.mark.parametrize("asked", ["brokers", "controllers"])
def test_the_quorum_is_described(admin: Admin, cluster: Cluster, asked: str) -> None:
    """Asked through any broker, or through the controllers themselves."""
    status = _status(_quorum(admin, asked, "describe", "--status").checked())
    assert int(status["LeaderId"]) in cluster.brokers and int(status["LeaderEpoch"]) >= 1
    assert int(status["HighWatermark"]) > 0 and status["CurrentObservers"] == "[]"
    voters = {voter["id"]: voter for voter in json.loads(status["CurrentVoters"])}
    addresses = cluster.controllers.split(",")
    assert {number: voter["endpoints"] for number, voter in voters.items()} == {
        number: [f"CONTROLLER://{addresses[number]}"] for number in cluster.brokers
    }

    head, *rows = _quorum(admin, asked, "describe", "--replication", "--human-readable").checked().splitlines()
    assert head.split() == [
        *("NodeId", "DirectoryId", "LogEndOffset", "Lag", "LastFetchTimestamp", "LastCaughtUpTimestamp", "Status")
    ]
    cells = [[cell.strip() for cell in row.split("\t")] for row in rows]
    assert sorted(row[0] for row in cells) == ["0", "1", "2"]
    assert [row[0] for row in cells if row[6] == "Leader"] == [status["LeaderId"]]
    assert all(row[3] == "0" and row[4].endswith(" ago") and row[5].endswith(" ago") for row in cells)


def test_another_leads_the_quorum_when_its_leader_is_gone(admin: Admin, cluster: Cluster, topic: str) -> None:
    before = _status(admin.quorum("describe", "--status").checked())
    leader = int(before["LeaderId"])
    cluster.kill(leader)
    admin.topics("--create", "--topic", topic, "--replication-factor", "2").checked()
    now = _status(admin.quorum("describe", "--status").checked())
    assert int(now["LeaderId"]) in set(cluster.brokers) - {leader} and int(now["LeaderEpoch"]) > int(
        before["LeaderEpoch"]
    )
    assert int(now["MaxFollowerLag"]) > 0, "the dead one's"
    cluster.start(leader)

    def is_caught_up() -> bool:
        return _status(admin.quorum("describe", "--status").checked())["MaxFollowerLag"] == "0"

    wait_until(is_caught_up, "the one that was dead follows")


def test_a_voter_leaves_the_quorum_and_joins_it_again(admin: Admin, cluster: Cluster, tmp_path: Path) -> None:
    """An ordinary one, then the leader itself: another leads, and it goes on as an observer until it is added again."""
    if under_test() == "kafka":
        pytest.skip("Kafka's quorum is static here (controller.quorum.voters) and cannot change")
    leader = int(_status(admin.quorum("describe", "--status").checked())["LeaderId"])
    for leaving in ((leader + 1) % 3, leader):
        voters = _voters(admin)
        removed = ["--controller-id", str(leaving), "--controller-directory-id", voters[leaving]]
        assert f"Removed  KRaft controller {leaving}" in admin.quorum("remove-controller", *removed).checked()
        wait_until(lambda gone=leaving: _roles(admin).get(gone) == "Observer", "it observes")  # type: ignore[misc]
        assert sorted(_roles(admin).values()) == ["Follower", "Leader", "Observer"]

        settings = tmp_path / "controller.properties"
        settings.write_text(
            f"node.id={leaving}\nprocess.roles=controller\ncontroller.listener.names=CONTROLLER\n"
            f"listeners=CONTROLLER://{cluster.address(leaving)}\nlog.dirs={cluster.directory(leaving)}\n"
            f"controller.quorum.bootstrap.servers={cluster.controllers}\n"
        )
        added = admin.quorum("--command-config", str(settings), "add-controller").checked()
        assert f"Added controller {leaving} with directory id {voters[leaving]}" in added
        assert _voters(admin) == voters
        again = admin.quorum("--command-config", str(settings), "add-controller")
        assert again.code == 1 and "DuplicateVoterException" in again.err


def test_dump_log_reads_what_the_quorum_agreed_on(admin: Admin, cluster: Cluster, topic: str) -> None:
    """Every node has the same log, and Kafka's decoder finds the topic in it."""
    admin.create(topic, "0:1:2")
    for broker_id in cluster.brokers:
        logs = sorted((cluster.directory(broker_id) / METADATA).glob("*.log"))
        dumped = "".join(map(admin.dumped, logs))
        assert "isvalid: false" not in dumped and "rror" not in dumped
        records = [json.loads(line.partition("payload: ")[2]) for line in dumped.splitlines() if "payload: {" in line]
        kinds = {record["type"] for record in records}
        assert {"FEATURE_LEVEL_RECORD", "REGISTER_BROKER_RECORD", "TOPIC_RECORD", "PARTITION_RECORD"} <= kinds
        (made,) = [record["data"] for record in records if record["data"].get("name") == topic]
        (placed,) = [
            record["data"]
            for record in records
            if record["type"] == "PARTITION_RECORD" and record["data"]["topicId"] == made["topicId"]
        ]
        assert (placed["replicas"], placed["isr"], placed["leader"]) == ([0, 1, 2], [0, 1, 2], 0)
        assert "LeaderChange" in dumped
        if under_test() == "klamm":
            assert "KRaftVoters" in dumped, "the voters are known by their directories from the beginning"


def _quorum(admin: Admin, asked: str, *arguments: str) -> Ran:
    if asked == "brokers":
        return admin.quorum(*arguments)
    return admin.at_controllers(QUORUM_TOOL, *arguments)


def _voters(admin: Admin) -> dict[int, str]:
    """Their directories."""
    status = _status(admin.quorum("describe", "--status").checked())
    return {voter["id"]: voter["directoryId"] for voter in json.loads(status["CurrentVoters"])}


def _roles(admin: Admin) -> dict[int, str]:
    rows = [row.split() for row in admin.quorum("describe", "--replication").checked().splitlines()[1:]]
    return {int(row[0]): row[-1] for row in rows}


def _status(printed: str) -> dict[str, str]:
    return dict(re.findall(r"^(\w+): +(.*)$", printed, re.MULTILINE))
