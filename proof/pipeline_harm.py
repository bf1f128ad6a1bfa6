"""What is done to a cluster and to Spark while invoices flow. Which, whom and when, the seed decides."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random

from proof.cluster import Klamm
from proof.pipeline_jobs import Pipeline

SHORTEST_SECONDS, LONGEST_SECONDS = 5.0, 20.0
"""Between two harms."""
DOWN_SECONDS = (2.0, 15.0)
SYNC_SECONDS = 120.0


@dataclass(slots=True)
class Scene:
    cluster: Klamm
    pipeline: Pipeline
    random: Random
    wait: Callable[[float], None]
    """Lets time pass, and keeps the pipeline running meanwhile."""


def harms(scene: Scene) -> Iterator[str]:
    """One after the other, each of them at least once; what was done, in words."""
    order = [broker_killed, broker_killed, rack_killed, driver_killed, executor_killed]
    scene.random.shuffle(order)
    for harm in order:
        scene.wait(scene.random.uniform(SHORTEST_SECONDS, LONGEST_SECONDS))
        yield harm(scene)


def broker_killed(scene: Scene) -> str:
    broker = scene.random.choice([node.node_id for node in scene.cluster.record.brokers])
    return _down_and_up(scene, [broker], f"broker {broker}")


def rack_killed(scene: Scene) -> str:
    rack = scene.random.choice(sorted({node.rack for node in scene.cluster.record.brokers if node.rack}))
    return _down_and_up(scene, scene.cluster.rack(rack), f"rack {rack}")


def driver_killed(scene: Scene) -> str:
    which = scene.random.choice(["python", "java", "both"])
    what = {"python": "driver's Python", "java": "driver's Java", "both": "driver"}[which]
    return f"{what} killed" if scene.pipeline.kill_driver(which) else f"{what} was down already"


def executor_killed(scene: Scene) -> str:
    """There is one as soon as Spark is up."""
    choice, until = scene.random.randrange(1_000), time.monotonic() + SYNC_SECONDS
    while not scene.pipeline.kill_executor(choice):
        if time.monotonic() > until:
            return "no executor to kill"
        scene.wait(1.0)
    return "executor killed"


def _down_and_up(scene: Scene, nodes: list[int], what: str) -> str:
    """The next harm waits until every replica is in sync again: two at once may rightly stop a partition."""
    seconds = scene.random.uniform(*DOWN_SECONDS)
    scene.cluster.kill(nodes)
    scene.wait(seconds)
    scene.cluster.start(nodes)
    scene.cluster.wait_full_isr("invoice", SYNC_SECONDS)
    return f"{what} killed, up after {seconds:.0f} s"
