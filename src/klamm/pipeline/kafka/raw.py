"""Access by our own requests: bytes from the leader's log, decoded to Arrow without an object per record."""

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from klamm.ids import TopicPartition
from klamm.pipeline.decoding import Decoder
from klamm.pipeline.kafka.access import Committed
from klamm.pipeline.kafka.cluster import Cluster, ClusterSeen
from klamm.pipeline.kafka.committing import GroupProgress
from klamm.pipeline.kafka.fetching import Fetcher
from klamm.pipeline.kafka.offsets import listed
from klamm.pipeline.kafka.ranges import Range
from klamm.pipeline.kafka.settings import ClusterSettings


class RawAccess:
    def __init__(self, settings: ClusterSettings) -> None:
        self._cluster = Cluster(settings)
        self._progress: dict[str, GroupProgress] = {}

    def look(self, topics: Sequence[str] | None) -> ClusterSeen:
        return self._cluster.look(topics)

    def offsets(self, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        return listed(self._cluster, wanted)

    def rows(self, piece: Range, include_headers: bool) -> Iterator[pa.RecordBatch]:
        decoder = Decoder(piece.topic, piece.partition, include_headers)
        for fetched in Fetcher(self._cluster, piece):
            batches, following = decoder.decode(fetched.records, fetched.position, piece.end, fetched.aborted)
            # Behind the end of the range the decoder looks no further.
            assert following == fetched.next_position or following >= piece.end
            yield from batches

    def write_down(self, group: str, offsets: Mapping[TopicPartition, int], note: str = "") -> None:
        self._progress_of(group).write_down(offsets, note)

    def written_down(self, group: str) -> Committed:
        return self._progress_of(group).written_down()

    def close(self) -> None:
        self._cluster.close()

    def _progress_of(self, group: str) -> GroupProgress:
        if group not in self._progress:
            self._progress[group] = GroupProgress(self._cluster, group)
        return self._progress[group]
