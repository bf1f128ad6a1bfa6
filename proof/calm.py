"""Acceptance 4, the other side: full load for ten minutes, and nobody is taken for dead.

Producers send as fast as they can, and other processes keep every core busy besides. What is counted is not what nodes
say but what was decided: the metadata log is read from a node's disk afterwards, and every record that fences a
broker and every leader of the quorum that came after the load began counts. To reach: 0 and 0. Partitions whose
in-sync replicas shrank and nodes that were found gone are counted as well.
"""

import argparse
import multiprocessing
import time
from pathlib import Path

from bench.process import busy_share
from confluent_kafka import KafkaError, Message, Producer

from klamm.metadata.records import FENCE, BrokerRegistrationChangeRecord, PartitionChangeRecord
from klamm.metadata.records import decode as decode_record
from klamm.records.batch import batches
from klamm.records.control import ControlType, control_type_of
from klamm.records.record import records_of
from proof import raw
from proof.cluster import Klamm, ProofError
from proof.store import Store, table

TOPIC, PARTITIONS = "calm", 6
MINUTES = 10.0
PRODUCERS, HOGS = 2, 2
RECORD = bytes(1024)
LOOK_SECONDS = 10.0


def run(options: argparse.Namespace) -> int:
    store = Store(options.results, "calm", options.fresh)
    for _ in range(options.times - len(store.of("load"))):
        with Klamm(keep=options.keep) as cluster:
            print(store.append("load", **_loaded(cluster, options)), flush=True)
    store.write_summary(summary(store))
    return 0 if all(not line["fenced"] and not line["quorum_leaders"] for line in store.of("load")) else 1


def _loaded(cluster: Klamm, options: argparse.Namespace) -> dict[str, object]:
    retention = {"segment_bytes": str(64 << 20), "retention_bytes": str(128 << 20)}
    cluster.create(TOPIC, PARTITIONS, 3, min_insync_replicas="2", **retention)
    time.sleep(1.0)
    before = _end_of_metadata(cluster)
    stopping = multiprocessing.Event()
    told: multiprocessing.Queue[tuple[int, int]] = multiprocessing.Queue()
    hogs = [multiprocessing.Process(target=_hog, args=(stopping,)) for _ in range(options.hogs)]
    load = [
        multiprocessing.Process(target=_produce, args=(cluster.servers, stopping, told))
        for _ in range(options.producers)
    ]
    began, busy = time.monotonic(), []
    for process in (*hogs, *load):
        process.start()
    try:
        while (left := began + 60 * options.minutes - time.monotonic()) > 0:
            busy.append(busy_share(min(LOOK_SECONDS, left)))
            if len(cluster.running) < 3:
                raise ProofError("a node ended under load")
    finally:
        stopping.set()
        counts = [told.get(timeout=120) for _ in load]
        for process in (*hogs, *load):
            process.join(30)
    seconds = time.monotonic() - began
    decided = decisions(cluster.directory / "node-0" / "__cluster_metadata-0", before)
    acknowledged = sum(acknowledged for acknowledged, _ in counts)
    return {
        "minutes": round(seconds / 60, 2),
        "busy": round(sum(busy) / len(busy), 3),
        "mib_per_second": round(acknowledged * len(RECORD) / seconds / 2**20, 1),
        "acknowledged": acknowledged,
        "failed": sum(failed for _, failed in counts),
        **decided,
        "found_gone": sum(cluster.log(each.node_id).count(" is gone: ") for each in cluster.record.nodes),
        "complaints": cluster.complaints(),
    }


def decisions(directory: Path, after_offset: int) -> dict[str, int]:
    """What the metadata log holds from this offset on: fenced brokers, new leaders of the quorum, shrunk ISRs."""
    fenced = leaders = changes = 0
    for segment in sorted(directory.glob("*.log")):
        data = memoryview(segment.read_bytes())
        for position, batch in batches(data):
            view = data[position : position + batch.size_bytes]
            if batch.base_offset < after_offset:
                continue
            if batch.is_control:
                leaders += sum(control_type_of(each) is ControlType.LEADER_CHANGE for each in records_of(view))
                continue
            for record in records_of(view):
                decoded = decode_record(record.value or b"")
                fenced += isinstance(decoded, BrokerRegistrationChangeRecord) and decoded.fenced == FENCE
                changes += isinstance(decoded, PartitionChangeRecord)
    return {"fenced": fenced, "quorum_leaders": leaders, "partition_changes": changes}


def _end_of_metadata(cluster: Klamm) -> int:
    with cluster.line() as line:
        return int(raw.quorum(line).high_watermark)


def _hog(stopping: object) -> None:
    while not stopping.is_set():  # type: ignore[attr-defined]
        sum(range(100_000))


def _produce(servers: str, stopping: object, told: object) -> None:
    """As fast as the library takes it."""
    counts = {True: 0, False: 0}

    def delivered(error: KafkaError | None, _: Message) -> None:
        counts[error is None] += 1

    producer = Producer({"bootstrap.servers": servers, "log_level": 0})
    number = 0
    while not stopping.is_set():  # type: ignore[attr-defined]
        try:
            producer.produce(TOPIC, RECORD, partition=number % PARTITIONS, on_delivery=delivered)
            number += 1
        except BufferError:
            producer.poll(0.05)
    producer.flush(60)
    told.put((counts[True], counts[False]))  # type: ignore[attr-defined]


def summary(store: Store) -> str:
    names = [
        "minutes",
        "busy",
        "mib_per_second",
        "fenced",
        "quorum_leaders",
        "partition_changes",
        "found_gone",
        "failed",
    ]
    return f"""# Calm under load

Three nodes with default settings, {PRODUCERS} producers with acks=all as fast as they can (1 KiB, replication 3) and
{HOGS} processes that do nothing but burn. Counted in the metadata log from the beginning of the load. To reach: nobody
fenced, no new quorum leader.

{table(names, [[line[name] for name in names] for line in store.of("load")])}"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--minutes", type=float, default=MINUTES)
    parser.add_argument("--times", type=int, default=1)
    parser.add_argument("--producers", type=int, default=PRODUCERS)
    parser.add_argument("--hogs", type=int, default=HOGS)
