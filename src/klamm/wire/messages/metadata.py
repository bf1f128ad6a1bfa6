"""Metadata (key 3): which brokers there are, and who leads which partition.

Derived from Kafka's schemas by tools/derive_messages.py; not edited by hand.
"""

from klamm.codec.schema import array, boolean, int16, int32, message, string, struct, uuid


@struct
class MetadataRequestTopic:
    topic_id: bytes = uuid(versions="10+")
    name: str | None = string(nullable="10+")


@message(versions="0-13", flexible="9+")
class MetadataRequest:
    topics: list[MetadataRequestTopic] | None = array(MetadataRequestTopic, nullable="1+")
    allow_auto_topic_creation: bool = boolean(versions="4+", default=True)
    include_cluster_authorized_operations: bool = boolean(versions="8-10")
    include_topic_authorized_operations: bool = boolean(versions="8+")


@struct
class MetadataResponseBroker:
    node_id: int = int32()
    host: str = string()
    port: int = int32()
    rack: str | None = string(versions="1+", nullable="1+", default=None)


@struct
class MetadataResponsePartition:
    error_code: int = int16()
    partition_index: int = int32()
    leader_id: int = int32()
    leader_epoch: int = int32(versions="7+", default=-1)
    replica_nodes: list[int] = array(int32())
    isr_nodes: list[int] = array(int32())
    offline_replicas: list[int] = array(int32(), versions="5+")


@struct
class MetadataResponseTopic:
    error_code: int = int16()
    name: str | None = string(nullable="12+")
    topic_id: bytes = uuid(versions="10+")
    is_internal: bool = boolean(versions="1+")
    partitions: list[MetadataResponsePartition] = array(MetadataResponsePartition)
    topic_authorized_operations: int = int32(versions="8+", default=-2147483648)


@message(versions="0-13", flexible="9+")
class MetadataResponse:
    throttle_time_ms: int = int32(versions="3+")
    brokers: list[MetadataResponseBroker] = array(MetadataResponseBroker)
    cluster_id: str | None = string(versions="2+", nullable="2+", default=None)
    controller_id: int = int32(versions="1+", default=-1)
    topics: list[MetadataResponseTopic] = array(MetadataResponseTopic)
    cluster_authorized_operations: int = int32(versions="8-10", default=-2147483648)
    error_code: int = int16(versions="13+")
