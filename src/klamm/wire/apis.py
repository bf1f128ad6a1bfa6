"""The table of Kafka's APIs: key, versions, and from which version on an API's messages are flexible.

It is data only. A message module is imported when its API is first used, so that a node starts without the ninety
files of which it needs a few.
"""

import re
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

BROKER, CONTROLLER, BOTH = "broker", "controller", "both"
NEVER_FLEXIBLE = 32_767

PRODUCE, FETCH, LIST_OFFSETS, METADATA, FIND_COORDINATOR, API_VERSIONS, INIT_PRODUCER_ID = 0, 1, 2, 3, 10, 18, 22
OFFSET_COMMIT, OFFSET_FETCH, HEARTBEAT = 8, 9, 12
DELETE_TOPICS, DELETE_RECORDS, CREATE_PARTITIONS, ELECT_LEADERS, INCREMENTAL_ALTER_CONFIGS = 20, 21, 37, 43, 44
ALTER_PARTITION_REASSIGNMENTS = 45
OFFSET_FOR_LEADER_EPOCH = 23
LEAVE_GROUP, DESCRIBE_GROUPS, DELETE_GROUPS, OFFSET_DELETE, CONSUMER_GROUP_DESCRIBE = 13, 15, 42, 47, 69
DESCRIBE_CONFIGS, DESCRIBE_LOG_DIRS = 32, 35
CREATE_TOPICS, VOTE, BEGIN_QUORUM_EPOCH, END_QUORUM_EPOCH, DESCRIBE_QUORUM, ALTER_PARTITION = 19, 52, 53, 54, 55, 56
ENVELOPE, FETCH_SNAPSHOT, BROKER_REGISTRATION, BROKER_HEARTBEAT, ALLOCATE_PRODUCER_IDS = 58, 59, 62, 63, 67
ADD_RAFT_VOTER, REMOVE_RAFT_VOTER = 80, 81


class Api(NamedTuple):
    """One API. `listener` says where Kafka serves it, `advertised_min` where ApiVersions says that it begins."""

    key: int
    name: str
    module: str
    min_version: int
    max_version: int
    flexible_from: int
    advertised_min: int
    listener: str

    def serves(self, version: int) -> bool:
        return self.min_version <= version <= self.max_version


@cache
def request_type(key: int) -> type[Any]:
    return _message_type(API_BY_KEY[key], "Request")


@cache
def response_type(key: int) -> type[Any]:
    return _message_type(API_BY_KEY[key], "Response")


def _message_type(api: Api, ending: str) -> type[Any]:
    module = import_module(f"klamm.wire.messages.{api.module}")
    return getattr(module, api.name + ending)  # type: ignore[no-any-return]


def _api(key: int, name: str, first: int, last: int, flexible_from: int, listener: str) -> Api:
    module = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
    # Older librdkafka takes "Produce does not begin at 0" for "no compression" (KAFKA-18659). Kafka therefore claims
    # versions 0 to 2 and refuses them all the same, and so do we.
    advertised_min = 0 if key == PRODUCE else first
    return Api(key, name, module, first, last, flexible_from, advertised_min, listener)


