"""Settings of topics, of a broker and of all brokers: a resource's changes are granted or refused together."""

import pytest

from klamm.config import Change, Operation
from klamm.controller.wishes import ConfigChanges, ConfigReplacement
from klamm.errors import ErrorCode
from klamm.metadata.image import ConfigResource, ResourceType
from tests.controller.world import World

INVOICE = ConfigResource(ResourceType.TOPIC, "invoice")
BROKER = ConfigResource(ResourceType.BROKER, "0")
ALL_BROKERS = ConfigResource(ResourceType.BROKER, "")


@pytest.fixture
def world() -> World:
    world = World()
    world.create("invoice", configs=[("retention.ms", "1000")])
    return world


def altered(world: World, resource: ConfigResource, *changes: Change) -> ErrorCode:
    (result,) = world.run(world.controller.incremental_alter_configs([ConfigChanges(resource, list(changes))]))
    assert bool(result.message) == (result.error != ErrorCode.NONE)
    return result.error


def test_operations_change_what_they_name_and_nothing_else(world: World) -> None:
    changes = [
        Change("max.message.bytes", Operation.SET, "5000"),
        Change("cleanup.policy", Operation.APPEND, "compact"),
    ]
    assert altered(world, INVOICE, *changes) == ErrorCode.NONE
    assert world.controller.image.config_of(INVOICE) == {
        "retention.ms": "1000",
        "max.message.bytes": "5000",
        "cleanup.policy": "delete,compact",
    }
    changes = [Change("retention.ms", Operation.DELETE, None), Change("cleanup.policy", Operation.SUBTRACT, "delete")]
    assert altered(world, INVOICE, *changes) == ErrorCode.NONE
    assert world.controller.image.config_of(INVOICE) == {"max.message.bytes": "5000", "cleanup.policy": "compact"}


def test_one_bad_change_spoils_those_of_its_resource_and_no_others(world: World) -> None:
    wishes = [
        ConfigChanges(
            INVOICE, [Change("max.message.bytes", Operation.SET, "1"), Change("retention.ms", Operation.SET, "x")]
        ),
        ConfigChanges(ALL_BROKERS, [Change("log.retention.ms", Operation.SET, "77")]),
    ]
    results = world.run(world.controller.incremental_alter_configs(wishes))
    assert [each.error for each in results] == [ErrorCode.INVALID_CONFIG, ErrorCode.NONE]
    assert world.controller.image.config_of(INVOICE) == {"retention.ms": "1000"}
    assert world.controller.image.config_of(ALL_BROKERS) == {"log.retention.ms": "77"}


def test_replacing_sends_what_is_not_named_back_to_its_default(world: World) -> None:
    wish = ConfigReplacement(INVOICE, [("segment.bytes", "1048576")])
    assert not world.controller.alter_configs([wish], validate_only=True).records
    world.run(world.controller.alter_configs([wish]))
    assert world.controller.image.config_of(INVOICE) == {"segment.bytes": "1048576"}
    world.run(world.controller.alter_configs([ConfigReplacement(INVOICE)]))
    assert world.controller.image.config_of(INVOICE) == {}


def test_what_does_not_change_is_not_written_except_for_brokers(world: World) -> None:
    same = Change("retention.ms", Operation.SET, "1000")
    assert not world.controller.incremental_alter_configs([ConfigChanges(INVOICE, [same])]).records
    change = Change("log.retention.ms", Operation.SET, "1000")
    for _ in range(2):
        assert altered(world, BROKER, change) == ErrorCode.NONE
    assert len(world.controller.incremental_alter_configs([ConfigChanges(BROKER, [change])]).records) == 1


@pytest.mark.parametrize(
    ("resource", "change", "error"),
    [
        (ConfigResource(2, "absent"), Change("retention.ms", 0, "1"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (ConfigResource(2, ""), Change("retention.ms", 0, "1"), ErrorCode.INVALID_REQUEST),
        (ConfigResource(4, "9"), Change("log.retention.ms", 0, "1"), ErrorCode.BROKER_ID_NOT_REGISTERED),
        (ConfigResource(4, "one"), Change("log.retention.ms", 0, "1"), ErrorCode.INVALID_REQUEST),
        (ConfigResource(4, "-1"), Change("log.retention.ms", 0, "1"), ErrorCode.INVALID_REQUEST),
        (ConfigResource(8, "0"), Change("root", 0, "DEBUG"), ErrorCode.INVALID_REQUEST),
        (ConfigResource(99, "0"), Change("x", 0, "1"), ErrorCode.INVALID_REQUEST),
        (INVOICE, Change("retention.ms", 0, None), ErrorCode.INVALID_REQUEST),
        (INVOICE, Change("retention.ms", 9, "1"), ErrorCode.INVALID_REQUEST),
        (INVOICE, Change("retention.ms", 2, "1"), ErrorCode.INVALID_CONFIG),
        (INVOICE, Change("retention.mss", 0, "1"), ErrorCode.INVALID_CONFIG),
        (BROKER, Change("node.id", 0, "7"), ErrorCode.INVALID_REQUEST),
        (ALL_BROKERS, Change("log.retention.ms", 0, "x"), ErrorCode.INVALID_REQUEST),
        (
            INVOICE,
            Change("leader.replication.throttled.replicas", 0, ",".join(["1:1"] * 10_000)),
            ErrorCode.INVALID_REQUEST,
        ),
    ],
)
def test_what_is_refused(world: World, resource: ConfigResource, change: Change, error: ErrorCode) -> None:
    before = len(world.log)
    assert altered(world, resource, change) == error
    assert len(world.log) == before


def test_a_resource_appears_once(world: World) -> None:
    wishes = [ConfigChanges(INVOICE, [Change("retention.ms", Operation.SET, value)]) for value in "12"]
    decision = world.controller.incremental_alter_configs(wishes)
    assert [each.error for each in decision.response] == [ErrorCode.INVALID_REQUEST] * 2 and not decision.records


def test_settings_that_contradict_what_all_brokers_have_are_refused(world: World) -> None:
    altered(world, ALL_BROKERS, Change("log.cleaner.max.compaction.lag.ms", Operation.SET, "1000"))
    change = Change("min.compaction.lag.ms", Operation.SET, "2000")
    assert altered(world, INVOICE, change) == ErrorCode.INVALID_CONFIG


def test_how_many_have_to_be_in_sync_is_not_set_for_one_broker(world: World) -> None:
    """Its leaders would commit by another number than the one by which replicas are eligible."""
    change = Change("min.insync.replicas", Operation.SET, "1")
    assert altered(world, BROKER, change) == ErrorCode.INVALID_CONFIG
    assert altered(world, ALL_BROKERS, change) == ErrorCode.NONE
    assert altered(world, INVOICE, change) == ErrorCode.NONE
