"""Acceptance 2: what each acks loses under each failure, counted record by record.

Every run lets a stream of numbered records flow, does the harm, heals the cluster, and reads everything from the
beginning. What an earlier run read has to be there unchanged. At the end of a topic's runs the replicas' files are
compared byte by byte. To hold: nothing acknowledged with acks=all is lost (min.insync.replicas=2), nothing is doubled
or out of order where the producer is idempotent. With acks 0 and 1 the loss has to be seen to happen.
"""

import argparse
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from random import Random

from proof.cluster import MARK, Klamm, ProofError
from proof.failures import BY_NAME, FAILURES, Failure, Run
from proof.reckoning import Reckoning, continues
from proof.store import Line, Store, table
from proof.stream import Stream

ACKS = {"0": ("0", False), "1": ("1", False), "all": ("all", False), "all, idempotent": ("all", True)}
RUNS, KILLS = 3, 200
RUNS_PER_TOPIC = 20
PER_SECOND = 1_500


def run(options: argparse.Namespace) -> int:
    store = Store(options.results, "losses", options.fresh)
    failures = [BY_NAME[name] for name in options.only] or list(FAILURES)
    for racks in sorted({failure.racks for failure in failures}):
        plan = list(_missing(store, [each for each in failures if each.racks == racks], options))
        if plan:
            with Klamm(brokers=3 if racks == 1 else 6, racks=racks, keep=options.keep) as cluster:
                for failure, acks, count in plan:
                    _Topics(cluster, store, failure, acks).run(count)
                store.append("complaints", racks=racks, lines=cluster.complaints())
    store.write_summary(summary(store))
    return 1 if violations(store) else 0


def _missing(store: Store, failures: list[Failure], options: argparse.Namespace) -> Iterator[tuple[Failure, str, int]]:
    for failure in failures:
        for acks in options.acks or ACKS:
            is_main = failure.name == "killed" and acks == "all"
            wanted = options.kills if is_main else options.runs
            missing = wanted - len(store.of("run", failure=failure.name, acks=acks))
            if missing > 0:
                yield failure, acks, missing


class _Topics:
    """The runs of one failure with one acks, a topic for every twenty of them."""

    def __init__(self, cluster: Klamm, store: Store, failure: Failure, acks: str) -> None:
        self.cluster, self.store, self.failure, self.acks = cluster, store, failure, acks
        self.done = len(store.of("run", failure=failure.name, acks=acks))
        self.topic = ""
        self.before: list[list[bytes]] = []
        self.random = Random(f"{failure.name} {acks} {self.done}")

    def run(self, count: int) -> None:
        for index in range(count):
            if index % RUNS_PER_TOPIC == 0:
                self._begin_topic()
            self._one()
            if index % RUNS_PER_TOPIC == RUNS_PER_TOPIC - 1 or index == count - 1:
                self._compare_replicas()

    def _begin_topic(self) -> None:
        failure = self.failure
        self.topic = f"{failure.name}-{self.acks.replace(', ', '-')}-{self.done}"
        self.before = [[] for _ in range(failure.partitions)]
        options = {"assignment": failure.assignment, "min_insync_replicas": "2"}
        self.cluster.create(self.topic, failure.partitions, failure.replicas, **options)

    def _one(self) -> None:
        began = time.monotonic()
        number, partition = self.done, self.done % self.failure.partitions
        streams: list[Stream] = []

        def another() -> Stream:
            acks, idempotent = ACKS[self.acks]
            name = f"{number}.{len(streams)}"
            servers, partitions = self.cluster.servers, self.failure.partitions
            streams.append(Stream(servers, self.topic, partitions, name, acks, idempotent, PER_SECOND).start())
            return streams[-1]

        first = another()
        try:
            self.failure.happen(Run(self.cluster, self.topic, partition, self.random, first, another))
            heal_seconds = self._heal()
        finally:
            for stream in streams:
                stream.stop()
        stored = self.cluster.stored(self.topic, self.failure.partitions)
        unchanged = all(continues(old, new) for old, new in zip(self.before, stored, strict=True))
        fresh = [new[len(old) :] for old, new in zip(self.before, stored, strict=True)]
        counts = sum((stream.reckoning(fresh) for stream in streams), Reckoning())
        strange = sum(value != MARK for values in fresh for value in values) - counts.stored
        self.before = stored
        self.done += 1
        line = self.store.append(
            "run",
            failure=self.failure.name,
            acks=self.acks,
            run=number,
            **{**asdict(counts), "strange": strange},
            unchanged=unchanged,
            errors=dict(sum((stream.errors for stream in streams), Counter())),
            heal_seconds=round(heal_seconds, 3),
            seconds=round(time.monotonic() - began, 2),
        )
        print(_told(line), flush=True)

    def _heal(self) -> float:
        cluster = self.cluster
        states = {each.node.node_id: each.state for each in cluster.local.states()}
        cluster.local.resume([node_id for node_id, state in states.items() if state == "paused"])
        cluster.start([node_id for node_id, state in states.items() if state == "dead"])
        return cluster.wait_full_isr(self.topic)

    def _compare_replicas(self) -> None:
        same = replicas_agree(self.cluster, self.topic)
        self.store.append("replicas", failure=self.failure.name, acks=self.acks, topic=self.topic, same=same)
        if not same:
            print(f"the replicas of {self.topic} differ", flush=True)


