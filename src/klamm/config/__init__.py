"""Every setting of Kafka 4.3 under Kafka's name: what it means here, how it is read, resolved, described and altered.

`parse_properties` reads a `server.properties`, `BrokerConfig` is what a broker runs with, `topic_values` what a topic
has. The tables are in the files that end in `_table`; where they differ from Kafka is in `differences`, and those few
that are ours alone are in `own_table`. Nothing here touches a file or a socket: who starts a broker reads its file and
prints the warnings.
"""

from klamm.config.altering import (
    Change,
    Operation,
    Scope,
    alterations,
    altered,
    replacement,
    validate_broker_configs,
)
from klamm.config.broker_config import BrokerConfig
from klamm.config.describing import (
    ConfigEntry,
    Source,
    Synonym,
    describe_all_brokers,
    describe_broker,
    describe_topic,
)
from klamm.config.kinds import Kind, Value
from klamm.config.listeners import Listener
from klamm.config.names import nearest
from klamm.config.problems import ConfigError
from klamm.config.properties import parse_properties
from klamm.config.tables import Setting, Status, broker_settings, topic_settings
from klamm.config.topics import topic_values, validate_topic_config, validate_topic_configs

__all__ = [
    "BrokerConfig",
    "Change",
    "ConfigEntry",
    "ConfigError",
    "Kind",
    "Listener",
    "Operation",
    "Scope",
    "Setting",
    "Source",
    "Status",
    "Synonym",
    "Value",
    "alterations",
    "altered",
    "broker_settings",
    "describe_all_brokers",
    "describe_broker",
    "describe_topic",
    "nearest",
    "parse_properties",
    "replacement",
    "topic_settings",
    "topic_values",
    "validate_broker_configs",
    "validate_topic_config",
    "validate_topic_configs",
]
