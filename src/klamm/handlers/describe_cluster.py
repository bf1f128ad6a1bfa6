"""DescribeCluster (0-2): the cluster's id and its brokers, or its controllers for whoever calls them by name.

Kafka has a listener for each and refuses the other's question. Ours is one for both.
"""

from klamm.broker.answer import Answer, Reply
from klamm.broker.broker import Broker
from klamm.broker.call import Call
from klamm.errors import ErrorCode
from klamm.handlers.operations import ON_CLUSTER
from klamm.wire.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

BROKERS, CONTROLLERS = 1, 2


def handle(request: DescribeClusterRequest, call: Call) -> Answer:
    broker = call.broker
    if request.endpoint_type not in (BROKERS, CONTROLLERS):
        return Reply(
            DescribeClusterResponse(
                error_code=ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
                error_message="endpoints are those of brokers (type 1) and of controllers (type 2)",
                endpoint_type=BROKERS,
            )
        )
    response = DescribeClusterResponse(endpoint_type=request.endpoint_type, cluster_id=broker.cluster_id)
    if request.endpoint_type == BROKERS:
        response.controller_id = broker.controller_id()
        response.brokers = _brokers(broker, include_fenced=request.include_fenced_brokers)
    else:
        # These clients send what only the active controller can do to it and to nobody else.
        response.controller_id = broker.quorum.leader_id
        response.brokers = _controllers(broker)
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = ON_CLUSTER
    return Reply(response)


def _brokers(broker: Broker, *, include_fenced: bool) -> list[DescribeClusterBroker]:
    return [
        DescribeClusterBroker(
            broker_id=each.broker_id,
            host=endpoint.host,
            port=endpoint.port,
            rack=each.rack,
            is_fenced=each.fenced,
        )
        for each, endpoint in broker.known_brokers(include_fenced=include_fenced)
    ]


def _controllers(broker: Broker) -> list[DescribeClusterBroker]:
    return [
        DescribeClusterBroker(broker_id=node_id, host=address.host, port=address.port)
        for node_id in broker.quorum.voters
        if (address := broker.quorum.address_of(node_id))
    ]
