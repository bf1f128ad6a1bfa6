"""Groups are asked about until somebody is in charge of them, and no longer than was promised."""

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from klamm.cli import main
from klamm.cli.group_asking import FIND_COORDINATOR, LATEST, LIST_OFFSETS, Cluster, Refused, name_of
from klamm.cli.group_seen import (
    CONSUMER_GROUP_DESCRIBE,
    DESCRIBE_GROUPS,
    OFFSET_FETCH,
    committed_offsets,
    groups_seen,
    owned_partitions,
)
from klamm.cli.group_views import LIST_GROUPS
from klamm.controller.names import CONSUMER_OFFSETS
from klamm.errors import ErrorCode
from klamm.ids import TopicPartition
from klamm.local.asking import METADATA, Address, NoAnswer
from klamm.wire.messages import consumer_group_describe, describe_groups
from klamm.wire.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from klamm.wire.messages.list_groups import ListedGroup, ListGroupsResponse
from klamm.wire.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from klamm.wire.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from klamm.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from tests.cli.fake_broker import FakeBroker

NOBODY = Address("127.0.0.1", 1)
MOVING = [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR]


@pytest.fixture
def broker() -> Iterator[FakeBroker]:
    with FakeBroker() as started:
        yield started


def one_after_the_other(*answers: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Each once, the last one for ever."""
    left = list(answers)
    return lambda request: (left.pop(0) if len(left) > 1 else left[0])(request)


def brokers(address: Address) -> Callable[[MetadataRequest], MetadataResponse]:
    return lambda request: MetadataResponse(brokers=[MetadataResponseBroker(7, *address)])


def coordinator(address: Address, code: int = 0) -> Callable[[FindCoordinatorRequest], FindCoordinatorResponse]:
    return lambda request: FindCoordinatorResponse(
        coordinators=[Coordinator(key, 7, *address, error_code=code) for key in request.coordinator_keys]
    )


def offsets(code: int, committed: int = 0) -> Callable[[OffsetFetchRequest], OffsetFetchResponse]:
    partition = OffsetFetchResponsePartitions(0, committed, metadata="")
    topics = [] if code else [OffsetFetchResponseTopics("t", partitions=[partition])]
    return lambda request: OffsetFetchResponse(
        groups=[OffsetFetchResponseGroup(each.group_id, topics, code) for each in request.groups]
    )


@pytest.mark.parametrize("code", MOVING)
def test_a_coordinator_that_is_not_ready_is_asked_again(broker: FakeBroker, code: int) -> None:
    broker.answers = {
        METADATA: brokers(broker.address),
        FIND_COORDINATOR: coordinator(broker.address),
        OFFSET_FETCH: one_after_the_other(offsets(code), offsets(code), offsets(0, 42)),
    }
    assert committed_offsets(Cluster([broker.address]), ["g", "h"]) == {
        "g": {TopicPartition("t", 0): 42},
        "h": {TopicPartition("t", 0): 42},
    }
    assert broker.asked.count(OFFSET_FETCH) == 3
    assert broker.asked.count(FIND_COORDINATOR) == 3, "each time it was found anew: it may be another by now"


def test_a_group_has_no_coordinator_until_it_has_one(broker: FakeBroker) -> None:
    broker.answers = {
        METADATA: brokers(broker.address),
        FIND_COORDINATOR: one_after_the_other(
            coordinator(Address("", -1), ErrorCode.COORDINATOR_NOT_AVAILABLE), coordinator(broker.address)
        ),
        OFFSET_FETCH: offsets(0, 1),
    }
    assert committed_offsets(Cluster([broker.address]), ["g"])["g"] == {TopicPartition("t", 0): 1}


def test_a_coordinator_that_dies_in_the_middle_is_looked_for_again(broker: FakeBroker) -> None:
    broker.answers = {
        METADATA: brokers(broker.address),
        FIND_COORDINATOR: one_after_the_other(coordinator(NOBODY), coordinator(broker.address)),
        OFFSET_FETCH: one_after_the_other(lambda request: None, offsets(0, 5)),
    }
    assert committed_offsets(Cluster([broker.address]), ["g"])["g"] == {TopicPartition("t", 0): 5}


@pytest.mark.parametrize("code", MOVING)
def test_patience_ends(broker: FakeBroker, code: int) -> None:
    broker.answers = {
        METADATA: brokers(broker.address),
        FIND_COORDINATOR: coordinator(broker.address),
        OFFSET_FETCH: offsets(code),
    }
    before = time.monotonic()
    with pytest.raises(Refused, match=f"group 'g' has no coordinator that answers.*{ErrorCode(code).name}"):
        committed_offsets(Cluster([broker.address], patience_seconds=0.2), ["g"])
    assert 0.2 <= time.monotonic() - before < 60


def test_what_will_not_get_better_is_said_at_once(broker: FakeBroker) -> None:
    broker.answers = {
        METADATA: brokers(broker.address),
        FIND_COORDINATOR: coordinator(broker.address),
        OFFSET_FETCH: offsets(30),
    }
    with pytest.raises(Refused, match="group 'g': GROUP_AUTHORIZATION_FAILED"):
        committed_offsets(Cluster([broker.address]), ["g"])
    assert broker.asked == [METADATA, FIND_COORDINATOR, OFFSET_FETCH]


def test_brokers_that_were_told_of_stand_in_for_those_we_began_with(broker: FakeBroker) -> None:
    """Whoever was asked first may be gone a moment later."""
    with FakeBroker() as first:
        first.answers = {METADATA: brokers(broker.address)}
        cluster = Cluster([first.address])
        assert cluster.brokers() == {7: broker.address}
        gone = first.address
    with pytest.raises(NoAnswer):
        Cluster([gone]).brokers()
    broker.answers = {
        METADATA: brokers(broker.address),
        FIND_COORDINATOR: coordinator(broker.address),
        OFFSET_FETCH: offsets(0, 3),
    }
    assert committed_offsets(cluster, ["g"])["g"] == {TopicPartition("t", 0): 3}


@pytest.mark.parametrize("words", [("list",), ("describe", "--all")])
def test_the_groups_of_a_broker_that_does_not_answer_are_said_to_be_missing(
    broker: FakeBroker, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    told = [MetadataResponseBroker(7, *broker.address), MetadataResponseBroker(8, *NOBODY)]
    described = consumer_group_describe.DescribedGroup(0, None, "g", "Empty")
    broker.answers = {
        METADATA: lambda request: MetadataResponse(brokers=told, topics=offsets_topic(7, 8)),
        LIST_GROUPS: one_after_the_other(
            lambda request: ListGroupsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
            lambda request: ListGroupsResponse(groups=[ListedGroup("g", "consumer", "Empty", "Consumer")]),
        ),
        CONSUMER_GROUP_DESCRIBE: lambda request: consumer_group_describe.ConsumerGroupDescribeResponse(
            groups=[described]
        ),
        FIND_COORDINATOR: coordinator(broker.address),
        OFFSET_FETCH: lambda request: OffsetFetchResponse(groups=[OffsetFetchResponseGroup("g", [])]),
    }
    assert main(["group", *words, "--bootstrap", str(broker.address)]) == 1
    printed = capsys.readouterr()
    assert "the groups of broker 8 are missing: 127.0.0.1:1" in printed.err
    assert printed.out.splitlines()[-1].split()[:2] in (["g", "consumer"], ["group", "g:"])


def offsets_topic(*leaders: int) -> list[MetadataResponseTopic]:
    partitions = [MetadataResponsePartition(0, index, leader_id=leader) for index, leader in enumerate(leaders)]
    return [MetadataResponseTopic(name=CONSUMER_OFFSETS, partitions=partitions)]


@pytest.mark.parametrize(
    ("leaders", "code", "said"), [((7, 7), 0, ""), ((7, -1), 1, "not every partition of __consumer_offsets")]
)
def test_a_broker_that_coordinates_nothing_is_not_missed(
    broker: FakeBroker, capsys: pytest.CaptureFixture[str], leaders: tuple[int, ...], code: int, said: str
) -> None:
    """The list was complete, and said that it was not."""
    told = [MetadataResponseBroker(7, *broker.address), MetadataResponseBroker(8, *NOBODY)]
    broker.answers = {
        METADATA: lambda request: MetadataResponse(brokers=told, topics=offsets_topic(*leaders)),
        LIST_GROUPS: lambda request: ListGroupsResponse(groups=[ListedGroup("g", "share", "Empty", "Share")]),
    }
    assert main(["group", "list", "--bootstrap", str(broker.address)]) == code
    printed = capsys.readouterr()
    assert said in printed.err and "broker 8" not in printed.err
    assert printed.out.splitlines()[-1].split()[0] == "g"


def test_a_leader_that_has_moved_is_looked_for_again_and_a_missing_one_is_left_out(broker: FakeBroker) -> None:
    def metadata(request: Any) -> MetadataResponse:
        partitions = [MetadataResponsePartition(0, 0, leader_id=7), MetadataResponsePartition(0, 1, leader_id=7)]
        topics = [MetadataResponseTopic(name=each.name, partitions=partitions) for each in request.topics]
        return MetadataResponse(brokers=[MetadataResponseBroker(7, *broker.address)], topics=topics)

    def ends(first_code: int) -> Callable[[Any], ListOffsetsResponse]:
        return lambda request: ListOffsetsResponse(
            topics=[
                ListOffsetsTopicResponse(
                    topic.name,
                    [
                        ListOffsetsPartitionResponse(each.partition_index, first_code, offset=-1 if first_code else 9)
                        for each in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    broker.answers = {
        METADATA: metadata,
        LIST_OFFSETS: one_after_the_other(ends(ErrorCode.NOT_LEADER_OR_FOLLOWER), ends(0)),
    }
    wanted = [TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("t", 2)]
    assert Cluster([broker.address]).offsets_at(wanted, LATEST) == {wanted[0]: 9, wanted[1]: 9}


def test_a_group_of_either_kind_is_found_and_one_of_neither_is_not(broker: FakeBroker) -> None:
    not_found = int(ErrorCode.GROUP_ID_NOT_FOUND)

    def consumer(request: Any) -> consumer_group_describe.ConsumerGroupDescribeResponse:
        return consumer_group_describe.ConsumerGroupDescribeResponse(
            groups=[
                consumer_group_describe.DescribedGroup(0 if name == "new" else not_found, None, name, "Stable")
                for name in request.group_ids
            ]
        )

    def classic(request: Any) -> describe_groups.DescribeGroupsResponse:
        codes = {"old": (0, "Empty"), "dead": (0, "Dead"), "none": (not_found, "Dead")}
        return describe_groups.DescribeGroupsResponse(
            groups=[
                describe_groups.DescribedGroup(codes[name][0], None, name, codes[name][1]) for name in request.groups
            ]
        )

    broker.answers = {
        METADATA: brokers(broker.address),
        FIND_COORDINATOR: coordinator(broker.address),
        CONSUMER_GROUP_DESCRIBE: consumer,
        DESCRIBE_GROUPS: classic,
    }
    seen = groups_seen(Cluster([broker.address]), ["none", "old", "new", "dead"])
    assert [(name, each and each.kind) for name, each in seen.items()] == [
        ("none", None),
        ("old", "classic"),
        ("new", "consumer"),
        ("dead", None),
    ]


def test_what_a_classic_member_owns_is_read_from_its_bytes() -> None:
    """Version 1, two topics, no user data: bytes written down by hand."""
    data = bytes.fromhex(
        "0001 00000002 0003 616263 00000002 00000005 00000001 0001 7a 00000001 00000000 ffffffff".replace(" ", "")
    )
    assert owned_partitions(data) == (TopicPartition("abc", 1), TopicPartition("abc", 5), TopicPartition("z", 0))
    assert owned_partitions(b"") == ()


@pytest.mark.parametrize(
    "data", ["0001", "0001 7fffffff", "0001 00000001 8000", "0001 00000001 0001 7a 7fffffff 00000001"]
)
def test_bytes_that_are_no_assignment_are_nothing_owned(data: str) -> None:
    assert owned_partitions(bytes.fromhex(data.replace(" ", ""))) == ()


def test_only_who_takes_too_long_waits_for_a_decision(broker: FakeBroker) -> None:
    """Who closed the connection was said to have no controller."""
    broker.answers = {METADATA: brokers(broker.address), FIND_COORDINATOR: lambda _: None}
    cluster = Cluster([broker.address])
    with pytest.raises(NoAnswer, match="the connection was closed"):
        cluster.ask_once(FIND_COORDINATOR, 4, FindCoordinatorRequest(), 5.0)
    over = threading.Event()
    broker.answers = {**broker.answers, FIND_COORDINATOR: lambda _: over.wait(60) and None}
    with pytest.raises(Refused, match="is there a controller"):
        cluster.ask_once(FIND_COORDINATOR, 4, FindCoordinatorRequest(), 0.2)
    over.set()


def test_codes_have_names_and_codes_to_come_have_numbers() -> None:
    assert (name_of(16), name_of(9999)) == ("NOT_COORDINATOR", "error 9999")
