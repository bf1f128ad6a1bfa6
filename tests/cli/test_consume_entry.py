"""What `klamm consume --group` says while a group has not let it in: what is really waited for."""

from collections.abc import Iterator
from typing import Any

import pytest

from klamm.cli.consume_entry import entry_obstacle
from klamm.cli.group_asking import FIND_COORDINATOR, Cluster
from klamm.cli.group_seen import CONSUMER_GROUP_DESCRIBE, DESCRIBE_GROUPS
from klamm.errors import ErrorCode
from klamm.local.asking import METADATA, Address
from klamm.wire.messages import consumer_group_describe, describe_groups
from klamm.wire.messages.find_coordinator import Coordinator, FindCoordinatorResponse
from klamm.wire.messages.metadata import MetadataResponse, MetadataResponseBroker
from tests.cli.fake_broker import FakeBroker


@pytest.fixture
def broker() -> Iterator[FakeBroker]:
    with FakeBroker() as broker:
        broker.answers = {
            METADATA: lambda request: MetadataResponse(brokers=[MetadataResponseBroker(7, *broker.address)]),
            FIND_COORDINATOR: lambda request: found(broker, 0),
            CONSUMER_GROUP_DESCRIBE: lambda request: consumer_group_describe.ConsumerGroupDescribeResponse(
                groups=[consumer_group_describe.DescribedGroup(ErrorCode.GROUP_ID_NOT_FOUND, None, "g")]
            ),
        }
        yield broker


def found(broker: FakeBroker, code: int) -> FindCoordinatorResponse:
    return FindCoordinatorResponse(
        coordinators=[Coordinator(key="g", node_id=7, host="127.0.0.1", port=broker.address.port, error_code=code)]
    )


def classic(code: int, *members: str) -> Any:
    told = [describe_groups.DescribedGroupMember(member_id=each) for each in members]
    group = describe_groups.DescribedGroup(
        error_code=code, group_id="g", group_state="PreparingRebalance", protocol_type="consumer", members=told
    )
    return lambda request: describe_groups.DescribeGroupsResponse(groups=[group])


def said(broker: FakeBroker, own_id: str = "") -> str:
    return entry_obstacle(Cluster([broker.address], patience_seconds=0.0), "g", own_id)


def test_a_group_without_a_coordinator(broker: FakeBroker) -> None:
    broker.answers = {
        **broker.answers,
        FIND_COORDINATOR: lambda request: found(broker, ErrorCode.COORDINATOR_NOT_AVAILABLE),
    }
    assert said(broker) == "no broker coordinates it yet (COORDINATOR_NOT_AVAILABLE)"


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (classic(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS), "is still reading its log"),
        (classic(ErrorCode.GROUP_ID_NOT_FOUND), "has no other members of it"),
        (classic(0, "me"), "has no other members of it"),
        (classic(0, "me", "them"), "waits for 1 other member; one that left without a goodbye counts"),
    ],
)
def test_what_a_coordinator_says(broker: FakeBroker, answer: Any, words: str) -> None:
    broker.answers = {**broker.answers, DESCRIBE_GROUPS: answer}
    assert said(broker, "me").startswith(f"its coordinator, broker 7 ({broker.address}), {words}")


def test_nobody_answers() -> None:
    assert entry_obstacle(Cluster([Address("127.0.0.1", 1)]), "g", "").startswith("no broker answers: ")
