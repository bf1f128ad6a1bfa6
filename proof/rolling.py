"""Acceptance 3: all nodes restarted one after another under load, three times round.

A node is asked to stop (SIGTERM), started when it has ended, and the next one follows when every replica is in sync
again. Meanwhile a default client streams with acks=all, and a prober without any back-off writes to every partition in
turn. To hold: no acknowledged record is lost, the client reports no failed record, and the longest time in which the
prober gets nothing into a partition stays under half a second.
"""

import argparse
import threading
import time
from dataclasses import asdict

from klamm.errors import ErrorCode
from proof import raw
from proof.cluster import MARK, Klamm
from proof.raw import Line
from proof.store import Store, percentile, table
from proof.stream import Stream

TOPIC, PARTITIONS = "rolling", 6
PROBED = "probed"
ROUNDS = 3
PER_SECOND = 1_500
REACH_SECONDS = 0.5
STEADY_SECONDS = 1.0


def run(options: argparse.Namespace) -> int:
    store = Store(options.results, "rolling", options.fresh)
    for number in range(len(store.of("campaign run")), options.campaigns):
        with Klamm(options.brokers, 1, keep=options.keep) as cluster:
            _Rolling(cluster, store, number).run(options.rounds)
    store.write_summary(summary(store))
    return 1 if violations(store) else 0


class _Rolling:
    def __init__(self, cluster: Klamm, store: Store, number: int) -> None:
        self.cluster, self.store, self.number = cluster, store, number

    def run(self, rounds: int) -> None:
        cluster = self.cluster
        for topic in (TOPIC, PROBED):
            cluster.create(topic, PARTITIONS, 3, min_insync_replicas="2")
        stream = Stream(cluster.servers, TOPIC, PARTITIONS, "rolling", "all", False, PER_SECOND).start()
        prober = Prober({node.node_id: node.port for node in cluster.record.brokers}, PROBED, PARTITIONS)
        prober.start()
        try:
            for turn in range(rounds):
                for node in cluster.record.brokers:
                    self._restart(turn, node.node_id, stream, prober)
        finally:
            prober.stop()
            stream.stop()
        stored = cluster.stored(TOPIC, PARTITIONS)
        counts = stream.reckoning(stored)
        strange = sum(value != MARK for values in stored for value in values) - counts.stored
        line = self.store.append(
            "campaign run",
            number=self.number,
            **{**asdict(counts), "strange": strange},
            errors=dict(stream.errors),
            heard=dict(stream.heard),
            probe_answers=dict(prober.answers),
            complaints=cluster.complaints(),
        )
        print(line, flush=True)

    def _restart(self, turn: int, node_id: int, stream: Stream, prober: "Prober") -> None:
        cluster = self.cluster
        time.sleep(STEADY_SECONDS)
        stream.forget_pauses()
        prober.forget_pauses()
        began = time.monotonic()
        late = cluster.local.stop([node_id])
        stopped = time.monotonic()
        cluster.start([node_id])
        started = time.monotonic()
        for topic in (TOPIC, PROBED):
            cluster.wait_full_isr(topic)
        in_sync = time.monotonic()
        stream.wait_acknowledged(2 * PARTITIONS)
        line = self.store.append(
            "restart",
            campaign=self.number,
            round=turn,
            node=node_id,
            stop_seconds=round(stopped - began, 3),
            start_seconds=round(started - stopped, 3),
            in_sync_seconds=round(in_sync - started, 3),
            had_to_be_killed=bool(late),
            pause_seconds=round(max(prober.longest_pause), 3),
            client_pause_seconds=round(max(stream.longest_pause), 3),
        )
        print(line, flush=True)


