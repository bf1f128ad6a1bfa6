"""Kafka's own image of our metadata log is our image of it: leaders, epochs, in-sync and eligible replicas, moves.

The logs are those of random histories, in which brokers crash, come back, stop and lose their disks, while partitions
are altered, elected, reassigned, created and deleted.
"""

import subprocess
from collections.abc import Iterable
from pathlib import Path

from klamm.ids import uuid_text
from klamm.metadata import records
from klamm.metadata.image import Image, PartitionState
from tests.controller.histories import History
from tests.harness.kafka_node import jar_directory, skip_without_kafka

REFEREE = Path(__file__).with_name("ImageReferee.java")
HISTORIES, STEPS = 60, 60


def test_kafka_replays_our_records_to_the_same_partitions_and_brokers() -> None:
    skip_without_kafka()
    log: list[str] = []
    ours: list[str] = []
    for seed in range(HISTORIES):
        history = History(seed)
        for _ in range(STEPS):
            history.step()
        log += [*(records.encode(record).hex() for record in history.log), "."]
        ours += [*sorted(told(history.controller.image)), "."]
    command = ["java", "-cp", f"{jar_directory()}/*", str(REFEREE)]
    run = subprocess.run(command, input="\n".join(log) + "\n", capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines() == ours


def told(image: Image) -> Iterable[str]:
    for topic in image.topics.values():
        for index, state in enumerate(topic.partitions):
            yield f"{topic.name}-{index} {partition(state)}"
    for broker in image.brokers.values():
        flags = f"{broker.fenced} {broker.in_controlled_shutdown}".lower()
        yield f"broker-{broker.broker_id} {broker.epoch} {flags}"


def partition(state: PartitionState) -> str:
    lists = (state.replicas, state.isr, state.elr, state.last_known_elr, state.adding, state.removing)
    directories = map(uuid_text, state.directories)
    recovery = "RECOVERING" if state.recovering else "RECOVERED"
    shown = "".join(f"[{', '.join(map(str, each))}]" for each in (*lists, directories))
    return f"{shown} {state.leader} {state.leader_epoch} {state.partition_epoch} {recovery}"
