"""What DescribeConfigs shows: every setting with its value, where the value comes from, and what else was set for it.

Tools read all settings of a topic, change one and write all of them back, so a setting that is missing here would be
lost there. `synonyms` lists every place that sets the same thing, the one that counts first. Where Kafka forgets that
`segment.ms` may come from `log.roll.hours`, we list it.
"""

from collections.abc import Collection, Iterable, Mapping
from enum import IntEnum
from typing import NamedTuple

from klamm.config.broker_config import BrokerConfig
from klamm.config.kinds import Kind, written
from klamm.config.names import broker_setting
from klamm.config.tables import Setting, broker_settings, topic_settings
from klamm.config.topic_table import FAMILIES, SYNONYMS
from klamm.config.topics import topic_values


class Source(IntEnum):
    """Where a value comes from, with Kafka's numbers."""

    DYNAMIC_TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    DYNAMIC_BROKER_LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8


class Synonym(NamedTuple):
    name: str
    value: str | None
    source: Source


class ConfigEntry(NamedTuple):
    name: str
    value: str | None
    read_only: bool
    source: Source
    is_default: bool
    is_sensitive: bool
    synonyms: tuple[Synonym, ...]
    kind: Kind
    documentation: str


def describe_topic(
    config: BrokerConfig, overrides: Mapping[str, str], names: Collection[str] | None = None
) -> list[ConfigEntry]:
    """The settings of a topic with these overrides; all of them, or those that are named."""
    values = topic_values(config, overrides)
    return [
        _entry(setting, written(values[setting.name]), _topic_synonyms(config, overrides, setting), read_only=False)
        for setting in topic_settings().values()
        if (setting.listed or setting.name in overrides) and _is_wanted(setting.name, names)
    ]


def describe_broker(config: BrokerConfig, names: Collection[str] | None = None) -> list[ConfigEntry]:
    """The settings of this broker; all of them, or those that are named."""
    listed = {name for name, setting in broker_settings().items() if setting.listed}
    shown = sorted(listed.union(config.static, config.dynamic_broker, config.dynamic_default))
    return [
        _entry(setting, written(config.value(name)), _broker_synonyms(config, setting), setting.alterable == "fixed")
        for name in shown
        if _is_wanted(name, names) and (setting := broker_setting(name))
    ]


def describe_all_brokers(config: BrokerConfig, names: Collection[str] | None = None) -> list[ConfigEntry]:
    """What was set at run time for all brokers, and nothing else."""
    entries = []
    for name, text in sorted(config.dynamic_default.items()):
        setting = broker_setting(name)
        if setting is not None and _is_wanted(name, names):
            synonym = Synonym(name, _shown(setting, text), Source.DYNAMIC_DEFAULT_BROKER)
            entries.append(_entry(setting, text, (synonym,), setting.alterable == "fixed"))
    return entries


def _entry(setting: Setting, value: str | None, synonyms: tuple[Synonym, ...], read_only: bool) -> ConfigEntry:
    source = synonyms[0].source if synonyms else Source.DEFAULT
    return ConfigEntry(
        setting.name,
        _shown(setting, value),
        read_only,
        source,
        source is Source.DEFAULT,
        setting.is_sensitive,
        synonyms,
        setting.kind,
        setting.documentation,
    )


def _topic_synonyms(config: BrokerConfig, overrides: Mapping[str, str], setting: Setting) -> tuple[Synonym, ...]:
    below = _set_for(config, [name for name, _ in SYNONYMS.get(setting.name, ())])
    if setting.name not in overrides:
        return tuple(below)
    value = written(setting.parsed(overrides[setting.name]))
    return (Synonym(setting.name, value, Source.DYNAMIC_TOPIC), *below)


def _broker_synonyms(config: BrokerConfig, setting: Setting) -> tuple[Synonym, ...]:
    found = list(_set_for(config, FAMILIES.get(setting.name, (setting.name,))))
    own = next((index for index, synonym in enumerate(found) if synonym.name == setting.name), len(found))
    return tuple(found[own:])  # What a finer unit sets is not said of the coarser one.


def _set_for(config: BrokerConfig, names: Iterable[str]) -> Iterable[Synonym]:
    """Every layer that sets one of these names, the upper layers first, the defaults last."""
    settings = [setting for name in names if (setting := broker_setting(name))]
    layers = (
        (Source.DYNAMIC_BROKER, config.dynamic_broker),
        (Source.DYNAMIC_DEFAULT_BROKER, config.dynamic_default),
        (Source.STATIC_BROKER, config.static),
    )
    for source, layer in layers:
        for setting in settings:
            if setting.name in layer:
                yield Synonym(setting.name, _shown(setting, layer[setting.name]), source)
    for setting in settings:
        if setting.default is not None:
            yield Synonym(setting.name, _shown(setting, setting.default), Source.DEFAULT)


def _shown(setting: Setting, text: str | None) -> str | None:
    return None if setting.is_sensitive else text


def _is_wanted(name: str, names: Collection[str] | None) -> bool:
    return not names or name in names
