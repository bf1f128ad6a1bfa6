"""The replicas on this broker: how many, which of them are led here, who is behind, and what their logs hold."""

from collections.abc import Callable, Iterator

from klamm.partition.partition import Partition
from klamm.runtime.metrics.family import COUNTER, GAUGE, Gather, Sample, Seen, family, labelled, one, place_of

MANAGER = "kafka_server_replicamanager"


@one(f"{MANAGER}_partitioncount", GAUGE, "Replicas on this broker.")
def partition_count(seen: Seen) -> float:
    return len(seen.replicas)


@one(f"{MANAGER}_leadercount", GAUGE, "Partitions that this broker leads.")
def leader_count(seen: Seen) -> float:
    return seen.tally.leaders


@one(f"{MANAGER}_underreplicatedpartitions", GAUGE, "Partitions led here with fewer replicas in sync than there are.")
def under_replicated(seen: Seen) -> float:
    return seen.tally.under_replicated


@one(
    f"{MANAGER}_underminisrpartitioncount",
    GAUGE,
    "Partitions led here with fewer replicas in sync than min.insync.replicas: acks=all is refused.",
)
def under_min_isr(seen: Seen) -> float:
    return seen.tally.under_min_isr


@one(
    f"{MANAGER}_atminisrpartitioncount",
    GAUGE,
    "Partitions led here with just min.insync.replicas in sync: one more lost, and acks=all is refused.",
)
def at_min_isr(seen: Seen) -> float:
    return seen.tally.at_min_isr


@one(
    f"{MANAGER}_offlinereplicacount",
    GAUGE,
    "Replicas here whose log takes nothing: its disk has failed, or there was no room for a file.",
)
def offline(seen: Seen) -> float:
    return seen.tally.offline


@one(f"{MANAGER}_produceridcount", GAUGE, "Idempotent producers that the replicas here remember.")
def producers(seen: Seen) -> float:
    return seen.tally.producers


@one("klamm_producers_forgotten", GAUGE, "Producers that the replicas here forgot early: there were too many.")
def producers_forgotten(seen: Seen) -> float:
    return seen.tally.producers_forgotten


@one("klamm_storage_full", GAUGE, "1 while the disk is full: writes are refused until there is room.")
def storage_full(seen: Seen) -> float:
    return int(seen.broker.storage.full is not None)


@one("klamm_storage_refused_writes_total", COUNTER, "Writes that were refused because the disk was full.")
def storage_refused(seen: Seen) -> float:
    return seen.broker.storage.refused


@one("klamm_storage_errors_total", COUNTER, "What else the disk refused: reads and writes that failed.")
def storage_errors(seen: Seen) -> float:
    return seen.broker.storage.failures


@one(
    "klamm_records_missing",
    GAUGE,
    "Records that this node had, by its checkpoints or its segments, and did not find on its disk after it started.",
)
def records_missing(seen: Seen) -> float:
    return seen.driver.node.broker.partitions.missing_records


@one(f"{MANAGER}_isrshrinks_total", COUNTER, "How often replicas left the in-sync ones of a partition led here.")
def isr_shrinks(seen: Seen) -> float:
    return seen.tally.traffic.isr_shrinks


@one(f"{MANAGER}_isrexpands_total", COUNTER, "How often replicas came back to them.")
def isr_expands(seen: Seen) -> float:
    return seen.tally.traffic.isr_expands


@family(
    "klamm_replication_lag_records_max",
    GAUGE,
    "How far each follower is behind, in the partition led here where it is furthest behind.",
    "follower",
)
def replication_lag(seen: Seen) -> Iterator[Sample]:
    for follower, behind in sorted(seen.tally.followed_by.items()):
        yield labelled({"follower": follower}, behind)


def _each(value_of: Callable[[Partition], int], *, led: bool = False) -> Gather:
    """A sample for each replica here, or for each partition that is led here."""

    def gather(seen: Seen) -> Iterator[Sample | None]:
        for partition in seen.replicas:
            is_told_of = not partition.deleted and (not led or partition.leading is not None)
            yield (place_of(partition), value_of(partition)) if is_told_of else None

    return gather


def _of_logs(name: str, what: str, value_of: Callable[[Partition], int]) -> None:
    family(f"kafka_log_log_{name}", GAUGE, what, "topic", "partition")(_each(value_of))


_of_logs("size", "Bytes of a replica's log.", lambda each: each.log.size_bytes)
_of_logs("logstartoffset", "Where a replica's log begins.", lambda each: each.log.start_offset)
_of_logs("logendoffset", "Where a replica's log ends.", lambda each: each.log.end_offset)
_of_logs("numlogsegments", "Files of a replica's log.", lambda each: len(each.log.segments.all))


def _of_leaders(name: str, what: str, value_of: Callable[[Partition], int]) -> None:
    family(name, GAUGE, what, "topic", "partition")(_each(value_of, led=True))


_of_leaders("kafka_cluster_partition_replicascount", "Replicas of a partition.", lambda each: len(each.replicas))
_of_leaders("kafka_cluster_partition_insyncreplicascount", "Of them, those in sync.", lambda each: len(each.in_sync))
_of_leaders(
    "kafka_cluster_partition_underreplicated",
    "1 where fewer are in sync than there are.",
    lambda each: int(len(each.in_sync) < len(each.replicas)),
)
_of_leaders(
    "kafka_topic_partition_current_offset",
    "The high watermark: consumers can read everything before it.",
    lambda each: each.high_watermark,
)
_of_leaders("kafka_topic_partition_oldest_offset", "The first record there is.", lambda each: each.log.start_offset)
