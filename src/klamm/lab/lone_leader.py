"""A leader whose followers stand still: in sync, and without the leader's last records.

Six brokers. Three of them vote on metadata and are left alone, so that the cluster goes on deciding; the other three
hold the partitions. The followers are stopped with SIGSTOP, as by a machine that swaps or a switch that drops. They
stay in sync for as long as an experiment takes, and so can be elected when the leader dies.
"""

import time
from collections.abc import Sequence

from klamm.lab.stage import Layout, Stage

LEADER, FOLLOWERS, VOTERS = 3, (4, 5), (0, 1, 2)
"""Clients begin with the voters: a client that begins with a broker that is stopped waits for it."""
REPLICAS = (LEADER, *FOLLOWERS)
FETCH_WAIT_SECONDS = 0.1
SIX_BROKERS = Layout(
    brokers=6,
    settings={
        # Who stands still for some seconds stays a member, and in sync.
        "broker.session.timeout.ms": "20000",
        "replica.lag.time.max.ms": "30000",
        "replica.fetch.wait.max.ms": str(int(FETCH_WAIT_SECONDS * 1000)),
    },
)


def stop_followers(stage: Stage) -> None:
    stage.pause(*FOLLOWERS)
    # A fetch that waits at the leader would take one more batch along. It is answered, empty, after this time.
    time.sleep(5 * FETCH_WAIT_SECONDS)
    stage.tell(f"brokers {FOLLOWERS[0]} and {FOLLOWERS[1]} are stopped (SIGSTOP): nobody copies")


def lose_leader(stage: Stage, topics: Sequence[str]) -> tuple[int, ...]:
    """kill -9, and the followers go on; who leads each of the topics then."""
    stage.kill(LEADER)
    stage.tell(f"kill -9 to broker {LEADER}")
    stage.resume(*FOLLOWERS)
    leaders = tuple(stage.wait_led(topic, FOLLOWERS) for topic in topics)
    led = ", ".join(f"broker {leader} leads {topic}" for topic, leader in zip(topics, leaders, strict=True))
    stage.tell(f"the followers go on: {led}")
    return leaders


def bring_leader_back(stage: Stage, topics: Sequence[str]) -> None:
    stage.start(LEADER)
    for topic in topics:
        stage.wait_in_sync(topic, REPLICAS)