# Key, name, first and last version, flexible from, listener: as in Kafka 4.3.
_ROWS = (
    (0, "Produce", 3, 13, 9, BROKER),
    (1, "Fetch", 4, 18, 12, BOTH),
    (2, "ListOffsets", 1, 11, 6, BROKER),
    (3, "Metadata", 0, 13, 9, BROKER),
    (8, "OffsetCommit", 2, 10, 8, BROKER),
    (9, "OffsetFetch", 1, 10, 6, BROKER),
    (10, "FindCoordinator", 0, 6, 3, BROKER),
    (11, "JoinGroup", 0, 9, 6, BROKER),
    (12, "Heartbeat", 0, 4, 4, BROKER),
    (13, "LeaveGroup", 0, 5, 4, BROKER),
    (14, "SyncGroup", 0, 5, 4, BROKER),
    (15, "DescribeGroups", 0, 6, 5, BROKER),
    (16, "ListGroups", 0, 5, 3, BROKER),
    (17, "SaslHandshake", 0, 1, NEVER_FLEXIBLE, BOTH),
    (18, "ApiVersions", 0, 4, 3, BOTH),
    (19, "CreateTopics", 2, 7, 5, BOTH),
    (20, "DeleteTopics", 1, 6, 4, BOTH),
    (21, "DeleteRecords", 0, 2, 2, BROKER),
    (22, "InitProducerId", 0, 5, 2, BROKER),
    (23, "OffsetForLeaderEpoch", 2, 4, 4, BROKER),
    (24, "AddPartitionsToTxn", 0, 5, 3, BROKER),
    (25, "AddOffsetsToTxn", 0, 4, 3, BROKER),
    (26, "EndTxn", 0, 5, 3, BROKER),
    (27, "WriteTxnMarkers", 1, 2, 1, BROKER),
    (28, "TxnOffsetCommit", 0, 5, 3, BROKER),
    (29, "DescribeAcls", 1, 3, 2, BOTH),
    (30, "CreateAcls", 1, 3, 2, BOTH),
    (31, "DeleteAcls", 1, 3, 2, BOTH),
    (32, "DescribeConfigs", 1, 4, 4, BOTH),
    (33, "AlterConfigs", 0, 2, 2, BOTH),
    (34, "AlterReplicaLogDirs", 1, 2, 2, BROKER),
    (35, "DescribeLogDirs", 1, 5, 2, BROKER),
    (36, "SaslAuthenticate", 0, 2, 2, BOTH),
    (37, "CreatePartitions", 0, 3, 2, BOTH),
    (38, "CreateDelegationToken", 1, 3, 2, BOTH),
    (39, "RenewDelegationToken", 1, 2, 2, BOTH),
    (40, "ExpireDelegationToken", 1, 2, 2, BOTH),
    (41, "DescribeDelegationToken", 1, 3, 2, BOTH),
    (42, "DeleteGroups", 0, 2, 2, BROKER),
    (43, "ElectLeaders", 0, 2, 2, BOTH),
    (44, "IncrementalAlterConfigs", 0, 1, 1, BOTH),
    (45, "AlterPartitionReassignments", 0, 1, 0, BOTH),
    (46, "ListPartitionReassignments", 0, 0, 0, BOTH),
    (47, "OffsetDelete", 0, 0, NEVER_FLEXIBLE, BROKER),
    (48, "DescribeClientQuotas", 0, 1, 1, BROKER),
    (49, "AlterClientQuotas", 0, 1, 1, BOTH),
    (50, "DescribeUserScramCredentials", 0, 0, 0, BOTH),
    (51, "AlterUserScramCredentials", 0, 0, 0, BOTH),
    (52, "Vote", 0, 2, 0, CONTROLLER),
    (53, "BeginQuorumEpoch", 0, 1, 1, CONTROLLER),
    (54, "EndQuorumEpoch", 0, 1, 1, CONTROLLER),
    (55, "DescribeQuorum", 0, 2, 0, BOTH),
    (56, "AlterPartition", 2, 3, 2, CONTROLLER),
    (57, "UpdateFeatures", 0, 2, 0, BOTH),
    (58, "Envelope", 0, 0, 0, CONTROLLER),
    (59, "FetchSnapshot", 0, 1, 0, CONTROLLER),
    (60, "DescribeCluster", 0, 2, 0, BOTH),
    (61, "DescribeProducers", 0, 0, 0, BROKER),
    (62, "BrokerRegistration", 0, 4, 0, CONTROLLER),
    (63, "BrokerHeartbeat", 0, 2, 0, CONTROLLER),
    (64, "UnregisterBroker", 0, 0, 0, BOTH),
    (65, "DescribeTransactions", 0, 0, 0, BROKER),
    (66, "ListTransactions", 0, 2, 0, BROKER),
    (67, "AllocateProducerIds", 0, 0, 0, CONTROLLER),
    (68, "ConsumerGroupHeartbeat", 0, 1, 0, BROKER),
    (69, "ConsumerGroupDescribe", 0, 1, 0, BROKER),
    (70, "ControllerRegistration", 0, 0, 0, CONTROLLER),
    (71, "GetTelemetrySubscriptions", 0, 0, 0, BROKER),
    (72, "PushTelemetry", 0, 0, 0, BROKER),
    (73, "AssignReplicasToDirs", 0, 0, 0, CONTROLLER),
    (74, "ListConfigResources", 0, 1, 0, BROKER),
    (75, "DescribeTopicPartitions", 0, 0, 0, BROKER),
    (76, "ShareGroupHeartbeat", 1, 1, 1, BROKER),
    (77, "ShareGroupDescribe", 1, 1, 1, BROKER),
    (78, "ShareFetch", 1, 2, 1, BROKER),
    (79, "ShareAcknowledge", 1, 2, 1, BROKER),
    (80, "AddRaftVoter", 0, 1, 0, BOTH),
    (81, "RemoveRaftVoter", 0, 0, 0, BOTH),
    (82, "UpdateRaftVoter", 0, 0, 0, CONTROLLER),
    (83, "InitializeShareGroupState", 0, 0, 0, BROKER),
    (84, "ReadShareGroupState", 0, 0, 0, BROKER),
    (85, "WriteShareGroupState", 0, 1, 0, BROKER),
    (86, "DeleteShareGroupState", 0, 0, 0, BROKER),
    (87, "ReadShareGroupStateSummary", 0, 1, 0, BROKER),
    (88, "StreamsGroupHeartbeat", 0, 0, 0, BROKER),
    (89, "StreamsGroupDescribe", 0, 0, 0, BROKER),
    (90, "DescribeShareGroupOffsets", 0, 1, 0, BROKER),
    (91, "AlterShareGroupOffsets", 0, 0, 0, BROKER),
    (92, "DeleteShareGroupOffsets", 0, 0, 0, BROKER),
)

API_BY_KEY: dict[int, Api] = {row[0]: _api(*row) for row in _ROWS}
