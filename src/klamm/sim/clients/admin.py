"""Who runs the cluster: topics are created, deleted and created again, grow, move, and get other settings.

One thing at a time, through any broker. What was asked may have happened though nobody said so; the next thing is
asked all the same.
"""

from collections.abc import Callable, Sequence
from typing import Any

from klamm.ids import BrokerId, Offset
from klamm.sim.clients.client import Client
from klamm.wire.apis import (
    ALTER_PARTITION_REASSIGNMENTS,
    API_BY_KEY,
    CREATE_PARTITIONS,
    CREATE_TOPICS,
    DELETE_RECORDS,
    DELETE_TOPICS,
    ELECT_LEADERS,
    INCREMENTAL_ALTER_CONFIGS,
)
from klamm.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from klamm.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from klamm.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from klamm.wire.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from klamm.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from klamm.wire.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from klamm.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

ADMIN_MS = 6_000.0
TOPIC_RESOURCE = 2
BROKER_RESOURCE = 4
SET = 0
PREFERRED = 0
UNCLEAN = 1

Then = Callable[[Any], None]


class Admin(Client):
    def create(self, name: str, partitions: int, factor: int, settings: dict[str, str], then: Then) -> None:
        topic = CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=factor,
            configs=[CreatableTopicConfig(name=key, value=value) for key, value in settings.items()],
        )
        self.request(CREATE_TOPICS, CreateTopicsRequest(topics=[topic], timeout_ms=5_000), then)

    def create_many(self, names: Sequence[str], partitions: int, factor: int, then: Then) -> None:
        topics = [CreatableTopic(name=name, num_partitions=partitions, replication_factor=factor) for name in names]
        self.request(CREATE_TOPICS, CreateTopicsRequest(topics=topics, timeout_ms=5_000), then)

    def delete(self, name: str, then: Then) -> None:
        self.delete_many([name], then)

    def delete_many(self, names: Sequence[str], then: Then) -> None:
        request = DeleteTopicsRequest(topics=[DeleteTopicState(name=name) for name in names], timeout_ms=5_000)
        self.request(DELETE_TOPICS, request, then)

    def add_partitions(self, name: str, count: int, then: Then) -> None:
        topic = CreatePartitionsTopic(name=name, count=count, assignments=None)
        self.request(CREATE_PARTITIONS, CreatePartitionsRequest(topics=[topic], timeout_ms=5_000), then)

    def reassign(self, name: str, index: int, replicas: list[BrokerId] | None, then: Then) -> None:
        """Move it to these replicas, or, without any, stop moving it."""
        self._reassign(name, [ReassignablePartition(partition_index=index, replicas=replicas)], then)

    def reassign_all(self, name: str, replicas: Sequence[list[BrokerId] | None], then: Then) -> None:
        """Each of its partitions."""
        partitions = [ReassignablePartition(partition_index=index, replicas=its) for index, its in enumerate(replicas)]
        self._reassign(name, partitions, then)

    def _reassign(self, name: str, partitions: list[ReassignablePartition], then: Then) -> None:
        topic = ReassignableTopic(name=name, partitions=partitions)
        self.request(ALTER_PARTITION_REASSIGNMENTS, AlterPartitionReassignmentsRequest(topics=[topic]), then)

    def elect_preferred(self, name: str, indexes: list[int], then: Then) -> None:
        self._elect(PREFERRED, name, indexes, then)

    def elect_preferred_everywhere(self, then: Then) -> None:
        request = ElectLeadersRequest(election_type=PREFERRED, topic_partitions=None, timeout_ms=5_000)
        self.request(ELECT_LEADERS, request, then)

    def elect_unclean(self, name: str, indexes: list[int], then: Then) -> None:
        """Where nobody leads, and nobody may who has everything."""
        self._elect(UNCLEAN, name, indexes, then)

    def _elect(self, kind: int, name: str, indexes: list[int], then: Then) -> None:
        partitions = [TopicPartitions(topic=name, partitions=indexes)]
        request = ElectLeadersRequest(election_type=kind, topic_partitions=partitions, timeout_ms=5_000)
        self.request(ELECT_LEADERS, request, then)

    def configure(self, name: str, key: str, value: str, then: Then) -> None:
        self._configure(TOPIC_RESOURCE, name, key, value, then)

    def configure_brokers(self, key: str, value: str, then: Then) -> None:
        """For all of them, and so for every topic that does not say otherwise."""
        self._configure(BROKER_RESOURCE, "", key, value, then)

    def _configure(self, kind: int, name: str, key: str, value: str, then: Then) -> None:
        config = AlterableConfig(name=key, config_operation=SET, value=value)
        resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=[config])
        self.request(INCREMENTAL_ALTER_CONFIGS, IncrementalAlterConfigsRequest(resources=[resource]), then)

    def delete_records(self, name: str, index: int, offset: Offset, then: Then) -> None:
        """Only the leader can do that; if nobody knows who leads, nothing happens."""
        leader = self.leader_of(name, index)
        if leader not in self.brokers:
            then(None)
            return
        partition = DeleteRecordsPartition(partition_index=index, offset=offset)
        topic = DeleteRecordsTopic(name=name, partitions=[partition])
        request = DeleteRecordsRequest(topics=[topic], timeout_ms=3_000)
        self.ask(leader, DELETE_RECORDS, API_BY_KEY[DELETE_RECORDS].max_version, request, then, ADMIN_MS)

    def request(self, api: int, request: object, then: Then) -> None:
        """Ask any broker, in the newest version."""
        self.ask(self.any_broker(), api, API_BY_KEY[api].max_version, request, then, ADMIN_MS)
