"""What the shop can rely on when something breaks. The cluster is real processes, and is mended between the tests."""

import time

import pytest
from shop import Orders, read, values


@pytest.fixture
def cluster(klamm_cluster_session):
    return klamm_cluster_session


@pytest.fixture
def safe_topic(cluster, topic_name):
    """Three replicas, two of which must have a record before it is acknowledged."""
    cluster.create_topic(topic_name, replication=3, min_insync_replicas=2)
    cluster.wait_for_in_sync(topic_name)
    return topic_name


def test_nothing_is_lost_when_a_leader_is_killed(cluster, safe_topic):
    orders = Orders(cluster.bootstrap_servers, safe_topic)
    for number in range(200):
        if number == 100:
            cluster.kill(cluster.leader_of(safe_topic))
        orders.send(str(number))
    orders.wait()
    assert not orders.refused and len(orders.acknowledged) == 200
    assert values(read(cluster.bootstrap_servers, safe_topic, 200)) == [str(number) for number in range(200)]


def test_an_order_is_refused_where_too_few_replicas_are_in_sync(cluster, topic_name):
    topic = cluster.create_topic(topic_name, replication=2, min_insync_replicas=2)
    leader = cluster.leader_of(topic)
    (follower,) = set(cluster.in_sync(topic)) - {leader}
    cluster.kill(follower)
    cluster.wait_for_in_sync(topic, brokers=[leader])
    careful = Orders(cluster.bootstrap_servers, topic, **{"enable.idempotence": False, "retries": 0})
    careful.send("two apples")
    careful.wait()
    assert careful.refused == ["NOT_ENOUGH_REPLICAS"]
    cluster.start(follower)
    cluster.wait_for_in_sync(topic)
    careful.send("two apples")
    careful.wait()
    assert careful.acknowledged == ["two apples"]


def test_a_restart_doubles_nothing(cluster, safe_topic):
    orders = Orders(cluster.bootstrap_servers, safe_topic)
    for number in range(300):
        if number in (100, 200):
            cluster.restart(cluster.wait_for_leader(safe_topic))
        orders.send(str(number))
    orders.wait()
    assert values(read(cluster.bootstrap_servers, safe_topic, 300)) == [str(number) for number in range(300)]


def test_a_leader_that_hangs_is_replaced(cluster, safe_topic):
    leader = cluster.leader_of(safe_topic)
    cluster.pause(leader)
    cluster.wait_for_leader(safe_topic, other_than=leader)
    cluster.resume(leader)
    orders = Orders(cluster.bootstrap_servers, safe_topic)
    orders.send("two apples")
    orders.wait()
    assert orders.acknowledged == ["two apples"]
    cluster.wait_for_in_sync(safe_topic)


def test_an_order_at_a_leader_that_is_cut_off_arrives_once(klamm_embedded):
    topic = klamm_embedded.create_topic("orders", min_insync_replicas=2)
    leader = klamm_embedded.leader_of(topic)
    orders = Orders(klamm_embedded.bootstrap_servers, topic)
    orders.send("before")
    orders.wait()
    klamm_embedded.partition(leader)
    orders.send("two apples")
    klamm_embedded.wait_for_leader(topic, other_than=leader)
    klamm_embedded.heal()
    orders.wait()
    orders.send("after")
    orders.wait()
    assert not orders.refused
    assert values(read(klamm_embedded.bootstrap_servers, topic, 3)) == ["before", "two apples", "after"]


def test_acknowledged_by_all_means_by_the_slow_one_too(klamm_embedded):
    topic = klamm_embedded.create_topic("orders", replication=3)
    klamm_embedded.wait_for_in_sync(topic)
    orders = Orders(klamm_embedded.bootstrap_servers, topic)
    orders.send("before")
    orders.wait()
    follower = next(broker for broker in klamm_embedded.brokers if broker != klamm_embedded.leader_of(topic))
    klamm_embedded.slow(follower, delay_ms=150)
    began = time.monotonic()
    orders.send("two apples")
    orders.wait()
    assert time.monotonic() - began >= 0.3, "there and back"
