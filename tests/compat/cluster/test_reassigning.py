"""`kafka-reassign-partitions`: replicas are added, catch up, take over and go; slowly where a throttle says so."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from tests.compat.cluster.admin import Admin
from tests.compat.cluster.clusters import Cluster
from tests.compat.java_client import JavaClient
from tests.harness.waiting import wait_until
from tests.harness.workload import FIRST_TIMESTAMP_MS, Sent

# More than a follower fetches at once, so that a throttle has something to hold back.
SIX_MEGABYTES = [Sent(0, None, b"%d" % number + bytes(10_000), (), FIRST_TIMESTAMP_MS) for number in range(600)]

Plan: TypeAlias = Callable[..., list[str]]


@pytest.fixture
def plan(topic: str, tmp_path: Path) -> Plan:
    """`plan([2, 1], [0, 2])` writes down where partitions 0 and 1 shall be, as the tool's option."""

    def write(*replicas: list[int]) -> list[str]:
        parts = [{"topic": topic, "partition": number, "replicas": each} for number, each in enumerate(replicas)]
        file = tmp_path / f"plan-{replicas}.json"
        file.write_text(json.dumps({"version": 1, "partitions": parts}))
        return ["--reassignment-json-file", str(file)]

    return write


def test_a_plan_is_generated_executed_and_verified(
    admin: Admin, cluster: Cluster, topic: str, tmp_path: Path, java: JavaClient
) -> None:
    admin.create(topic, "0:1,1:2,2:0")
    java.produce(cluster.bootstrap, topic, SIX_MEGABYTES[:50])
    wish = tmp_path / "wish.json"
    wish.write_text(json.dumps({"version": 1, "topics": [{"topic": topic}]}))
    printed = admin.reassign("--generate", "--topics-to-move-json-file", str(wish), "--broker-list", "1,2").checked()
    current, proposed = re.findall(r"^{.*}$", printed, re.MULTILINE)
    assert [part["replicas"] for part in json.loads(current)["partitions"]] == [[0, 1], [1, 2], [2, 0]]
    assert all(set(part["replicas"]) == {1, 2} for part in json.loads(proposed)["partitions"])

    file = tmp_path / "proposed.json"
    file.write_text(proposed)
    started = admin.reassign("--execute", "--reassignment-json-file", str(file)).checked()
    assert f"Successfully started partition reassignments for {topic}-0,{topic}-1,{topic}-2" in started
    _wait_completed(admin, ["--reassignment-json-file", str(file)])
    assert "No partition reassignments found." in admin.reassign("--list").checked()
    wanted = [part["replicas"] for part in json.loads(proposed)["partitions"]]
    wait_until(lambda: [each.replicas for each in admin.described(topic)] == wanted, "every broker tells it so")
    wait_until(lambda: 0 not in admin.sizes(topic), "broker 0 gave its replicas away")
    assert len(java.consume(cluster.bootstrap, topic, [0])[0]) == 50


def test_replicas_are_added_and_taken_away(admin: Admin, topic: str, plan: Plan) -> None:
    """More of them, fewer of them, and only another order, which moves nothing and makes another leader preferred."""
    admin.create(topic, "0:1")
    for replicas in ([0, 1, 2], [2], [2, 0], [0, 2]):
        admin.reassign("--execute", *plan(replicas)).checked()
        _wait_completed(admin, plan(replicas))
        admin.wait_in_sync(topic, set(replicas))
        (now,) = admin.described(topic)
        assert now.replicas == replicas and int(now.leader) in replicas
    admin.elect("preferred", "--topic", topic, "--partition", "0").checked()
    admin.wait_leaders(topic, "0")


def test_a_throttled_move_is_listed_and_cancelled(
    admin: Admin, cluster: Cluster, topic: str, plan: Plan, java: JavaClient
) -> None:
    admin.create(topic, "0:1")
    java.produce(cluster.bootstrap, topic, SIX_MEGABYTES)
    admin.reassign("--execute", "--throttle", "10000", *plan([2, 1])).checked()
    assert f"{topic}-0: replicas: 2,1,0. adding: 2. removing: 0." in admin.reassign("--list").checked()
    assert (
        f"Reassignment of partition {topic}-0 is still in progress."
        in admin.reassign("--verify", *plan([2, 1])).checked()
    )
    again = admin.reassign("--execute", *plan([1, 2]))
    assert again.code == 1 and "existing partition assignment" in again.out
    assert "follower.replication.throttled.rate=10000 " in _rates(admin)
    assert "follower.replication.throttled.replicas=0:2 " in _throttled(admin, topic)

    cancelled = admin.reassign("--cancel", *plan([2, 1])).checked()
    assert f"Successfully cancelled partition reassignment for: {topic}-0" in cancelled
    assert "No partition reassignments found." in admin.reassign("--list").checked()
    (now,) = admin.described(topic)
    assert set(now.replicas) == now.in_sync == {0, 1}
    wait_until(lambda: 2 not in admin.sizes(topic), "broker 2 gave up what it had got")
    assert "throttled.rate" not in _rates(admin) and "throttled.replicas" not in _throttled(admin, topic)
    assert len(java.consume(cluster.bootstrap, topic, [0])[0]) == len(SIX_MEGABYTES)


def test_a_throttle_is_raised_while_replicas_move(
    admin: Admin, cluster: Cluster, topic: str, plan: Plan, java: JavaClient
) -> None:
    admin.create(topic, "0:1")
    java.produce(cluster.bootstrap, topic, SIX_MEGABYTES)
    admin.reassign("--execute", "--throttle", "10000", *plan([2, 1])).checked()
    wait_until(lambda: 2 in admin.sizes(topic), "it began")
    assert "still in progress" in admin.reassign("--verify", *plan([2, 1])).checked()
    raised = admin.reassign("--execute", "--additional", "--throttle", "100000000", *plan([2, 1])).checked()
    assert "throttle limit was set to 100000000 B/s" in raised
    _wait_completed(admin, plan([2, 1]))
    assert "throttled.rate" not in _rates(admin) and "throttled.replicas" not in _throttled(admin, topic), (
        "they were cleared"
    )
    admin.wait_in_sync(topic, {1, 2})
    assert len(java.consume(cluster.bootstrap, topic, [0])[0]) == len(SIX_MEGABYTES)


def test_a_broker_that_is_not_there_gets_nothing(admin: Admin, topic: str, plan: Plan) -> None:
    admin.create(topic, "0:1")
    refused = admin.reassign("--execute", *plan([0, 7]))
    assert refused.code == 1 and "Unknown broker id 7" in refused.out
    verified = admin.reassign("--verify", *plan([0, 2])).checked()
    assert (
        f"There is no active reassignment of partition {topic}-0, but replica set is 0,1 rather than 0,2." in verified
    )


def _wait_completed(admin: Admin, plan: list[str]) -> None:
    def is_completed() -> bool:
        said = admin.reassign("--verify", *plan).checked()
        return "is completed" in said and "in progress" not in said

    wait_until(is_completed, "the replicas are where they shall be")


def _rates(admin: Admin) -> str:
    return admin.configs("--describe", "--entity-type", "brokers").checked()


def _throttled(admin: Admin, topic: str) -> str:
    return admin.configs("--describe", "--entity-type", "topics", "--entity-name", topic).checked()
