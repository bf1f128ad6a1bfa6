"""One listener answers for brokers and for controllers: `--bootstrap-server` and `--bootstrap-controller` both work."""

import pytest

from klamm.errors import ErrorCode
from klamm.wire.messages.describe_cluster import DescribeClusterRequest
from tests.harness.node import Node
from tests.harness.raw import Raw


@pytest.mark.parametrize("endpoint_type", [1, 2])
def test_the_node_is_broker_and_controller(node: Node, endpoint_type: int) -> None:
    with Raw(node.port) as raw:
        told = raw.call("DescribeCluster", 2, DescribeClusterRequest(endpoint_type=endpoint_type))
    assert (told.error_code, told.endpoint_type, told.controller_id) == (0, endpoint_type, 0)
    assert [(each.broker_id, each.host) for each in told.brokers] == [(0, "127.0.0.1")]


def test_there_is_no_third_kind(node: Node) -> None:
    with Raw(node.port) as raw:
        told = raw.call("DescribeCluster", 2, DescribeClusterRequest(endpoint_type=3))
    assert told.error_code == ErrorCode.UNSUPPORTED_ENDPOINT_TYPE and "type 2" in told.error_message
