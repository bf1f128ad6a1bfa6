"""Altering settings while the cluster runs, with the errors Kafka gives.

First the operations (`alterations` for IncrementalAlterConfigs, `replacement` for AlterConfigs) make the settings that
a topic or a broker would have afterwards; then `validate_topic_configs` or `validate_broker_configs` says whether it
may. For brokers Kafka answers INVALID_REQUEST where one would expect INVALID_CONFIG; clients know it so.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

from klamm.config.broker_config import BrokerConfig
from klamm.config.coherence import limit_problems
from klamm.config.kinds import BadValueError, Kind
from klamm.config.names import broker_setting, nearest
from klamm.config.tables import Setting, Status, topic_settings
from klamm.errors import ErrorCode, KafkaError


class Scope(IntEnum):
    """What has settings, with the numbers of Kafka's ConfigResource."""

    TOPIC = 2
    BROKER = 4


class Operation(IntEnum):
    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class Change(NamedTuple):
    name: str
    operation: int
    value: str | None


def alterations(scope: Scope, current: Mapping[str, str], changes: Sequence[Change]) -> dict[str, str | None]:
    """The new text of every setting that the changes name; `None` where it is no longer set."""
    _check_once([change.name for change in changes])
    _check_present([change.name for change in changes if change.value is None and change.operation != Operation.DELETE])
    return {
        change.name: altered(scope, change.name, current.get(change.name), change.operation, change.value)
        for change in changes
    }


def replacement(pairs: Sequence[tuple[str, str | None]]) -> dict[str, str]:
    """All that is set afterwards, when everything is replaced."""
    _check_once([name for name, _ in pairs])
    _check_present([name for name, value in pairs if value is None])
    return {name: value for name, value in pairs if value is not None}


def altered(scope: Scope, name: str, current: str | None, operation: int, value: str | None) -> str | None:
    """The new text of one setting; `None` when it is no longer set."""
    if operation not in Operation.__members__.values():
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown operations type {operation}")
    if operation == Operation.SET:
        return value
    if operation == Operation.DELETE:
        return None
    entries = _entries_to_change(scope, name, current, Operation(operation))
    named = _split(value or "")
    if operation == Operation.APPEND:
        known = set(entries)
        return ",".join([*entries, *(entry for entry in dict.fromkeys(named) if entry not in known)])
    gone = Counter(named)
    kept = []
    for entry in entries:
        if gone[entry]:
            gone[entry] -= 1
        else:
            kept.append(entry)
    return ",".join(kept)


def validate_broker_configs(config: BrokerConfig, configs: Mapping[str, str], *, per_broker: bool) -> None:
    """All that would be set at run time for one broker (`per_broker`) or for all of them, checked on this broker."""
    settings = {name: _known(name) for name in sorted(configs)}
    _refuse(
        "Cannot update these configs dynamically",
        [name for name, setting in settings.items() if setting.alterable == "fixed"],
    )
    for name, setting in settings.items():
        _check_value(setting, configs[name])
    if not per_broker:
        _refuse(
            "Cannot update these configs at default cluster level, broker id must be specified",
            [name for name, setting in settings.items() if setting.alterable == "broker"],
        )
    wish = config.with_dynamic(configs, config.dynamic_default) if per_broker else config.with_dynamic({}, configs)
    problems = limit_problems(wish.value)
    if problems:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "; ".join(problems))


def _entries_to_change(scope: Scope, name: str, current: str | None, operation: Operation) -> list[str]:
    """What a list holds before it is changed: its default when it is not set."""
    setting = topic_settings().get(name) if scope is Scope.TOPIC else _known(name)
    if setting is None or setting.kind is not Kind.LIST:
        raise KafkaError(ErrorCode.INVALID_CONFIG, _not_a_list(scope, name, operation.name))
    text = setting.default if current is None else current
    return [entry for entry in _split(text or "") if entry]


def _not_a_list(scope: Scope, name: str, operation: str) -> str:
    if scope is Scope.TOPIC:
        return f"Can't {operation} to key {name} because its type is not LIST."
    return f"Config value {operation.lower()} is not allowed for config key: {name}"


def _split(text: str) -> list[str]:
    """Entries as Java's `split` has them: empty ones at the end are dropped, but an empty text is one empty entry."""
    return text.rstrip(",").split(",") if text.strip(",") or not text else []


def _known(name: str) -> Setting:
    setting = broker_setting(name)
    if setting is None:
        close = nearest(name)
        question = f" (did you mean {close}?)" if close else ""
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"Unknown config name: {name}{question}")
    return setting


def _check_value(setting: Setting, text: str) -> None:
    try:
        value = setting.parsed(text)
    except BadValueError as problem:
        raise KafkaError(ErrorCode.INVALID_REQUEST, str(problem)) from None
    if setting.status is Status.NOT_YET and value not in ("", (), setting.parsed_default()):
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"{setting.name} is refused. {setting.documentation}")


def _check_once(names: list[str]) -> None:
    if len(set(names)) < len(names):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")


def _check_present(missing: list[str]) -> None:
    if missing:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {', '.join(missing)}")


def _refuse(message: str, names: list[str]) -> None:
    if names:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"{message}: [{', '.join(names)}]")
