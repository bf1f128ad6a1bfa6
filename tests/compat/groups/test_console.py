"""The console consumer in a group, and Kafka's own reading of what a coordinator writes down."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from klamm.wire.messages.delete_groups import DeleteGroupsRequest
from tests.compat.groups.transcript import compare_with_recorded
from tests.compat.java_tools import JavaTools
from tests.harness.fixtures import new_name
from tests.harness.groups import Member, assignment, commit, committed, wait_coordinator
from tests.harness.node import Node
from tests.harness.raw import Raw
from tests.harness.requests import batch_of, create, produce

CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
FORMATTERS = ("OffsetsMessageFormatter", "GroupMetadataMessageFormatter")


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_the_console_consumer_goes_on_where_its_group_was(
    node: Node, topic: str, tools: JavaTools, protocol: str
) -> None:
    """It commits what it has printed when it ends; another group begins anew."""
    with Raw(node.port) as raw:
        create(raw, topic)
        wait_coordinator(raw, topic)
        produce(raw, topic, batch_of(*[b"%d" % number for number in range(20)]))

        def printed(group: str, count: int) -> list[str]:
            what = ["--topic", topic, "--group", group, "--from-beginning", "--max-messages", str(count)]
            settings = ["--command-property", f"group.protocol={protocol}"]
            ran = tools.run(CONSUMER, "--bootstrap-server", node.bootstrap, *what, *settings)
            return ran.checked().split()

        assert printed(topic, 7) == [str(number) for number in range(7)]
        assert committed(raw, topic, topic) == 7
        assert printed(topic, 5) == [str(number) for number in range(7, 12)]
        assert printed(f"{topic}-other", 20) == [str(number) for number in range(20)]
        assert committed(raw, topic, topic) == 12


def test_kafka_reads_what_a_coordinator_writes_down(node: Node, topic: str, tools: JavaTools) -> None:
    """A whole life: joined, given, committed, left, committed from outside, deleted. Record by record as Kafka's."""
    group = new_name("a-life")
    with Raw(node.port) as raw, Member(node.port, group, topics=["told"]) as one:
        create(raw, "told", partitions=2)
        wait_coordinator(raw, group)
        assert one.join().error_code == 0
        assert one.sync({one.member_id: assignment({"told": [0, 1]})}).error_code == 0
        assert one.commit("told", 4, metadata="ünd so", leader_epoch=0) == one.commit("told", 5, partition=1) == 0
        with Member(node.port, group, instance="static") as static:
            assert one.leave() == 0
            assert static.join(session_timeout_ms=20_000).error_code == 0
            assert static.sync({static.member_id: b""}).error_code == 0
            assert static.leave() == 0
        assert commit(raw, group, "told", 9) == 0
        (deleted,) = raw.call("DeleteGroups", 2, DeleteGroupsRequest([group])).results
        assert deleted.error_code == 0
    lines = []
    for name in FORMATTERS:
        lines += [f"# {name}", *(_normal(record, group) for record in _formatted(tools, node, name, group))]
    compare_with_recorded("records-of-a-life", lines)


def _formatted(tools: JavaTools, node: Node, formatter: str, group: str) -> Iterator[Any]:
    """The group's records in their order; they are all in one partition. Printed one after another on one line."""
    what = ["--topic", "__consumer_offsets", "--from-beginning", "--timeout-ms", "3000"]
    how = ["--formatter", f"org.apache.kafka.tools.consumer.{formatter}"]
    text = tools.run(CONSUMER, "--bootstrap-server", node.bootstrap, *what, *how).out.strip()
    position = 0
    while position < len(text):
        found, position = json.JSONDecoder().raw_decode(text, position)
        if found["key"]["data"]["group"] == group:
            yield found


def _normal(record: Any, group: str) -> str:
    text = json.dumps(record).replace(group, "<group>")
    text = re.sub(r'("\w*Timestamp": )\d+', r"\g<1>0", text)
    text = re.sub(r'("topicId": )"[\w-]+"', r'\g<1>"<topic>"', text)
    return re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "<uuid>", text)
