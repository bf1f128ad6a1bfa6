"""Settings asked for and changed: a topic's of any broker, a broker's of itself."""

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from klamm.cli.group_asking import ANSWER_SECONDS, Cluster, Refused, name_of
from klamm.cli.reset_targets import MS_IN
from klamm.cli.topic_asking import no_topic
from klamm.errors import ErrorCode
from klamm.local.asking import Conversation
from klamm.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsSynonym,
)
from klamm.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

DESCRIBE_CONFIGS, INCREMENTAL_ALTER_CONFIGS = 32, 44
TOPIC, BROKER = 2, 4
SET, DELETE = 0, 1
CHANGE_SECONDS = 30.0
NOT_WHILE_IT_RUNS = "Cannot update these configs dynamically"
"""Kafka's refusal of what a broker reads only when it starts."""

OF_THE_TOPIC, DEFAULT = 1, 5
SOURCES = {
    OF_THE_TOPIC: "topic",
    2: "broker",
    3: "all brokers",
    4: "start",
    DEFAULT: "default",
    6: "logger",
}
"""Who said so, by Kafka's numbers: the topic, that broker, all brokers while they run; its file or command line."""


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose settings: a topic's, a broker's, or those of all brokers, which is the broker without a name."""

    kind: int
    name: str

    @property
    def is_all_brokers(self) -> bool:
        """Of whom only what was set is known."""
        return self.kind == BROKER and not self.name

    def __str__(self) -> str:
        if self.kind == TOPIC:
            return f"topic {self.name}"
        return f"broker {self.name}" if self.name else "all brokers"


@dataclass(frozen=True, slots=True)
class Setting:
    name: str
    value: str | None
    source: int
    default: str | None
    is_read_only: bool
    is_sensitive: bool
    documentation: str | None

    @property
    def is_default(self) -> bool:
        return self.source == DEFAULT


def settings_of(cluster: Cluster, owner: Owner, keys: Sequence[str] = ()) -> list[Setting]:
    """All of them, or these, by name."""
    resource = DescribeConfigsResource(owner.kind, owner.name, list(keys) or None)
    request = DescribeConfigsRequest([resource], include_synonyms=True, include_documentation=True)
    (result,) = _asked(cluster, owner, DESCRIBE_CONFIGS, 4, request, cluster.ask_anyone).results
    _refuse(cluster, owner, result.error_code, result.error_message)
    return sorted((_setting(each) for each in result.configs), key=lambda each: each.name)


def change(cluster: Cluster, owner: Owner, values: Mapping[str, str], unset: Sequence[str] = ()) -> None:
    """All of it or nothing."""
    changes = [AlterableConfig(key, SET, value) for key, value in values.items()]
    changes += [AlterableConfig(key, DELETE, None) for key in unset]
    request = IncrementalAlterConfigsRequest([AlterConfigsResource(owner.kind, owner.name, changes)])
    ask = functools.partial(cluster.ask_once, timeout_seconds=CHANGE_SECONDS)
    (result,) = _asked(cluster, owner, INCREMENTAL_ALTER_CONFIGS, 1, request, ask).responses
    _refuse(cluster, owner, result.error_code, result.error_message)


def _asked(cluster: Cluster, owner: Owner, api_key: int, version: int, request: object, ask: Callable[..., Any]) -> Any:
    """The broker that it is about, or by `ask` whoever the cluster has."""
    if owner.kind == TOPIC or not owner.name:
        return ask(api_key, version, request)
    address = cluster.brokers().get(int(owner.name))
    if address is None:
        raise Refused(f"there is no {owner} that takes part now; `klamm status` shows them")
    with Conversation(address, max(ANSWER_SECONDS, CHANGE_SECONDS)) as broker:
        return broker.ask(api_key, version, request)


def _refuse(cluster: Cluster, owner: Owner, code: int, message: str | None) -> None:
    if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        raise no_topic(cluster, owner.name)
    if message and NOT_WHILE_IT_RUNS in message:
        raise Refused(f"{owner}: {message}; it needs a restart with another setting, in its file or with --set")
    if code:
        raise Refused(f"{owner}: {message or name_of(code)}")


def _setting(told: DescribeConfigsResourceResult) -> Setting:
    default = next((_in_unit_of(told.name, each) for each in told.synonyms if each.source == DEFAULT), None)
    if told.config_source == DEFAULT:
        default = told.value
    return Setting(
        told.name,
        told.value,
        told.config_source,
        default,
        told.read_only,
        told.is_sensitive,
        told.documentation,
    )


def _in_unit_of(name: str, synonym: DescribeConfigsSynonym) -> str | None:
    """retention.ms is 168 by default, says Kafka, and means log.retention.hours."""
    unit = MS_IN.get(synonym.name.rpartition(".")[2])
    if unit is None or synonym.value is None or not name.endswith(".ms"):
        return synonym.value
    return str(int(synonym.value) * unit)
