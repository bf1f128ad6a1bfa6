"""Traps 1 to 9, 50, 52 and 54: frames, headers, versions, and the order of answers."""

import struct

import pytest
from kafka.protocol.broker_version_data import BrokerVersionData

from klamm.codec.compiler import decode, encode
from klamm.errors import ErrorCode
from klamm.wire.apis import API_BY_KEY
from klamm.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from klamm.wire.messages.describe_topic_partitions import Cursor, DescribeTopicPartitionsRequest, TopicRequest
from klamm.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from tests.harness.fixtures import StartNode
from tests.harness.node import Node
from tests.harness.raw import Raw
from tests.harness.requests import batch_of, create, fetch_request, produce, produce_request
from tests.traps.every_version import EXAMPLES

API_VERSIONS = 18
NAMED = ApiVersionsRequest("klamm-tests", "1.0")


@pytest.mark.parametrize("version", range(5))
def test_trap_01_api_versions_answers_with_the_old_header(raw: Raw, version: int) -> None:
    """Even where the body is flexible: the client does not know yet what the broker speaks."""
    raw.send("ApiVersions", version, NAMED)
    frame = raw.receive_frame()
    assert struct.unpack_from(">i", frame) == (1,)
    body = decode(ApiVersionsResponse, version, frame[4:], exact=True)
    assert body.error_code == ErrorCode.NONE and len(body.api_keys) > 15


@pytest.mark.parametrize("version", [5, 99, 32767])
def test_trap_02_api_versions_of_an_unknown_version_is_answered_with_version_0(raw: Raw, version: int) -> None:
    """Whatever its body is; the range of ApiVersions itself is in the answer, and the client tries again."""
    raw.send_frame(struct.pack(">hhih3s", API_VERSIONS, version, 77, 3, b"new") + b"\0 a body nobody knows")
    frame = raw.receive_frame()
    assert struct.unpack_from(">i", frame) == (77,)
    body = decode(ApiVersionsResponse, 0, frame[4:], exact=True)
    assert body.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert [(key.min_version, key.max_version) for key in body.api_keys if key.api_key == API_VERSIONS] == [(0, 4)]
    assert raw.call("ApiVersions", 3, NAMED).error_code == ErrorCode.NONE, "on the same connection"


@pytest.mark.parametrize("client_id", [None, "", "a", "ünïcode"])
def test_trap_03_flexible_header_keeps_the_old_client_id(node: Node, client_id: str | None) -> None:
    """Two bytes of length, -1 for null, in the old header and the flexible one alike."""
    with Raw(node.port, client_id) as raw:
        for version in (1, 8, 9, 12):
            assert len(raw.call("Metadata", version, MetadataRequest(topics=[])).brokers) == 1


@pytest.mark.parametrize(
    ("key", "version"),
    [(999, 0), (-1, 0), (3, 14), (3, -1), (0, 2), (0, 0), (0, 14), (1, 3), (1, 19), (2, 0), (19, 1), (4, 0), (56, 2)],
)
def test_trap_04_any_other_unknown_api_or_version_closes_the_connection(raw: Raw, key: int, version: int) -> None:
    """Also Produce 0 to 2, though they are advertised; also what only a controller's listener serves."""
    raw.send_frame(struct.pack(">hhih", key, version, 1, -1) + bytes(40))
    assert raw.is_closed_by_broker()


def test_trap_05_what_librdkafka_derives_its_features_from_is_advertised(raw: Raw) -> None:
    """Produce from 0, or it does not compress; FindCoordinator from 0, or no lz4; Fetch, or it sends the oldest format.

    Telemetry is not: every new client would begin to push.
    """
    served = {key.api_key: (key.min_version, key.max_version) for key in raw.call("ApiVersions", 4, NAMED).api_keys}
    assert served[0] == (0, 13)
    assert served[1] == (4, 18)
    assert served[10] == (0, 6)
    assert served.get(11, (0, 9)) == (0, 9), "JoinGroup from 0, as soon as there are groups"
    assert 71 not in served and 72 not in served