def replicas_agree(cluster: Klamm, topic: str) -> bool:
    """Whether all replicas hold the same bytes. What is not yet everywhere arrives within a moment."""
    places = [(part.partition_index, list(part.replica_nodes)) for part in cluster.partitions(topic)]

    def equal() -> bool:
        return all(
            len({_bytes_of(cluster.directory, node_id, topic, partition) for node_id in replicas}) == 1
            for partition, replicas in places
        )

    try:
        cluster.wait_until(equal, "the replicas differ", 10)
    except ProofError:
        return False
    return True


def _bytes_of(directory: Path, node_id: int, topic: str, partition: int) -> bytes:
    segments = sorted(directory.glob(f"node-{node_id}/{topic}-{partition}/*.log"))
    return b"".join(segment.read_bytes() for segment in segments)


def violations(store: Store) -> list[str]:
    """What must not be."""
    found = []
    for line in store.of("run"):
        what = f"{line['failure']}, acks={line['acks']}, run {line['run']}"
        if line["acks"].startswith("all") and line["lost"]:
            found.append(f"{what}: {line['lost']} acknowledged records lost")
        if line["acks"] == "all, idempotent" and (line["doubled"] or line["out_of_order"]):
            found.append(f"{what}: {line['doubled']} doubled, {line['out_of_order']} out of order")
        if not line["unchanged"]:
            found.append(f"{what}: what was read before changed")
        if line["strange"]:
            found.append(f"{what}: {line['strange']} records that this run did not send")
        if line["errors"] and line["acks"].startswith("all"):
            found.append(f"{what}: the client gave up: {line['errors']}")
    found += [f"{line['topic']}: the replicas differ" for line in store.of("replicas", same=False)]
    found += [complaint for line in store.of("complaints") for complaint in line["lines"]]
    return found


def summary(store: Store) -> str:
    rows = []
    for failure in FAILURES:
        for acks in ACKS:
            lines = store.of("run", failure=failure.name, acks=acks)
            if lines:
                rows.append([failure.title, acks, len(lines), *_totals(lines)])
    heads = ["failure", "acks", "runs", "sent", "acknowledged", "lost", "runs with loss", "doubled", "out of order"]
    held = violations(store)
    verdict = "Nothing that must not be was seen." if not held else "\n".join(f"- **{each}**" for each in held)
    return f"""# What is lost

Replication 3 (4 over two racks), min.insync.replicas=2, confluent-kafka with its default settings but for acks and
idempotence, {PER_SECOND} records a second. acknowledged: the client was told that the record is safe (with acks=0: it
told itself). lost: of these, not there when everything is read from the beginning afterwards.

{table(heads, rows)}

{verdict}"""


def _totals(lines: list[Line]) -> list[int]:
    names = ["sent", "acknowledged", "lost", "runs with loss", "doubled", "out_of_order"]
    totals = {name: sum(line.get(name, 0) for line in lines) for name in names}
    totals["runs with loss"] = sum(line["lost"] > 0 for line in lines)
    return [totals[name] for name in names]


def _told(line: Line) -> str:
    names = ["sent", "acknowledged", "stored", "lost", "doubled", "out_of_order", "strange"]
    counts = " ".join(f"{name}={line[name]}" for name in names)
    note = "" if line["unchanged"] else " WHAT WAS READ BEFORE CHANGED"
    where = f"{line['failure']:<17} acks={line['acks']:<15} run {line['run']:>3}"
    return f"{where}: {counts} errors={line['errors']} heal={line['heal_seconds']} {line['seconds']} s{note}"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--runs", type=int, default=RUNS, help="of each failure with each acks")
    parser.add_argument("--kills", type=int, default=KILLS, help="runs of the leader killed with acks=all")
    parser.add_argument("--only", nargs="+", default=[], choices=list(BY_NAME), metavar="FAILURE")
    parser.add_argument("--acks", nargs="+", default=[], choices=list(ACKS))
