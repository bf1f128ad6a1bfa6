"""A stream's progress, written down for a consumer group so that every tool sees its lag, and read again.

The group has no members; Spark's checkpoint is what counts. Whoever looks at the group sees how far the query is.
"""

from collections.abc import Mapping

from klamm.errors import ErrorCode
from klamm.ids import TopicPartition
from klamm.pipeline.kafka.cluster import Cluster, refused
from klamm.pipeline.kafka.connection import Address, Connection
from klamm.pipeline.kafka.notes import closed, note_in
from klamm.pipeline.kafka.problems import NoAnswer
from klamm.wire.apis import FIND_COORDINATOR, OFFSET_COMMIT, OFFSET_FETCH
from klamm.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from klamm.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from klamm.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchResponse

LAST_VERSION_WITH_NAMES = 9
FIRST_VERSION_WITH_MANY_KEYS = 4
FIRST_VERSION_WITH_MANY_GROUPS = 8
PATIENCE_SECONDS = 5.0
"""It is a courtesy to those who look: the stream does not stand still for it."""


class GroupProgress:
    def __init__(self, cluster: Cluster, group: str) -> None:
        self._cluster = cluster
        self._group = group
        self._coordinator: Address | None = None

    def write_down(self, offsets: Mapping[TopicPartition, int], note: str = "") -> None:
        """`note` is what a group's readers find beside each offset."""
        if offsets:
            what = f"progress of the group {self._group}"
            self._cluster.patiently(lambda: self._commit(offsets, note), what, PATIENCE_SECONDS)

    def written_down(self) -> dict[TopicPartition, tuple[int, str]]:
        """Of each partition the offset, and the note beside it."""
        what = f"what the group {self._group} has committed"
        return self._cluster.patiently(self._fetched, what, PATIENCE_SECONDS)

    def _fetched(self) -> dict[TopicPartition, tuple[int, str]]:
        connection = self._found()
        try:
            version = connection.version(OFFSET_FETCH, LAST_VERSION_WITH_NAMES)
            if version < FIRST_VERSION_WITH_MANY_GROUPS:
                request = OffsetFetchRequest(group_id=self._group, topics=None)
            else:
                request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=self._group, topics=None)])
            response: OffsetFetchResponse = connection.ask(OFFSET_FETCH, request, version)
        except NoAnswer:
            self._coordinator = None
            self._cluster.forget(connection)
            raise
        answer = response.groups[0] if response.groups else response
        if answer.error_code:
            self._coordinator = None
            raise refused(answer.error_code, f"the group {self._group}")
        return {
            TopicPartition(topic.name, each.partition_index): (each.committed_offset, note_in(each.metadata))
            for topic in answer.topics
            for each in topic.partitions
            if not each.error_code
        }

    def _commit(self, offsets: Mapping[TopicPartition, int], note: str) -> None:
        connection = self._found()
        try:
            version = connection.version(OFFSET_COMMIT, LAST_VERSION_WITH_NAMES)
            response: OffsetCommitResponse = connection.ask(OFFSET_COMMIT, self._request(offsets, note), version)
        except NoAnswer:
            self._coordinator = None
            self._cluster.forget(connection)
            raise
        for topic in response.topics:
            for partition in topic.partitions:
                if partition.error_code:
                    self._coordinator = None
                    raise refused(partition.error_code, f"{topic.name}-{partition.partition_index}")

    def _request(self, offsets: Mapping[TopicPartition, int], note: str) -> OffsetCommitRequest:
        topics: dict[str, list[OffsetCommitRequestPartition]] = {}
        for key, offset in sorted(offsets.items()):
            partition = OffsetCommitRequestPartition(
                partition_index=key.partition, committed_offset=offset, committed_metadata=closed(note)
            )
            topics.setdefault(key.topic, []).append(partition)
        return OffsetCommitRequest(
            group_id=self._group,
            topics=[OffsetCommitRequestTopic(name=name, partitions=found) for name, found in topics.items()],
        )

    def _found(self) -> Connection:
        if self._coordinator is None:
            anybody = self._cluster.anybody()
            try:
                self._coordinator = self._asked_of(anybody)
            except NoAnswer:
                self._cluster.forget(anybody)
                raise
        return self._cluster.connection(self._coordinator)

    def _asked_of(self, connection: Connection) -> Address:
        version = connection.version(FIND_COORDINATOR)
        if version < FIRST_VERSION_WITH_MANY_KEYS:
            request = FindCoordinatorRequest(key=self._group)
        else:
            request = FindCoordinatorRequest(coordinator_keys=[self._group])
        response: FindCoordinatorResponse = connection.ask(FIND_COORDINATOR, request, version)
        found = response.coordinators[0] if response.coordinators else response
        if found.error_code != ErrorCode.NONE:
            raise refused(found.error_code, f"the coordinator of {self._group}")
        return Address(found.host, found.port)
