"""How a run is going, as values: Spark's progress reports added up, query by query.

Spark reports once a trigger, as JSON: how many records, how long, where the source stands and where its topics end.
What the writer counted is added to it. All the rest, the view, the metrics, the summary, is made from these values.
"""

import json
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from klamm.pipeline.source.position import said_in
from klamm.pipeline.writing import Done

Offsets = dict[tuple[str, int], int]


@dataclass(frozen=True, slots=True)
class UnderWay:
    """A batch that is being written: Spark says nothing of it before it is done, which may take minutes."""

    batch: int
    seconds: float

    @classmethod
    def of(cls, begun: tuple[int, float] | None) -> "UnderWay | None":
        return None if begun is None else cls(begun[0], time.monotonic() - begun[1])


@dataclass(slots=True)
class QueryStanding:
    name: str
    topics: tuple[str, ...]
    batches: int = 0
    records: int = 0
    last_batch: int = -1
    batch_seconds: float = 0.0
    records_per_second: float = 0.0
    began: Offsets = field(default_factory=dict)
    """Where it stood before the first batch of this run."""
    reached: Offsets = field(default_factory=dict)
    ends: Offsets = field(default_factory=dict)
    """The ends of the partitions, when it last looked."""
    late: int = 0
    """Rows that came after the watermark, and are in no window."""
    state_rows: int = 0
    watermark: str = ""
    is_over: bool = False
    under_way: UnderWay | None = None

    @property
    def lag(self) -> Offsets:
        return {
            partition: max(0, end - self.reached.get(partition, self.began.get(partition, 0)))
            for partition, end in self.ends.items()
        }

    @property
    def share(self) -> float:
        """How much of what there was is done, from 0 to 1."""
        if self.is_over:
            return 1.0
        whole = sum(end - self.began.get(partition, 0) for partition, end in self.ends.items())
        return 0.0 if not self.ends else 1.0 if whole <= 0 else max(0.0, 1 - sum(self.lag.values()) / whole)


@dataclass(slots=True)
class Standing:
    pipeline: str
    queries: dict[str, QueryStanding]
    outputs: tuple[str, ...]
    """Labels, in the order of the declaration."""
    quarantines: tuple[str, ...] = ()
    """The labels of quarantine's tables and topics."""
    done: Done = field(default_factory=Done)
    said: list[str] = field(default_factory=list)
    """What a person should hear of the sources: records that are lost, a slower reader, progress not written down."""
    seconds: float = 0.0
    """Since the queries were started."""
    start_seconds: float = 0.0
    """What Spark took before that."""

    @property
    def is_known(self) -> bool:
        """Whether every query has told of itself. Before that, what is zero may only not be counted yet."""
        return all(query.batches or query.ends or query.is_over for query in self.queries.values())

    @property
    def records(self) -> int:
        """Read from the topics; a topic that several queries read counts once."""
        most: Counter[tuple[str, ...]] = Counter()
        for query in self.queries.values():
            most[query.topics] = max(most[query.topics], query.records)
        single = {topics[0]: count for topics, count in most.items() if len(topics) == 1}
        covered = {
            topics: count for topics, count in most.items() if len(topics) > 1 and not set(topics) <= set(single)
        }
        return sum(single.values()) + sum(covered.values())

    @property
    def records_per_second(self) -> float:
        return self.records / self.seconds if self.seconds > 0 else 0.0

    @property
    def quarantined(self) -> int:
        return sum(self.done.quarantined.values())

    @property
    def late(self) -> int:
        return sum(query.late for query in self.queries.values())


def note(standing: Standing, name: str, report: Mapping[str, Any], done: Done | None) -> None:
    """A report of Spark's about one trigger, and what its batch brought."""
    query = standing.queries[name]
    records = int(report.get("numInputRows") or 0)
    # A source repeats itself in every report.
    standing.said += [text for each in said_in(report) if (text := f"{name}: {each}") not in standing.said]
    for source in report.get("sources", ()):
        for partition, offset in offsets_of(source.get("startOffset")).items():
            query.began.setdefault(partition, offset)
        query.reached.update(offsets_of(source.get("endOffset")))
        query.ends.update(offsets_of(source.get("latestOffset")) or offsets_of(source.get("endOffset")))
    for operator in report.get("stateOperators", ()):
        query.late += max(0, int(operator.get("numRowsDroppedByWatermark") or 0))
    query.state_rows = sum(int(each.get("numRowsTotal") or 0) for each in report.get("stateOperators", ()))
    query.watermark = str(report.get("eventTime", {}).get("watermark", ""))
    if done is None and not records:
        return
    query.batches += 1
    query.records += records
    query.last_batch = int(report.get("batchId", -1))
    query.batch_seconds = float(report.get("durationMs", {}).get("triggerExecution") or 0) / 1000
    query.records_per_second = records / query.batch_seconds if query.batch_seconds > 0 else 0.0
    if done is not None:
        standing.done.add(done)


def offsets_of(value: Any) -> Offsets:
    """`{"topic": {"0": 12}}`, as text or parsed; whatever else a source writes beside it is left alone."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return {}
    if not isinstance(value, Mapping):
        return {}
    return {
        (topic, int(partition)): offset
        for topic, partitions in value.items()
        if isinstance(partitions, Mapping)
        for partition, offset in partitions.items()
        if str(partition).isdigit() and isinstance(offset, int)
    }


def document(standing: Standing, names: Sequence[str] | None = None) -> dict[str, Any]:
    """For programs: all of it, or what concerns some of the queries."""
    queries = [query for name, query in standing.queries.items() if names is None or name in names]
    return {
        "pipeline": standing.pipeline,
        "seconds": round(standing.seconds, 3),
        "records": standing.records,
        "recordsPerSecond": round(standing.records_per_second, 1),
        "quarantined": dict(sorted(standing.done.quarantined.items())),
        "late": standing.late,
        "said": list(standing.said),
        "outputs": {
            label: {
                "added": standing.done.added[label],
                "replaced": standing.done.replaced[label],
                "leftOut": standing.done.left_out[label],
            }
            for label in (*standing.outputs, *standing.quarantines)
        },
        "queries": {
            query.name: {
                "batch": query.last_batch,
                "batches": query.batches,
                "records": query.records,
                "recordsPerSecond": round(query.records_per_second, 1),
                "batchSeconds": query.batch_seconds,
                "lag": {f"{topic}-{partition}": lag for (topic, partition), lag in sorted(query.lag.items())},
                "late": query.late,
                "stateRows": query.state_rows,
                "watermark": query.watermark,
            }
            for query in queries
        },
    }
