"""Requests cut into parts, and their responses joined: nothing is lost, nothing comes twice, the order stays."""

from itertools import groupby
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from klamm.wire.messages.describe_groups import DescribeGroupsRequest
from klamm.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
    ListOffsetsTopicResponse,
)
from klamm.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from klamm.wire.parts import joined, parts

asked = st.lists(st.tuples(st.sampled_from("abc"), st.lists(st.integers(0, 50), min_size=1, max_size=30)), max_size=20)


def request_of(wanted: list[tuple[str, list[int]]]) -> ListOffsetsRequest:
    return ListOffsetsRequest(
        isolation_level=1,
        topics=[
            ListOffsetsTopic(name=name, partitions=[ListOffsetsPartition(partition_index=each) for each in indexes])
            for name, indexes in wanted
        ],
    )


def places(request: Any) -> list[tuple[str, int]]:
    return [(topic.name, each.partition_index) for topic in request.topics for each in topic.partitions]


@given(asked, st.integers(1, 40))
def test_the_parts_ask_for_what_the_whole_asks_for(wanted: list[tuple[str, list[int]]], most: int) -> None:
    request = request_of(wanted)
    found = list(parts(request, most))
    assert [place for part in found for place in places(part)] == places(request)
    assert all(part.isolation_level == 1 for part in found)
    assert all(len(places(part)) <= most for part in found)


@given(asked, st.integers(1, 40))
def test_the_answers_of_the_parts_are_the_answer_of_the_whole(wanted: list[tuple[str, list[int]]], most: int) -> None:
    def answer(request: ListOffsetsRequest) -> ListOffsetsResponse:
        return ListOffsetsResponse(
            throttle_time_ms=3,
            topics=[
                ListOffsetsTopicResponse(
                    name=topic.name,
                    partitions=[
                        ListOffsetsPartitionResponse(partition_index=each.partition_index, offset=each.partition_index)
                        for each in topic.partitions
                    ],
                )
                for topic in request.topics
            ],
        )

    # What belongs to one topic may stand in one place: two topics of one name, one behind the other, become one.
    together = [(name, [i for _, indexes in some for i in indexes]) for name, some in groupby(wanted, lambda e: e[0])]
    whole = answer(request_of(together))
    pieces = joined([answer(part) for part in parts(request_of(together), most)])
    assert pieces == whole


@given(st.lists(st.sampled_from([f"g{number}" for number in range(30)])), st.integers(1, 10))
def test_who_is_asked_for_twice_is_asked_once(groups: list[str], most: int) -> None:
    found = [part for part in parts(DescribeGroupsRequest(groups=groups), most, distinct=True) if part is not None]
    assert [group for part in found for group in part.groups] == list(dict.fromkeys(groups))


def test_the_same_name_without_end_is_looked_at_in_pieces() -> None:
    request = MetadataRequest(topics=[MetadataRequestTopic(name="a") for _ in range(1_000)])
    first, *rest = parts(request, 100, distinct=True)
    assert first.topics == [MetadataRequestTopic(name="a")]
    assert rest == [None] * 8


def test_what_names_nothing_is_one_part() -> None:
    assert list(parts(MetadataRequest(topics=None), 10)) == [MetadataRequest(topics=None)]
    assert list(parts(MetadataRequest(topics=[]), 10)) == [MetadataRequest(topics=[])]
