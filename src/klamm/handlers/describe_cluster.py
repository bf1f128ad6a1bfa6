"""DescribeCluster (0-2): the cluster's id and its brokers.

Left out: the controllers' own endpoints (endpoint type 2), which no client of a broker's listener needs.
"""

from klamm.broker.answer import Answer, Reply
from klamm.broker.call import Call
from klamm.errors import ErrorCode
from klamm.handlers.operations import ON_CLUSTER
from klamm.wire.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

BROKERS = 1


def handle(request: DescribeClusterRequest, call: Call) -> Answer:
    broker = call.broker
    if request.endpoint_type != BROKERS:
        return Reply(
            DescribeClusterResponse(
                error_code=ErrorCode.MISMATCHED_ENDPOINT_TYPE,
                error_message="this listener describes brokers; ask for endpoint type 1",
                endpoint_type=BROKERS,
            )
        )
    response = DescribeClusterResponse(
        endpoint_type=BROKERS,
        cluster_id=broker.cluster_id,
        controller_id=broker.controller_id(),
        brokers=[
            DescribeClusterBroker(
                broker_id=each.broker_id,
                host=endpoint.host,
                port=endpoint.port,
                rack=each.rack,
                is_fenced=each.fenced,
            )
            for each, endpoint in broker.known_brokers(include_fenced=request.include_fenced_brokers)
        ],
    )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = ON_CLUSTER
    return Reply(response)
