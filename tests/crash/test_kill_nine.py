"""Acceptance 3: kill -9 at random points of a write load, again and again on one directory.

After each restart the logs open, every acknowledged record is there, no batch with a bad CRC is served, offsets are
dense, and idempotent producers, which send again what was not acknowledged, have every record once and in order. The
page cache survives kill -9, so this holds for topics without `flush.messages=1` too; what a loss of power leaves is
shown in `tests/node/test_power_loss.py`.

KLAMM_CRASHES says how often (5 by default); `make crash` does it a hundred times and notes the result.
"""

import json
import os
import subprocess
import time
from pathlib import Path
from random import Random

import pytest

from tests.crash.checking import check_partition
from tests.crash.client import Client
from tests.crash.load import IdempotentProducer, Load, Place, Producer, Promises
from tests.harness.klamm_node import KlammNode
from tests.harness.node import Node

RESULTS = Path(__file__).parent / "results.jsonl"
SEED = 20_261_115

TOPICS = {
    "safe": {"flush_messages": "1", "internal_segment_bytes": "300000"},
    "safe-once": {"flush_messages": "1", "internal_segment_bytes": "300000"},
    "quick": {"internal_segment_bytes": "1000000"},
    "quick-once": {},
}
PARTITIONS = 2


def test_a_few_crashes(tmp_path: Path) -> None:
    Crashes(tmp_path, int(os.environ.get("KLAMM_CRASHES", "5"))).run()


@pytest.mark.crash
def test_a_hundred_crashes(tmp_path: Path) -> None:
    crashes = Crashes(tmp_path, int(os.environ.get("KLAMM_CRASHES", "100")))
    began = time.monotonic()
    crashes.run()
    result = {
        "crashes": crashes.wanted,
        "during_start": crashes.during_start,
        "acknowledged_batches": crashes.promises.count,
        "stored_batches": crashes.stored,
        "lost": 0,
        "doubled": 0,
        "bad_crc": 0,
        "gaps": 0,
        "seconds": round(time.monotonic() - began),
    }
    with RESULTS.open("a") as results:
        results.write(json.dumps(result) + "\n")


class Crashes:
    def __init__(self, home: Path, wanted: int) -> None:
        self.wanted = wanted
        self.random = Random(SEED)
        self.node = KlammNode(home / "broker")
        self.promises = Promises()
        self.producers = [
            self._producer(number, topic, index)
            for number, (topic, index) in enumerate((topic, index) for topic in TOPICS for index in range(PARTITIONS))
        ]
        self.during_start = 0
        self.stored = 0

    def run(self) -> None:
        try:
            self.node.start()
            with Client(self.node.port) as client:
                for topic, settings in TOPICS.items():
                    assert client.create_topic(topic, PARTITIONS, **settings) == 0
            for number in range(self.wanted):
                self._crash()
                if self.random.random() < 0.2:
                    self._crash_while_starting()
                self.node.start()
                self._check(number)
            assert self.node.stop() == 0
        finally:
            self.node.discard()

    def _producer(self, number: int, topic: str, index: int) -> Producer:
        kind = IdempotentProducer if topic.endswith("-once") else Producer
        acks = -1 if kind is IdempotentProducer else self.random.choice([1, -1])
        return kind(f"{topic} {index}", Place(topic, index), self.promises, acks=acks, records=1 + 4 * (number % 2))

    def _crash(self) -> None:
        """Load, and in the middle of it the end."""
        load = Load(self.producers)
        before = self.promises.count
        load.start(self.node.port)
        at_least = self.random.randrange(20, 1_500)
        until = time.monotonic() + 20
        while self.promises.count - before < at_least and time.monotonic() < until:
            time.sleep(self.random.random() * 0.01)
        self.node.kill9()
        load.join()
        assert self.promises.count - before >= at_least, f"the load got stuck:\n{self.node.log[-3_000:]}"

    def _crash_while_starting(self) -> None:
        """Recovery, too, can be interrupted."""
        self.during_start += 1
        starting = subprocess.Popen(self.node.command(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(self.random.random() * 0.5)
        starting.kill()
        starting.wait()

    def _check(self, number: int) -> None:
        refusals = {code for producer in self.producers for code in producer.refusals}
        assert not refusals, f"crash {number}: producers heard {refusals}"
        idempotent = [producer for producer in self.producers if isinstance(producer, IdempotentProducer)]
        self.stored = 0
        with Client(self.node.port) as client:
            for producer in self.producers:
                place = producer.place
                here = [each for each in idempotent if each.place == place]
                self.stored += check_partition(client, place, self.promises.batches.get(place, {}), here)
        check_calm(self.node)


def check_calm(node: Node) -> None:
    """Cutting off a torn tail is worth a warning. Nothing is an error, and nothing falls over."""
    said = node.log
    loud = [line for line in said.splitlines() if " ERROR " in line]
    assert not loud and "Traceback" not in said, said[-5_000:]
