"""Kafka's tools on a cluster of two racks: replicas are in both, and neither rack has the majority of the quorum."""
# ruff: noqa: N802  (tests are named after the rows of the system)

import json
import re
from pathlib import Path

import pytest

from tests.compat.cluster.admin import NOBODY, Admin
from tests.compat.cluster.clusters import Cluster
from tests.harness.node import under_test
from tests.harness.waiting import wait_until

R1, R2 = {0, 1}, {2, 3}


def test_S10_replicas_are_in_both_racks(racks_admin: Admin, two_racks: Cluster, topic: str, tmp_path: Path) -> None:
    """As the cluster places them, and as `kafka-reassign-partitions` proposes it from the racks it is told."""
    brokers = racks_admin.cluster("list-endpoints").checked()
    assert re.findall(r"^(\d) .* (R\d) ", brokers, re.MULTILINE) == [("0", "R1"), ("1", "R1"), ("2", "R2"), ("3", "R2")]
    racks_admin.topics("--create", "--topic", topic, "--partitions", "8", "--replication-factor", "2").checked()
    wait_until(lambda: len(racks_admin.described(topic)) == 8, "it is seen")
    placed = [set(each.replicas) for each in racks_admin.described(topic)]
    assert all(len(each & R1) == len(each & R2) == 1 for each in placed), placed
    leaders = sorted(each.leader for each in racks_admin.described(topic))
    assert leaders == sorted("00112233") or under_test() == "kafka", "S9, which Kafka does not promise"

    wish = tmp_path / "wish.json"
    wish.write_text(json.dumps({"version": 1, "topics": [{"topic": topic}]}))
    options = ["--generate", "--topics-to-move-json-file", str(wish), "--broker-list", "1,2,3"]
    proposed = json.loads(racks_admin.reassign(*options).checked().splitlines()[-1])["partitions"]
    assert all(set(each["replicas"]) & R2 and 1 in each["replicas"] for each in proposed), proposed


def test_S10_a_lost_rack_leaves_every_partition_its_leader(racks_admin: Admin, two_racks: Cluster, topic: str) -> None:
    """A voter in each rack and a witness outside: the tools show it as a controller and not as a broker."""
    if under_test() == "kafka":
        pytest.skip("of Kafka's four voters two are in each rack")
    said = racks_admin.quorum("describe", "--replication").checked().splitlines()[1:]
    roles = {int(row.split()[0]): row.split()[-1] for row in said}
    assert sorted(roles) == [0, 1, 2, 3, 4]
    assert {number for number, role in roles.items() if role == "Observer"} == {1, 3}
    racks_admin.create(topic, "0:2,1:3,2:0,3:1")
    for broker_id in sorted(R1):
        two_racks.kill(broker_id)
    racks_admin.wait_leaders(topic, "2", "3", "2", "3")
    assert racks_admin.described(topic, "--unavailable-partitions") == []
    assert len(racks_admin.described(topic, "--under-replicated-partitions")) == 4
    assert all(each.leader != NOBODY and each.in_sync <= R2 for each in racks_admin.described(topic))
    two_racks.start_all()
    racks_admin.wait_in_sync(topic, {0, 2}, {1, 3}, {0, 2}, {1, 3})