def test_trap_06_unknown_tagged_fields_are_skipped(raw: Raw) -> None:
    """In the header, in the body, in a struct within it."""
    unknown = b"\x02\x63\x04abcd\x64\x00"  # Two tags: 99 of four bytes, 100 of none.
    header = struct.pack(">hhih3s", 3, 12, 5, 3, b"raw") + unknown
    topic = bytes(16) + b"\x08no-such" + unknown
    raw.send_frame(header + b"\x02" + topic + b"\x00\x00" + unknown)
    frame = raw.receive_frame()
    assert struct.unpack_from(">ib", frame) == (5, 0)
    body = decode(MetadataResponse, 12, frame[5:], exact=True)
    assert [(topic.name, topic.error_code) for topic in body.topics] == [("no-such", 3)]


def test_trap_06_a_nullable_struct_has_a_byte_before_it(raw: Raw, topic: str) -> None:
    """The cursor of DescribeTopicPartitions: -1 where there is none, 1 before one that is there."""
    create(raw, topic, partitions=5)
    request = DescribeTopicPartitionsRequest([TopicRequest(topic)], response_partition_limit=3)
    assert encode(request, 0)[-2] == 0xFF, "no cursor"
    first = raw.call("DescribeTopicPartitions", 0, request)
    assert [partition.partition_index for partition in first.topics[0].partitions] == [0, 1, 2]
    assert first.next_cursor == Cursor(topic, 3)
    rest = raw.call(
        "DescribeTopicPartitions", 0, DescribeTopicPartitionsRequest([TopicRequest(topic)], 3, first.next_cursor)
    )
    assert [partition.partition_index for partition in rest.topics[0].partitions] == [3, 4]
    assert rest.next_cursor is None


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_trap_07_every_version_is_read_and_answered_in_its_own_layout(node: Node, topic: str, name: str) -> None:
    """Flexible from where the schema says, not from a guess: each answer decodes to its last byte."""
    api = next(api for api in API_BY_KEY.values() if api.name == name)
    with Raw(node.port) as raw:
        create(raw, topic)
        produce(raw, topic, batch_of(b"a record"))
        for version in range(api.min_version, api.max_version + 1):
            request, is_right = EXAMPLES[name](raw, topic, version)
            answer = raw.call(name, version, request)
            assert is_right(answer), (version, answer)
            assert getattr(answer, "throttle_time_ms", 0) == 0


def test_trap_08_answers_come_in_the_order_of_requests(node: Node, raw: Raw, topic: str) -> None:
    """A long poll is not overtaken by what was asked after it on the same connection, and others are not held up."""
    create(raw, topic)
    waiting = raw.send("Fetch", 12, fetch_request(topic, 0, max_wait_ms=15_000))
    later = raw.send("Metadata", 12, MetadataRequest([MetadataRequestTopic(name=topic)]))
    assert raw.hears_nothing_for(0.5)
    with Raw(node.port) as other:
        assert produce(other, topic, batch_of(b"wake up")).error_code == ErrorCode.NONE
    assert raw.receive(waiting).responses[0].partitions[0].high_watermark == 1
    assert raw.receive(later).topics[0].name == topic


def test_trap_08_a_thousand_requests_may_be_under_way(raw: Raw, topic: str) -> None:
    """librdkafka's default is a million."""
    create(raw, topic)
    sent = [raw.send("Metadata", 9, MetadataRequest([MetadataRequestTopic(name=topic)])) for _ in range(1000)]
    assert all(raw.receive(one).topics[0].name == topic for one in sent)


