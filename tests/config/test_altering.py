"""Altering settings at run time: the operations, and the errors that Kafka's tools know."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from klamm.config import (
    BrokerConfig,
    Change,
    Operation,
    Scope,
    alterations,
    altered,
    replacement,
    validate_broker_configs,
)
from klamm.errors import ErrorCode, KafkaError

CONFIG = BrokerConfig.from_properties((), {"node.id": "0"})


def refusal(action: Callable[[], object]) -> tuple[ErrorCode, str]:
    with pytest.raises(KafkaError) as caught:
        action()
    return caught.value.code, str(caught.value)


def on_topic(operation: Operation, value: str | None, current: str | None = None) -> str | None:
    return altered(Scope.TOPIC, "cleanup.policy", current, operation, value)


def test_a_list_is_appended_to_and_subtracted_from() -> None:
    assert on_topic(Operation.APPEND, "compact") == "delete,compact"
    assert on_topic(Operation.SUBTRACT, "delete", "delete,compact") == "compact"
    assert on_topic(Operation.SUBTRACT, "compact", "compact") == ""
    assert on_topic(Operation.APPEND, "delete", "") == "delete"
    assert on_topic(Operation.APPEND, "compact,compact", "compact") == "compact"
    assert on_topic(Operation.SET, "compact", "delete") == "compact"
    assert on_topic(Operation.DELETE, None, "delete") is None


def test_an_empty_entry_is_appended_and_refused_by_the_check_that_follows() -> None:
    assert on_topic(Operation.APPEND, "", "delete") == "delete,"


def test_only_lists_can_be_appended_to() -> None:
    assert refusal(lambda: altered(Scope.TOPIC, "retention.ms", None, Operation.APPEND, "5")) == (
        ErrorCode.INVALID_CONFIG,
        "Can't APPEND to key retention.ms because its type is not LIST.",
    )
    assert refusal(lambda: altered(Scope.TOPIC, "bogus", None, Operation.SUBTRACT, "5")) == (
        ErrorCode.INVALID_CONFIG,
        "Can't SUBTRACT to key bogus because its type is not LIST.",
    )
    assert refusal(lambda: altered(Scope.BROKER, "log.retention.ms", None, Operation.APPEND, "5")) == (
        ErrorCode.INVALID_CONFIG,
        "Config value append is not allowed for config key: log.retention.ms",
    )
    assert refusal(lambda: altered(Scope.BROKER, "bogus.key", None, Operation.APPEND, "5")) == (
        ErrorCode.INVALID_CONFIG,
        "Unknown config name: bogus.key",
    )
    assert refusal(lambda: altered(Scope.TOPIC, "cleanup.policy", None, 9, "5")) == (
        ErrorCode.INVALID_REQUEST,
        "Unknown operations type 9",
    )


def test_changes_name_each_setting_once_and_give_a_value() -> None:
    changes = [Change("flush.ms", Operation.SET, "1"), Change("flush.ms", Operation.SET, "2")]
    duplicate = (ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
    missing = (ErrorCode.INVALID_REQUEST, "Null value not supported for : flush.ms")
    assert refusal(lambda: alterations(Scope.TOPIC, {}, changes)) == duplicate
    assert refusal(lambda: alterations(Scope.TOPIC, {}, [Change("flush.ms", Operation.SET, None)])) == missing
    assert refusal(lambda: replacement([("flush.ms", "1"), ("flush.ms", "1")])) == duplicate
    assert refusal(lambda: replacement([("flush.ms", None)])) == missing
    assert replacement([("flush.ms", "1")]) == {"flush.ms": "1"}


def test_changes_give_the_new_text_of_what_they_name() -> None:
    current = {"cleanup.policy": "compact", "retention.ms": "5", "flush.ms": "1"}
    changes = [
        Change("cleanup.policy", Operation.APPEND, "delete"),
        Change("retention.ms", Operation.DELETE, None),
        Change("segment.ms", Operation.SET, "7"),
        Change("bogus", Operation.DELETE, None),
    ]
    assert alterations(Scope.TOPIC, current, changes) == {
        "cleanup.policy": "compact,delete",
        "retention.ms": None,
        "segment.ms": "7",
        "bogus": None,
    }


WORDS = st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=4)


@given(WORDS, WORDS)
def test_appending_and_subtracting_are_what_a_beginner_would_write(old: list[str], new: list[str]) -> None:
    appended = altered(Scope.TOPIC, "cleanup.policy", ",".join(old), Operation.APPEND, ",".join(new))
    expected = list(old)
    for word in new:
        if word not in expected:
            expected.append(word)
    assert appended == ",".join(expected)
    subtracted = altered(Scope.TOPIC, "cleanup.policy", ",".join(old), Operation.SUBTRACT, ",".join(new))
    left = list(old)
    for word in new:
        if word in left:
            left.remove(word)
    assert subtracted == ",".join(left)


def broker_refusal(per_broker: bool, **settings: str) -> tuple[ErrorCode, str]:
    configs = {name.replace("_", "."): text for name, text in settings.items()}
    return refusal(lambda: validate_broker_configs(CONFIG, configs, per_broker=per_broker))


def test_what_may_be_altered_on_a_running_broker() -> None:
    validate_broker_configs(CONFIG, {"log.retention.ms": "60000", "num.io.threads": "3"}, per_broker=True)
    validate_broker_configs(CONFIG, {"log.retention.ms": "60000", "log.cleanup.policy": ""}, per_broker=False)
    validate_broker_configs(CONFIG, {"leader.replication.throttled.rate": "100"}, per_broker=False)
    validate_broker_configs(CONFIG, {"cordoned.log.dirs": "/x"}, per_broker=True)
    validate_broker_configs(CONFIG, {}, per_broker=False)


def test_what_may_not_be_altered_is_refused_as_kafka_refuses_it() -> None:
    request = ErrorCode.INVALID_REQUEST
    assert broker_refusal(True, num_partitions="3", log_dirs="/x", log_retention_ms="5") == (
        request,
        "Cannot update these configs dynamically: [log.dirs, num.partitions]",
    )
    assert broker_refusal(False, cordoned_log_dirs="/x") == (
        request,
        "Cannot update these configs at default cluster level, broker id must be specified: [cordoned.log.dirs]",
    )
    assert broker_refusal(False, log_segment_bytes="5") == (
        request,
        "Invalid value 5 for configuration log.segment.bytes: Value must be at least 1048576",
    )
    assert broker_refusal(True, log_retention_ms="0")[0] is request
    assert broker_refusal(True, max_connections_per_ip="0")[0] is request
    assert broker_refusal(True, sasl_jaas_config="secret") == (
        request,
        "sasl.jaas.config is refused. SASL is not implemented yet:"
        " remove the sasl settings, and keep the listeners inside a network you trust.",
    )


def test_an_unknown_setting_of_a_broker_is_refused_with_the_nearest_right_name() -> None:
    assert broker_refusal(True, log_retention_mss="5") == (
        ErrorCode.INVALID_CONFIG,
        "Unknown config name: log.retention.mss (did you mean log.retention.ms?)",
    )
