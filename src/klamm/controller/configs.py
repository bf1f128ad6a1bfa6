"""Settings of topics, of one broker, and of all brokers, altered while the cluster runs.

A resource's changes are judged together and granted or refused together; `klamm.config` says what is allowed. For
brokers that is checked against this node's own file, which in a cluster run as one is everybody's.

Left out: log levels, and the settings of groups and client metrics, which come with those.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from klamm.config import (
    BrokerConfig,
    Scope,
    alterations,
    replacement,
    validate_broker_configs,
    validate_topic_configs,
)
from klamm.controller.features import has_eligible_leader_replicas
from klamm.controller.wishes import ConfigChanges, ConfigReplacement, ConfigResult
from klamm.errors import ErrorCode, KafkaError
from klamm.ids import BrokerId
from klamm.machine import Decision
from klamm.metadata.image import ConfigResource, Image, ResourceType
from klamm.metadata.records import ConfigRecord, MetadataRecord

LONGEST_ID = 10
MIN_ISR = "min.insync.replicas"
# A string of a record is no longer than that.
MAX_VALUE_BYTES = 32_767

Wish = TypeVar("Wish", ConfigChanges, ConfigReplacement)
Settings = Mapping[str, str | None]


class Configs:
    def __init__(self, node_id: BrokerId, config: BrokerConfig) -> None:
        self._node_id = node_id
        self._config = config

    def checked_for_creation(self, image: Image, pairs: Sequence[tuple[str, str | None]]) -> list[tuple[str, str]]:
        """The settings of a topic that is about to be."""
        if not pairs:
            return []
        wanted = dict(pairs)
        validate_topic_configs(self.effective(image), wanted)
        _check_sizes(wanted)
        return [(name, value) for name, value in wanted.items() if value is not None]

    def alter(self, image: Image, wishes: Sequence[ConfigChanges]) -> Decision[MetadataRecord, list[ConfigResult]]:
        """Operations on single settings; what they do not name stays."""

        def after(wish: ConfigChanges, current: Mapping[str, str]) -> Settings:
            return alterations(Scope(wish.resource.type), current, wish.changes)

        return self._decide(image, wishes, after)

    def replace(
        self, image: Image, wishes: Sequence[ConfigReplacement]
    ) -> Decision[MetadataRecord, list[ConfigResult]]:
        """All settings of a resource; what is not named goes back to its default."""

        def after(wish: ConfigReplacement, current: Mapping[str, str]) -> Settings:
            return {**dict.fromkeys(current), **replacement(wish.values)}

        return self._decide(image, wishes, after)

    def _decide(
        self,
        image: Image,
        wishes: Sequence[Wish],
        after: Callable[[Wish, Mapping[str, str]], Settings],
    ) -> Decision[MetadataRecord, list[ConfigResult]]:
        records: list[MetadataRecord] = []
        results: list[ConfigResult] = []
        for wish in wishes:
            result = ConfigResult(wish.resource)
            try:
                _check_exists(image, wish.resource)
                current = image.config_of(wish.resource)
                altered = after(wish, current)
                _check_common(image, wish.resource, altered)
                self._check(image, wish.resource, {**current, **altered})
                records += _records(wish.resource, current, altered)
            except KafkaError as refused:
                result.error, result.message = refused.code, refused.message
            results.append(result)
        return Decision(results, records)

    def _check(self, image: Image, resource: ConfigResource, settings: Settings) -> None:
        kept = {name: value for name, value in settings.items() if value is not None}
        if resource.type == ResourceType.TOPIC:
            validate_topic_configs(self.effective(image), kept)
        else:
            validate_broker_configs(self.effective(image), kept, per_broker=bool(resource.name))
        _check_sizes(kept)

    def effective(self, image: Image) -> BrokerConfig:
        """This node's configuration under what the cluster has altered of it."""
        own = image.config_of(ConfigResource(ResourceType.BROKER, str(self._node_id)))
        everybodys = image.config_of(ConfigResource(ResourceType.BROKER, ""))
        return self._config.with_dynamic(own, everybodys) if own or everybodys else self._config


def _records(resource: ConfigResource, current: Mapping[str, str], altered: Settings) -> list[MetadataRecord]:
    """One for each setting that is different. Of brokers also for those that are not: setting a password again makes
    them read the file behind it anew (KAFKA-14136)."""
    return [
        ConfigRecord(resource_type=resource.type, resource_name=resource.name, name=name, value=value)
        for name, value in altered.items()
        if value != current.get(name) or (resource.type == ResourceType.BROKER and name in current)
    ]


def _check_common(image: Image, resource: ConfigResource, altered: Settings) -> None:
    """Who is eligible to lead is decided here, by the number that every leader commits with: it is one for all."""
    is_one_brokers = resource.type == ResourceType.BROKER and bool(resource.name)
    if is_one_brokers and altered.get(MIN_ISR) is not None and has_eligible_leader_replicas(image):
        reason = f"{MIN_ISR} is set for all brokers or for a topic, not for one broker."
        raise KafkaError(ErrorCode.INVALID_CONFIG, reason)


def _check_sizes(settings: Settings) -> None:
    for name, value in settings.items():
        if value is not None and len(value.encode()) > MAX_VALUE_BYTES:
            reason = f"The value of {name} is over {MAX_VALUE_BYTES} bytes long."
            raise KafkaError(ErrorCode.INVALID_REQUEST, reason)


def is_broker_id(name: str) -> bool:
    return name.isascii() and name.isdigit() and len(name) <= LONGEST_ID


def _check_exists(image: Image, resource: ConfigResource) -> None:
    if resource.type == ResourceType.TOPIC:
        if not resource.name:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Topics have no common default: name one.")
        if resource.name not in image.topics:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{resource.name}' does not exist.")
    elif resource.type == ResourceType.BROKER:
        if resource.name and not is_broker_id(resource.name):
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"'{resource.name}' is not the id of a broker.")
        if resource.name and int(resource.name) not in image.brokers:
            raise KafkaError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"Broker {resource.name} is not registered.")
    else:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown resource type {resource.type}")
