"""DescribeCluster (key 60): the cluster's id and its brokers or controllers.

Derived from Kafka's schemas by tools/derive_messages.py; not edited by hand.
"""

from klamm.codec.schema import array, boolean, int8, int16, int32, message, string, struct


@message(versions="0-2", flexible="0+")
class DescribeClusterRequest:
    include_cluster_authorized_operations: bool = boolean()
    endpoint_type: int = int8(versions="1+", default=1)
    include_fenced_brokers: bool = boolean(versions="2+")


@struct
class DescribeClusterBroker:
    broker_id: int = int32()
    host: str = string()
    port: int = int32()
    rack: str | None = string(nullable="0+", default=None)
    is_fenced: bool = boolean(versions="2+")


@message(versions="0-2", flexible="0+")
class DescribeClusterResponse:
    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    endpoint_type: int = int8(versions="1+", default=1)
    cluster_id: str = string()
    controller_id: int = int32(default=-1)
    brokers: list[DescribeClusterBroker] = array(DescribeClusterBroker)
    cluster_authorized_operations: int = int32(default=-2147483648)
