"""The messages inside JoinGroup and SyncGroup, against the encoders of clients that send them."""

import struct
from collections.abc import Mapping
from contextlib import suppress

import pytest
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment, ConsumerProtocolMemberMetadata
from hypothesis import given
from hypothesis import strategies as st
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription

from klamm.codec.primitives import Malformed
from klamm.coordinator.groups.subscription import (
    GivenPartitions,
    Subscription,
    assignment_bytes,
    read_assignment,
    read_subscription,
    subscription_bytes,
)

VERSIONS = range(4)
names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=20)
numbers = st.integers(0, 2**31 - 1)
partitions = st.dictionaries(names, st.frozensets(numbers, max_size=5), max_size=4)
user_datas = st.none() | st.binary(max_size=20)
subscriptions = st.builds(
    Subscription,
    topics=st.frozensets(names, max_size=5),
    user_data=user_datas,
    owned=partitions,
    generation_id=st.integers(-1, 2**31 - 1),
    rack=st.none() | names,
    version=st.sampled_from(VERSIONS),
)


def known_to_its_version(subscription: Subscription) -> Subscription:
    """What remains of a subscription after a journey in its version."""
    version = subscription.version
    return Subscription(
        subscription.topics,
        subscription.user_data,
        subscription.owned if version >= 1 else {},
        subscription.generation_id if version >= 2 else -1,
        subscription.rack if version >= 3 else None,
        version,
    )


def listed(cls: type, partitions: Mapping[str, frozenset[int]]) -> list[object]:
    return [cls.TopicPartition(topic=t, partitions=sorted(p)) for t, p in sorted(partitions.items())]  # type: ignore


def kafka_python_bytes(subscription: Subscription) -> bytes:
    return ConsumerProtocolSubscription(
        version=subscription.version,
        topics=sorted(subscription.topics),
        user_data=subscription.user_data,
        owned_partitions=listed(ConsumerProtocolSubscription, subscription.owned),
        generation_id=subscription.generation_id,
        rack_id=subscription.rack,
    ).encode()


@given(subscriptions)
def test_a_subscription_is_what_kafka_python_sends(subscription: Subscription) -> None:
    data = kafka_python_bytes(subscription)
    assert subscription_bytes(subscription) == data
    assert read_subscription(data) == known_to_its_version(subscription)


@given(partitions, user_datas, st.sampled_from(VERSIONS))
def test_an_assignment_is_what_kafka_python_sends(
    given_partitions: dict[str, frozenset[int]], user_data: bytes | None, version: int
) -> None:
    data = ConsumerProtocolAssignment(
        version=version,
        assigned_partitions=listed(ConsumerProtocolAssignment, given_partitions),
        user_data=user_data,
    ).encode()
    assert assignment_bytes(given_partitions, user_data, version) == data
    assert read_assignment(data) == GivenPartitions(given_partitions, user_data, version)
    assert read_assignment(memoryview(data)) == GivenPartitions(given_partitions, user_data, version)


def test_aiokafka_sends_version_0() -> None:
    subscription = ConsumerProtocolMemberMetadata(0, ["orders", "clicks"], b"what only members know").encode()
    assert read_subscription(subscription) == Subscription(
        frozenset({"orders", "clicks"}), b"what only members know", version=0
    )
    assignment = ConsumerProtocolMemberAssignment(0, [("orders", [3, 1]), ("clicks", [0])], b"").encode()
    expected = GivenPartitions({"orders": frozenset({1, 3}), "clicks": frozenset({0})}, b"", version=0)
    assert read_assignment(assignment) == expected


def test_aiokafka_reads_what_we_write() -> None:
    found = ConsumerProtocolMemberAssignment.decode(assignment_bytes({"orders": [1, 0]}, b"x", version=0))
    assert (found.version, found.assignment, found.user_data) == (0, [("orders", [0, 1])], b"x")


@pytest.mark.parametrize("version", [4, 17, 32_767])
def test_a_newer_version_is_read_as_the_newest_known(version: int) -> None:
    """Kafka promises that versions only add fields at the end."""
    subscription = Subscription(frozenset({"orders"}), None, {"orders": frozenset({2})}, 5, "rack-1")
    data = struct.pack(">h", version) + kafka_python_bytes(subscription)[2:] + b"a field of tomorrow"
    assert read_subscription(data) == subscription
    data = struct.pack(">h", version) + assignment_bytes({"orders": [2]})[2:] + b"another"
    assert read_assignment(data) == GivenPartitions({"orders": frozenset({2})})


def test_an_empty_rack_is_none() -> None:
    assert read_subscription(subscription_bytes(Subscription(rack=""))).rack is None


def test_a_topic_named_twice_counts_once() -> None:
    data = ConsumerProtocolMemberAssignment(0, [("orders", [0, 1]), ("orders", [1, 2])], b"").encode()
    assert read_assignment(data).partitions == {"orders": frozenset({0, 1, 2})}


@given(subscriptions, partitions)
def test_cut_short_is_malformed(subscription: Subscription, given_partitions: dict[str, frozenset[int]]) -> None:
    data = subscription_bytes(subscription)
    for length in range(len(data)):
        with pytest.raises(Malformed):
            read_subscription(data[:length])
    data = assignment_bytes(given_partitions)
    for length in range(len(data)):
        with pytest.raises(Malformed):
            read_assignment(memoryview(data)[:length])


@given(subscriptions, st.data())
def test_damage_is_malformed_or_something_else_but_never_a_surprise(
    subscription: Subscription, drawing: st.DataObject
) -> None:
    data = bytearray(subscription_bytes(subscription))
    for _ in range(3):
        data[drawing.draw(st.integers(0, len(data) - 1))] = drawing.draw(st.integers(0, 255))
    for read in (read_subscription, read_assignment):
        with suppress(Malformed):
            read(bytes(data))


@given(st.binary(max_size=60))
def test_any_bytes_are_malformed_or_something(data: bytes) -> None:
    for read in (read_subscription, read_assignment):
        with suppress(Malformed):
            read(data)


@pytest.mark.parametrize("version", [-1, -32_768])
def test_a_negative_version_is_malformed(version: int) -> None:
    data = struct.pack(">h", version) + subscription_bytes(Subscription())[2:]
    with pytest.raises(Malformed, match=str(version)):
        read_subscription(data)