@pytest.mark.parametrize(
    "beginning",
    [
        b"GET / HTTP/1.1\r\nHost: broker\r\n\r\n",
        struct.pack(">i", 104_857_601) + bytes(64),
        struct.pack(">i", 2**31 - 1) + bytes(64),
        struct.pack(">i", -1) + bytes(64),
        struct.pack(">i", 0) + bytes(64),
        struct.pack(">i", 3) + bytes(64),
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(64),
    ],
    ids=["http", "a-byte-too-many", "two-gigabytes", "negative", "empty", "no-header", "tls"],
)
def test_trap_09_an_impossible_frame_closes_the_connection(node: Node, raw: Raw, beginning: bytes) -> None:
    raw.send_bytes(beginning)
    assert raw.is_closed_by_broker()
    with Raw(node.port) as other:
        assert other.call("ApiVersions", 0, NAMED).error_code == ErrorCode.NONE, "the next one is served"


def test_trap_09_a_frame_may_come_byte_by_byte(raw: Raw) -> None:
    request = struct.pack(">hhih3s", 3, 1, 9, 3, b"raw") + struct.pack(">i", 0)
    for one in struct.pack(">i", len(request)) + request:
        raw.send_bytes(bytes([one]))
    assert struct.unpack_from(">i", raw.receive_frame()) == (9,)


def test_trap_09_socket_request_max_bytes_is_a_setting(start_node: StartNode) -> None:
    node = start_node({"socket.request.max.bytes": "5000"})
    with Raw(node.port) as raw:
        assert raw.call("ApiVersions", 0, NAMED).error_code == ErrorCode.NONE
        raw.send_bytes(struct.pack(">i", 5001) + bytes(64))
        assert raw.is_closed_by_broker()


def test_trap_09_an_idle_connection_is_closed_after_its_time(start_node: StartNode) -> None:
    node = start_node({"connections.max.idle.ms": "1500"})
    with Raw(node.port) as raw:
        assert raw.call("ApiVersions", 0, NAMED).error_code == ErrorCode.NONE
        assert raw.hears_nothing_for(0.5), "not at once"
        assert raw.is_closed_by_broker()


def test_trap_50_without_a_quota_nobody_is_throttled(raw: Raw, topic: str) -> None:
    """Quotas come later; until then every answer says zero, however much is asked."""
    create(raw, topic)
    sent = [raw.send("Produce", 9, produce_request(topic, batch_of(bytes(10_000)))) for _ in range(200)]
    sent += [raw.send("Fetch", 12, fetch_request(topic, 0)) for _ in range(50)]
    assert {raw.receive(one).throttle_time_ms for one in sent} == {0}


@pytest.mark.parametrize(
    ("name", "software_version"),
    [("", "1"), ("klamm", ""), ("-x", "1"), ("a b", "1"), ("x-", "1"), ("klamm", "1.0 beta")],
)
def test_trap_52_a_wrong_software_name_or_version_is_an_invalid_request(
    raw: Raw, name: str, software_version: str
) -> None:
    assert (
        raw.call("ApiVersions", 3, ApiVersionsRequest(name, software_version)).error_code == ErrorCode.INVALID_REQUEST
    )
    assert raw.call("ApiVersions", 3, ApiVersionsRequest("a.b-C9", "1.0-rc.1")).error_code == ErrorCode.NONE


def test_trap_54_every_advertised_range_makes_sense(raw: Raw) -> None:
    """aiokafka asserts it for every key there is."""
    keys = raw.call("ApiVersions", 4, NAMED).api_keys
    assert all(0 <= key.min_version <= key.max_version for key in keys)
    assert len({key.api_key for key in keys}) == len(keys)


def test_trap_54_kafka_python_takes_us_for_kafka_4_3(raw: Raw) -> None:
    """It guesses the version from the advertised ranges, and switches off what it thinks is missing."""
    ranges = {key.api_key: (key.min_version, key.max_version) for key in raw.call("ApiVersions", 4, NAMED).api_keys}
    assert BrokerVersionData(api_versions=ranges).broker_version == (4, 3)