class Prober:
    """Writes to each partition in turn with acks=all, asks who leads when it is told that another does, never waits
    longer than a few milliseconds of its own accord, and notes the longest time between two successes."""

    def __init__(self, ports: dict[int, int], topic: str, partitions: int) -> None:
        self.answers: dict[str, int] = {}
        self.longest_pause = [0.0] * partitions
        self._ports, self._topic, self._partitions = ports, topic, partitions
        self._stopping = threading.Event()
        self._threads = [threading.Thread(target=self._probe, args=(each,), daemon=True) for each in range(partitions)]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join()

    def forget_pauses(self) -> None:
        self.longest_pause = [0.0] * self._partitions

    def _probe(self, partition: int) -> None:
        lines: dict[int, Line] = {}
        leader, last = -1, time.monotonic()
        while not self._stopping.is_set():
            try:
                if leader < 0:
                    leader = self._leader(lines, partition)
                answer = ErrorCode(raw.produce(self._line(lines, leader), self._topic, partition, b"probe")).name
            except OSError as problem:
                answer = type(problem).__name__
                lines.pop(leader, None)
            now = time.monotonic()
            if answer == "NONE":
                self.longest_pause[partition] = max(self.longest_pause[partition], now - last)
                last = now
                time.sleep(0.02)
            else:
                self.answers[answer] = self.answers.get(answer, 0) + 1
                leader = -1
                time.sleep(0.002)

    def _leader(self, lines: dict[int, Line], partition: int) -> int:
        """As any broker says that answers."""
        for node_id in self._ports:
            try:
                found = raw.metadata(self._line(lines, node_id), self._topic).partitions
                leaders = {each.partition_index: int(each.leader_id) for each in found}
                if leaders.get(partition, -1) >= 0:
                    return leaders[partition]
            except OSError:
                lines.pop(node_id, None)
        raise ConnectionError("nobody leads, or nobody says")

    def _line(self, lines: dict[int, Line], node_id: int) -> Line:
        if node_id not in lines:
            lines[node_id] = Line(self._ports[node_id], timeout_seconds=5.0)
        return lines[node_id]


def violations(store: Store) -> list[str]:
    found = []
    for line in store.of("restart"):
        what = f"round {line['round']}, node {line['node']}"
        if line["pause_seconds"] >= REACH_SECONDS:
            found.append(f"{what}: a partition stood still for {line['pause_seconds']} s")
        if line["had_to_be_killed"]:
            found.append(f"{what}: did not stop when asked to")
    for line in store.of("campaign run"):
        if line["lost"] or line["strange"] or line["errors"]:
            found.append(f"{line['lost']} lost, {line['strange']} strange, failed for the client: {line['errors']}")
        found += line["complaints"]
    return found


def summary(store: Store) -> str:
    heads = [
        "round",
        "node",
        "stop s",
        "start s",
        "in sync s",
        "longest pause s",
        "longest pause of the default client s",
    ]
    names = [
        "round",
        "node",
        "stop_seconds",
        "start_seconds",
        "in_sync_seconds",
        "pause_seconds",
        "client_pause_seconds",
    ]
    restarts = store.of("restart")
    totals = store.of("campaign run")
    counted = ["sent", "acknowledged", "lost", "doubled", "out_of_order"]
    held = violations(store)
    verdict = "Nothing that must not be was seen." if not held else "\n".join(f"- **{each}**" for each in held)
    pauses = [line["pause_seconds"] for line in restarts] or [0.0]
    return f"""# Rolling restart under load

Default settings, replication 3, min.insync.replicas=2, {PARTITIONS} partitions; one default client with {PER_SECOND}
records a second, and a prober without back-off on every partition of another topic. Longest pause of a partition,
prober: p50 {percentile(pauses, 0.5):.3f} s, longest {max(pauses):.3f} s. To reach: under {REACH_SECONDS} s.

{table(counted, [[line[name] for name in counted] for line in totals])}

{table(heads, [[line[name] for name in names] for line in restarts])}

{verdict}"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--brokers", type=int, default=3)
    parser.add_argument("--campaigns", type=int, default=1, help="so many times three rounds, each with a new cluster")
