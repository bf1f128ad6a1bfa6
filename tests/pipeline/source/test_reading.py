"""A task meets holes that planning did not see: it says which records are missing, and goes on or does not."""

from collections.abc import Iterator, Mapping

import pyarrow as pa
import pytest

from klamm.ids import TopicPartition
from klamm.pipeline.decoding import arrow_schema
from klamm.pipeline.kafka.cluster import ClusterSeen
from klamm.pipeline.kafka.offsets import EARLIEST
from klamm.pipeline.kafka.problems import EndNotReached, OutOfRange, TopicGone
from klamm.pipeline.kafka.ranges import Range
from klamm.pipeline.source.problems import DataLost
from klamm.pipeline.source.reading import read


class Log:
    """One partition that holds the offsets from `earliest` up to `latest`; `fails` may end a read at an offset."""

    def __init__(self, earliest: int, latest: int, fails: dict[int, Exception] | None = None) -> None:
        self._earliest, self._latest, self._fails = earliest, latest, fails or {}
        self.is_there = True

    def rows(self, piece: Range, include_headers: bool) -> Iterator[pa.RecordBatch]:
        for offset in range(piece.start, piece.end):
            if offset in self._fails:
                raise self._fails.pop(offset)
            if not self._earliest <= offset <= self._latest:
                raise OutOfRange(piece.topic, piece.partition, offset)
            row = [b"", b"", piece.topic, piece.partition, offset, 0, 0]
            columns = [pa.array([value], field.type) for value, field in zip(row, arrow_schema(False), strict=True)]
            yield pa.RecordBatch.from_arrays(columns, schema=arrow_schema(False))

    def offsets(self, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        found = {key: self._earliest if when == EARLIEST else self._latest for key, when in wanted.items()}
        return found if self.is_there else {}

    def look(self, topics: object) -> ClusterSeen:
        raise AssertionError("a task has its range")

    def write_down(self, group: str, offsets: object) -> None:
        raise AssertionError("a task has no group")

    def close(self) -> None: ...


def offsets(log: Log, piece: Range, fails: bool = False) -> list[int]:
    return [batch.column(4)[0].as_py() for batch in read(log, piece, False, fails)]


PIECE = Range("t", 0, 0, 10)


def test_retention_was_quicker(caplog: pytest.LogCaptureFixture) -> None:
    assert offsets(Log(4, 10), PIECE) == [4, 5, 6, 7, 8, 9]
    assert "t-0 offsets 0 to 3 (retention" in caplog.text
    with pytest.raises(DataLost, match="t-0 offsets 0 to 3"):
        offsets(Log(4, 10), PIECE, fails=True)


def test_all_of_it_is_gone() -> None:
    with pytest.raises(DataLost, match="t-0 offsets 0 to 9"):
        offsets(Log(20, 30), PIECE, fails=True)
    assert offsets(Log(20, 30), PIECE) == []


def test_who_asks_for_the_earliest_misses_nothing(caplog: pytest.LogCaptureFixture) -> None:
    assert offsets(Log(4, 10), Range("t", 0, 0, 10, may_begin_later=True), fails=True) == [4, 5, 6, 7, 8, 9]
    assert not caplog.records


def test_a_leader_of_yesterday_was_wrong() -> None:
    log = Log(0, 10, {3: OutOfRange("t", 0, 3)})
    assert offsets(log, PIECE, fails=True) == list(range(10))


def test_the_log_was_cut() -> None:
    with pytest.raises(DataLost, match=r"t-0 offsets 6 to 9 .the log is shorter"):
        offsets(Log(0, 5), PIECE, fails=True)
    with pytest.raises(DataLost, match=r"t-0 offsets 7 to 9 .the log is shorter"):
        offsets(Log(0, 10, {7: EndNotReached("t", 0, 7, 10)}), PIECE, fails=True)


def test_the_topic_is_gone() -> None:
    with pytest.raises(DataLost, match=r"t-0 offsets 2 to 9 .the topic or partition was deleted"):
        offsets(Log(0, 10, {2: TopicGone("t", "gone")}), PIECE, fails=True)
    log = Log(0, 10, {2: OutOfRange("t", 0, 2)})
    log.is_there = False
    assert offsets(log, PIECE) == [0, 1]
