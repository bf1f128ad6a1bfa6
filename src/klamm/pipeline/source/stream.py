"""A streaming query: Spark asks how far it may read, plans a batch up to there, and says when it is done.

One reader lives in a process of its own beside the driver for as long as the query runs; it keeps its connections. The
tasks read elsewhere and know nothing but their range. What a person should hear goes to the log, which here is Spark's
standard error, and into the progress reports, where `position.said_in` finds it. Progress goes to Spark's checkpoint,
and, for everybody who watches lag, to the consumer group that `kafka.group.id` names.
"""

import logging
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from klamm.ids import TopicPartition
from klamm.pipeline.kafka.access import LIBRDKAFKA, Access, opened
from klamm.pipeline.kafka.problems import ClusterProblem
from klamm.pipeline.source.losses import CREATED_AGAIN, Loss, report
from klamm.pipeline.source.options import SLOWER, stream_options
from klamm.pipeline.source.planning import Standing, available, check_start, end_of_trigger, losses, ranges, split
from klamm.pipeline.source.position import Position, as_json, check_cluster, from_json
from klamm.pipeline.source.standing import Asking
from klamm.pipeline.source.tasks import RangePartition, rows

if TYPE_CHECKING:
    import pyarrow as pa

log = logging.getLogger("klamm.pipeline")

WRITE_DOWN_AGAIN_SECONDS = 60.0
"""After a failure to write progress down: each costs the stream some seconds."""
MOST_SAID = 10


class KlammStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = stream_options(options)
        self._known_access: Access | None = None
        self._initial: Position | None = None
        self._latest: Position | None = None
        self._target: Standing | None = None
        self._planned: tuple[Position, Position, list[InputPartition]] | None = None
        self._written_down: Position | None = None
        self._said: deque[str] = deque(maxlen=MOST_SAID)
        if self._options.reader == LIBRDKAFKA:
            self._say(SLOWER)
        self._write_down_from = self._last_trigger_seconds = float("-inf")

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        """Spark asks twice for it, and has to hear the same."""
        if self._initial is None:
            now = self._asking.standing()
            offsets = self._asking.resolved(self._options.starting, now, is_start=True)
            check_start(offsets, now)
            self._initial = Position(now.cluster, now.topics, offsets, is_initial=True)
        return as_json(self._initial)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Anything but "all": what the limit is, `latestOffset` knows by itself."""
        if self._options.max_offsets_per_trigger is not None:
            return ReadMaxRows(self._options.max_offsets_per_trigger)
        if self._options.min_offsets_per_trigger is not None:
            return ReadMinRows(self._options.min_offsets_per_trigger)
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._target = self._asking.standing(may_be_missing=True)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        begun = from_json(start)
        self._write_down(begun)
        now = self._target or self._asking.standing_after(begun)
        if self._target is not None and not now.has_all_of(begun):
            now = self._target = self._asking.standing_after(begun)
        check_cluster(begun, now.cluster)
        self._latest = now.position(now.latest)
        lost = losses(begun, self._latest, now)
        if not self._options.fail_on_data_loss:
            # `partitions` says what the batch lacks. It does not hear of a first topic that is another already.
            lost = [loss for loss in lost if begun.is_initial and loss.why == CREATED_AGAIN]
        # Before the batch is written down: the query can go on from here with the option changed.
        self._report(lost)
        takes_all = isinstance(limit, ReadAllAvailable)
        if not takes_all and self._is_too_early(begun, now):
            return start
        most = None if takes_all else self._options.max_offsets_per_trigger
        end = now.position(end_of_trigger(begun, now, most))
        if end.stands_where(begun) and not begun.is_initial:
            return start
        if begun.is_initial:
            end = Position(end.cluster, end.topics, end.offsets, began=_begins(begun, end))
        return as_json(end)

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802
        return None if self._latest is None else as_json(self._latest, self._said)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        begun, until = from_json(start), from_json(end)
        if begun.is_initial and until.began is not None:
            # All of it as it was: whoever asks now, after a restart, may find another topic of that name.
            begun = Position(until.cluster, until.topics, until.began)
        if self._planned is None or self._planned[:2] != (begun, until):
            self._planned = (begun, until, self._tasks(begun, until))
        return self._planned[2]

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        return rows(self._options, partition)

    def commit(self, end: dict[str, Any]) -> None:
        self._write_down(from_json(end))

    def stop(self) -> None:
        if self._known_access is not None:
            self._known_access.close()

    @property
    def _access(self) -> Access:
        # Made when it is needed: Spark also pickles a reader that never asks anything.
        if self._known_access is None:
            self._known_access = opened(self._options.cluster, self._options.reader)
        return self._known_access

    @property
    def _asking(self) -> Asking:
        return Asking(self._options, self._access)

    def _tasks(self, begun: Position, until: Position) -> list[InputPartition]:
        now = self._asking.standing_after(until)
        check_cluster(until, now.cluster)
        self._report(losses(begun, until, now))
        pieces = ranges(begun, until, now)
        found = split(pieces, self._options.min_partitions, self._options.max_records_per_partition)
        return [RangePartition(piece) for piece in found]

    def _is_too_early(self, begun: Position, now: Standing) -> bool:
        """minOffsetsPerTrigger: not enough yet, and not waited long enough. What `availableNow` found is never held."""
        least = self._options.min_offsets_per_trigger
        if least is None or self._target is not None:
            return False
        waited = time.monotonic() - self._last_trigger_seconds
        if waited < self._options.max_trigger_delay_seconds and available(begun, now) < least:
            return True
        self._last_trigger_seconds = time.monotonic()
        return False

    def _write_down(self, done: Position) -> None:
        """Everything before `done` has been processed. A failure is nobody's loss: the checkpoint has it."""
        group = self._options.group
        if group is None or done.is_initial or (self._written_down and done.stands_where(self._written_down)):
            return
        if time.monotonic() < self._write_down_from:
            return
        try:
            self._access.write_down(group, done.offsets, self._options.group_note)
            self._written_down = done
        except ClusterProblem as problem:
            self._write_down_from = time.monotonic() + WRITE_DOWN_AGAIN_SECONDS
            text = f"The progress of group {group} could not be written down: {problem}"
            log.warning(text)
            self._say(text)

    def _report(self, found: Sequence[Loss]) -> None:
        self._say(report(found, self._options.fail_on_data_loss))

    def _say(self, text: str) -> None:
        """With the time, so that whoever sees it in every report knows whether it is new."""
        if text:
            self._said.append(f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC: {text}")


def _begins(begun: Position, end: Position) -> dict[TopicPartition, int]:
    """Where the first batch begins, in the topics that `end` knows: one that was created again begins anew."""
    known = begun.topics
    return {
        key: at for key, at in begun.offsets.items() if end.topics.get(key.topic, known[key.topic]) == known[key.topic]
    }
