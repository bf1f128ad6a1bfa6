"""What a source asks of a cluster, whoever answers: our own fetches, or librdkafka where TLS or SASL are needed."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias

from klamm.ids import TopicPartition
from klamm.pipeline.kafka.cluster import ClusterSeen
from klamm.pipeline.kafka.ranges import Range
from klamm.pipeline.kafka.settings import ClusterSettings

if TYPE_CHECKING:
    import pyarrow as pa

RAW, LIBRDKAFKA = "raw", "librdkafka"

Committed: TypeAlias = Mapping[TopicPartition, tuple[int, str]]
"""Of each partition the offset, and what was noted beside it."""


class Access(Protocol):
    def look(self, topics: Sequence[str] | None) -> ClusterSeen:
        """The cluster and these topics, or all of them."""

    def offsets(self, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Per partition EARLIEST, LATEST or a time in ms; NO_MATCH where no record is as young as that."""

    def rows(self, piece: Range, include_headers: bool) -> "Iterator[pa.RecordBatch]":
        """The range's records, each once and in order; what a log does not have any more, or never had, is left out."""

    def write_down(self, group: str, offsets: Mapping[TopicPartition, int], note: str = "") -> None:
        """A group's progress, and a note beside it."""

    def written_down(self, group: str) -> Committed:
        """All that a group has committed."""

    def close(self) -> None: ...


def opened(settings: ClusterSettings, reader: str) -> Access:
    if reader == RAW:
        from klamm.pipeline.kafka.raw import RawAccess

        return RawAccess(settings)
    from klamm.pipeline.kafka.librdkafka import LibrdkafkaAccess

    return LibrdkafkaAccess(settings)
