"""Offsets of many partitions at once: the beginning, the end, or the first record at or after a time.

Each leader is asked once for all its partitions, all leaders at the same time. Who answers with an error that passes,
or not at all, is asked again after a look at the metadata; the others are not bothered twice.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from klamm.errors import RETRIABLE, ErrorCode, error_code
from klamm.ids import NO_BROKER, TopicPartition
from klamm.pipeline.kafka.cluster import Cluster, ClusterSeen, refused
from klamm.pipeline.kafka.connection import Connection
from klamm.pipeline.kafka.problems import NoAnswer
from klamm.wire.apis import LIST_OFFSETS
from klamm.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

EARLIEST, LATEST, EARLIEST_LOCAL = -2, -1, -4
NO_MATCH = -1
"""The answer where no record is as young as the time asked for."""
GONE_SECONDS = 5.0
"""So long all brokers have to say that a topic is gone: one of them may simply not have heard of it yet."""


def listed(cluster: Cluster, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    """Per partition EARLIEST, LATEST or a time in ms. What stays away for GONE_SECONDS is left out."""
    asking = _Asking(cluster, dict(wanted))
    if wanted:
        cluster.patiently(asking.once, "offsets")
    return asking.found


@dataclass(slots=True)
class _Asking:
    cluster: Cluster
    missing: dict[TopicPartition, int]
    found: dict[TopicPartition, int] = field(default_factory=dict)
    has_failed: bool = False
    absent_since: dict[TopicPartition, float] = field(default_factory=dict)

    def once(self) -> None:
        """Everything that is missing; raises if something still is afterwards."""
        if self.has_failed or self.cluster.seen is None:
            self.cluster.look_once(sorted({key.topic for key in self.missing}))
        self.has_failed = True
        problems: list[str] = []
        answering: list[Connection] = []
        for leader, keys in self._by_leader().items():
            try:
                connection = self.cluster.broker(leader)
                self._send(connection, keys)
                answering.append(connection)
            except NoAnswer as error:
                problems.append(str(error))
        answers: list[ListOffsetsResponse] = []
        for connection in answering:
            try:
                answers.append(connection.receive())
            except NoAnswer as error:
                self.cluster.forget(connection)
                problems.append(str(error))
        for answer in answers:
            self._note(answer, problems)
        if self.missing:
            raise NoAnswer("; ".join(problems) or f"no leader of {', '.join(map(str, sorted(self.missing)))}")

    def _by_leader(self) -> dict[int, list[TopicPartition]]:
        assert self.cluster.seen is not None
        self._give_up_gone(self.cluster.seen)
        topics, found = self.cluster.seen.topics, dict[int, list[TopicPartition]]()
        for key in sorted(self.missing):
            leader = topics[key.topic].leaders.get(key.partition, NO_BROKER) if key.topic in topics else NO_BROKER
            if leader != NO_BROKER:
                found.setdefault(leader, []).append(key)
        return found

    def _give_up_gone(self, seen: ClusterSeen) -> None:
        absent = {key for key in self.missing if seen.refused.get(key.topic) == _UNKNOWN}
        absent |= {key for key in self.missing if key.topic in seen.topics and key.partition not in _leaders(seen, key)}
        now = time.monotonic()
        self.absent_since = {key: self.absent_since.get(key, now) for key in absent}
        for key, since in self.absent_since.items():
            if now - since >= GONE_SECONDS:
                del self.missing[key]

    def _send(self, connection: Connection, keys: list[TopicPartition]) -> None:
        topics: dict[str, list[ListOffsetsPartition]] = {}
        for key in keys:
            partition = ListOffsetsPartition(partition_index=key.partition, timestamp=self.missing[key])
            topics.setdefault(key.topic, []).append(partition)
        request = ListOffsetsRequest(
            replica_id=NO_BROKER,
            isolation_level=int(self.cluster.settings.read_committed),
            topics=[ListOffsetsTopic(name=name, partitions=partitions) for name, partitions in topics.items()],
            timeout_ms=int(self.cluster.settings.request_timeout_seconds * 1000),
        )
        try:
            connection.send(LIST_OFFSETS, request)
        except NoAnswer:
            self.cluster.forget(connection)
            raise

    def _note(self, response: ListOffsetsResponse, problems: list[str]) -> None:
        for topic in response.topics:
            for partition in topic.partitions:
                key = TopicPartition(topic.name, partition.partition_index)
                code = error_code(partition.error_code)
                if code == ErrorCode.NONE:
                    self.found[key] = partition.offset
                    self.missing.pop(key, None)
                elif code in RETRIABLE:
                    problems.append(f"{key}: {code.name}")
                else:
                    raise refused(code, f"the offsets of {key}")


def _leaders(seen: ClusterSeen, key: TopicPartition) -> dict[int, int]:
    return seen.topics[key.topic].leaders


_UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
