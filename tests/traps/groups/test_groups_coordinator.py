"""Trap 35: who is the coordinator, for one key and for many, and of what kind."""

import pytest

from klamm.errors import ErrorCode
from klamm.wire.messages.find_coordinator import FindCoordinatorRequest
from klamm.wire.messages.metadata import MetadataRequest
from tests.harness.fixtures import StartNode
from tests.harness.groups import GROUP, SETTINGS, SHARE, commit, committed, wait_coordinator
from tests.harness.node import Node
from tests.harness.raw import Raw
from tests.harness.requests import create, metadata_of
from tests.harness.waiting import wait_until

NOBODY = (-1, "", -1)


def test_trap_35_the_first_who_asks_waits_or_is_told_to_ask_again(start_node: StartNode) -> None:
    """The topic that groups live in is created because of the question, and is internal and compacted. Kafka has the
    client ask again; we answer when the topic is there, which saves the client its pause."""
    node = start_node(SETTINGS)
    with Raw(node.port) as raw:
        assert raw.call("Metadata", 12, MetadataRequest(topics=None)).topics == []
        first = raw.call("FindCoordinator", 2, FindCoordinatorRequest("a-group", GROUP))
        assert first.error_code in (ErrorCode.NONE, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        assert ((first.node_id, first.host, first.port) == NOBODY) == bool(first.error_code)
        wait_until(
            lambda: raw.call("FindCoordinator", 2, FindCoordinatorRequest("a-group", GROUP)).error_code == 0,
            "there is a coordinator",
        )
        made = metadata_of(raw, "__consumer_offsets")
        assert (made.is_internal, len(made.partitions)) == (True, int(SETTINGS["offsets.topic.num.partitions"]))


def test_trap_35_what_was_committed_is_there_after_a_restart(start_node: StartNode) -> None:
    """Clean, and without a goodbye."""
    node = start_node(SETTINGS)
    with Raw(node.port) as raw:
        create(raw, "kept")
        wait_coordinator(raw, "keeper")
        assert commit(raw, "keeper", "kept", 41) == ErrorCode.NONE
    for end in (node.stop, node.kill9):
        end()
        node.restart()
        with Raw(node.port) as raw:
            wait_coordinator(raw, "keeper")
            assert committed(raw, "keeper", "kept") == 41


@pytest.mark.parametrize("version", range(7))
def test_trap_35_one_key_until_version_3_and_many_from_version_4_on(
    node: Node, raw: Raw, group: str, version: int
) -> None:
    place = (0, "127.0.0.1", node.port)
    if version < 4:
        found = raw.call("FindCoordinator", version, FindCoordinatorRequest(group, GROUP))
        assert (found.error_code, found.node_id, found.host, found.port) == (0, *place)
        return
    many = raw.call("FindCoordinator", version, FindCoordinatorRequest("", GROUP, [group, "another", ""]))
    assert [(one.key, one.error_code, one.node_id, one.host, one.port) for one in many.coordinators] == [
        (key, 0, *place) for key in (group, "another", "")
    ]
    assert raw.call("FindCoordinator", version, FindCoordinatorRequest("", GROUP, [])).coordinators == []


def test_trap_35_success_has_the_word_none_in_it(raw: Raw, group: str) -> None:
    """In versions 1 to 3; later it is empty."""
    assert raw.call("FindCoordinator", 3, FindCoordinatorRequest(group, GROUP)).error_message == "NONE"
    assert (
        raw.call("FindCoordinator", 4, FindCoordinatorRequest("", GROUP, [group])).coordinators[0].error_message == ""
    )


@pytest.mark.parametrize("kind", [3, 5, -1, 127])
def test_trap_35_a_kind_that_nobody_knows_is_an_invalid_request(raw: Raw, group: str, kind: int) -> None:
    one = raw.call("FindCoordinator", 3, FindCoordinatorRequest(group, kind))
    assert (one.error_code, one.node_id, one.host, one.port) == (ErrorCode.INVALID_REQUEST, *NOBODY)
    many = raw.call("FindCoordinator", 4, FindCoordinatorRequest("", kind, [group, "another"])).coordinators
    assert [(each.key, each.error_code, each.node_id) for each in many] == [
        (key, ErrorCode.INVALID_REQUEST, -1) for key in (group, "another")
    ]


@pytest.mark.parametrize("version", [4, 5, 6])
def test_trap_35_a_share_key_is_a_group_a_topic_and_a_partition(raw: Raw, version: int) -> None:
    """And nothing to ask for before version 6."""
    (found,) = raw.call("FindCoordinator", version, FindCoordinatorRequest("", SHARE, ["just-a-group"])).coordinators
    assert (found.error_code, found.node_id) == (ErrorCode.INVALID_REQUEST, -1)
