"""One batch of a query, written: through the functions to the tables and topics, bad records into quarantine.

Spark calls this from `foreachBatch`, in the driver, and repeats a batch after a crash. Tables know which batches they
have. So nothing is counted or committed here that could not be done twice. A batch that several outputs are made from,
or whose making changes state, is made once and kept until it is written. Such a one is made in any case, even if every
table has it: Spark's state, and with it the watermark, moves on only if it is.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from klamm.pipeline import parsing
from klamm.pipeline.declaration import Table, Topic
from klamm.pipeline.flow import Flow
from klamm.pipeline.planning import PlannedQuery

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from klamm.pipeline.tables import TableSink

QUARANTINE_KEY = ("topic", "partition", "offset", "timestamp")
"""With the time: a topic that was deleted and created again has other records at the same offsets."""
QUARANTINE = "quarantine"


@dataclass(slots=True)
class Done:
    """What a batch brought, by the label of an output."""

    added: Counter[str] = field(default_factory=Counter)
    replaced: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    """Rows whose key is there in another row, which stays."""
    quarantined: Counter[str] = field(default_factory=Counter)
    """By reason."""

    def add(self, other: "Done") -> None:
        self.added.update(other.added)
        self.replaced.update(other.replaced)
        self.left_out.update(other.left_out)
        self.quarantined.update(other.quarantined)


class Stopped(Exception):  # noqa: N818
    """The batch was not begun, because the run is to stop. It will be the first one of the next run."""


class Gate:
    """Where batches start. Closed when a run is to stop: what is inside finishes, and who comes then waits here until
    its query has been stopped. Spark cannot be told to finish a batch and begin no other."""

    def __init__(self) -> None:
        self._closed = threading.Event()
        self._released = threading.Event()
        self.waiting: set[str] = set()

    def close(self) -> None:
        self._closed.set()

    def release(self) -> None:
        self._released.set()

    @property
    def is_closed(self) -> bool:
        return self._closed.is_set()

    def pass_through(self, query: str) -> None:
        if self._closed.is_set():
            self.waiting.add(query)
            self._released.wait()
            raise Stopped


class BatchWriter:
    """What `foreachBatch` calls for one query."""

    def __init__(
        self,
        query: PlannedQuery,
        flow: Flow,
        gate: Gate,
        tables: "Mapping[str, TableSink]",
        write_topic: "Callable[[DataFrame, str, Mapping[str, str]], None]",
    ) -> None:
        self.query, self._flow, self._gate = query, flow, gate
        self._tables, self._write_topic = tables, write_topic
        self.failure: BaseException | None = None
        self.done: dict[int, Done] = {}
        self.begun = Done()
        """What is written of the batch that it is at, or failed in."""
        self.at: tuple[int, float] | None = None
        """That batch, and when it began, on the clock of time.monotonic."""

    def __call__(self, batch: "DataFrame", batch_id: int) -> None:
        try:
            self._gate.pass_through(self.query.name)
            self.at = batch_id, time.monotonic()
            self.done[batch_id] = self._written(batch, batch_id)
            self.begun = Done()
        except Stopped:
            raise
        except BaseException as problem:
            self.failure = problem
            raise
        finally:
            self.at = None

    def _written(self, batch: "DataFrame", batch_id: int) -> Done:
        is_kept = bool(self.query.operators) or len(self.query.outputs) + 2 * bool(self.query.quarantines) > 1
        if is_kept:
            batch.persist()
        try:
            done = self.begun = Done()
            frames = {self.query.name: batch}
            if self.query.quarantines is not None:
                frames[self.query.name] = parsing.good(batch)
                self._quarantine(parsing.refused(batch), batch_id, done)
            was_made = False
            for output in self.query.outputs:
                rows = self._flow.frame(output.function.__name__, frames)
                if isinstance(output, Table):
                    was_made |= self._to_table(rows, output.name, output.label, batch_id, done)
                else:
                    self._to_topic(rows, output, done)
                    was_made = True
            if self.query.operators and not was_made:
                batch.write.format("noop").mode("overwrite").save()
            return done
        finally:
            if is_kept:
                batch.unpersist()

    def _quarantine(self, refused: "DataFrame", batch_id: int, done: Done) -> None:
        source = self.query.quarantines
        assert source is not None
        for reason, count in refused.groupBy("reason").count().collect():
            done.quarantined[reason] += count
        if done.quarantined:
            # Reasons are counted as they come; a batch that is repeated is in the table already, and counts as before.
            self._to_table(refused, source.quarantine_table, f"table {source.quarantine_table}", batch_id, done)
            self._to_topic(parsing.as_messages(refused), Topic(source.quarantine_topic, _nothing), done)

    def _to_table(self, rows: "DataFrame", name: str, label: str, batch_id: int, done: Done) -> bool:
        """Whether the rows were made for it. Not if it has the batch."""
        written = self._tables[name].write(rows, batch_id)
        done.added[label] += written.rows_added
        done.replaced[label] += written.rows_replaced
        done.left_out[label] += written.rows_left_out
        return not written.was_done

    def _to_topic(self, rows: "DataFrame", topic: Topic, done: Done) -> None:
        import pyspark.sql.functions as f
        from pyspark.sql import Observation

        observed = Observation()
        self._write_topic(rows.observe(observed, f.count(f.lit(1)).alias("rows")), topic.name, topic.options)
        done.added[topic.label] += int(observed.get["rows"])


def _nothing(records: "DataFrame") -> "DataFrame":
    return records
