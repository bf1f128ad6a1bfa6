"""What is done to a cluster and to Spark while invoices flow. Which, whom and when, the seed decides.

Before each harm the pipeline has to have written something since the last one: who is down already cannot be hurt.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random

from proof.cluster import Klamm, ProofError
from proof.pipeline_jobs import Pipeline

LONGEST_SECONDS = 15.0
"""From a commit of the pipeline to the next harm, at most."""
FLOW_SECONDS = 600.0
DOWN_SECONDS = (2.0, 15.0)
SYNC_SECONDS = 120.0
LOOK_SECONDS = 0.5


@dataclass(slots=True)
class Scene:
    cluster: Klamm
    pipeline: Pipeline
    random: Random
    wait: Callable[[float], None]
    """Lets time pass, and keeps the pipeline running meanwhile."""

    def wait_for_commit(self) -> None:
        before, until = self.pipeline.commits, time.monotonic() + FLOW_SECONDS
        while self.pipeline.commits == before:
            if time.monotonic() > until:
                raise ProofError(f"the pipeline has written nothing for {FLOW_SECONDS:.0f} s:\n{self.pipeline.said}")
            self.wait(LOOK_SECONDS)


def harms(scene: Scene) -> Iterator[str]:
    """One after the other, each of them at least once; what was done, in words."""
    order = [broker_killed, broker_killed, rack_killed, driver_killed, executor_killed]
    scene.random.shuffle(order)
    for harm in order:
        scene.wait_for_commit()
        scene.wait(scene.random.uniform(0, LONGEST_SECONDS))
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
