"""A broker's configuration: what its file says, what was altered while it runs, and the defaults below both.

Three layers, the upper ones first: what was set for this broker at run time, what was set for all brokers at run time,
and the file with its overrides. A configuration never changes; altering makes another one. Asking for a value is a
lookup, but who needs it on every request should ask once and keep the answer.
"""

from collections.abc import Iterable, Mapping

from klamm.config.coherence import Places, places_of, problems_between
from klamm.config.kinds import BadValueError, Value
from klamm.config.listeners import Listener
from klamm.config.names import broker_setting
from klamm.config.problems import ConfigError
from klamm.config.reading import read
from klamm.config.rules import address
from klamm.config.tables import topic_settings
from klamm.config.topic_table import SYNONYMS


class BrokerConfig:
    """The settings of one broker, each by Kafka's name."""

    __slots__ = (
        "_places",
        "_static_values",
        "_topic_defaults",
        "_values",
        "dynamic_broker",
        "dynamic_default",
        "static",
        "warnings",
    )

    def __init__(self, static: Mapping[str, str], values: Mapping[str, Value], warnings: list[str]) -> None:
        self.static = static
        self.dynamic_broker: dict[str, str] = {}
        self.dynamic_default: dict[str, str] = {}
        self.warnings = warnings
        self._static_values = values
        self._values = dict(values)
        self._places: Places | None = None
        self._topic_defaults: dict[str, Value] | None = None

    @classmethod
    def from_properties(
        cls, pairs: Iterable[tuple[str, str, int]] = (), overrides: Mapping[str, str] | None = None
    ) -> "BrokerConfig":
        """The configuration of a file's pairs, under the overrides. `ConfigError` names everything that is wrong."""
        reading = read(pairs, overrides or {})
        for name, other in (("node.id", "broker.id"), ("broker.id", "node.id")):
            if name in reading.values and other not in reading.values:
                reading.texts[other] = reading.texts[name]
                reading.values[other] = reading.values[name]
        config = cls(reading.texts, reading.values, reading.warnings)
        problems = reading.problems + problems_between(config.value)
        if problems:
            raise ConfigError(problems)
        return config

    def with_dynamic(self, dynamic_broker: Mapping[str, str], dynamic_default: Mapping[str, str]) -> "BrokerConfig":
        """This configuration under what the cluster's metadata sets for this broker and for all brokers.

        It was checked when it was set. What a newer version set and this one does not understand is left out, with a
        warning: a broker that is running does not stop for a setting.
        """
        config = BrokerConfig(self.static, self._static_values, [])
        for layer, given in ((config.dynamic_default, dynamic_default), (config.dynamic_broker, dynamic_broker)):
            for name, text in sorted(given.items()):
                config._take(layer, name, text)
        return config

    def value(self, name: str) -> Value:
        """The value of a setting; its default when nobody set it."""
        try:
            return self._values[name]
        except KeyError:
            setting = broker_setting(name)
            assert setting is not None, f"{name} is no setting"
            value = self._values[name] = setting.parsed_default()
            return value

    def integer(self, name: str) -> int:
        value = self.value(name)
        assert isinstance(value, int), f"{name} is {value!r}"
        return value

    def decimal(self, name: str) -> float:
        value = self.value(name)
        assert isinstance(value, float), f"{name} is {value!r}"
        return value

    def boolean(self, name: str) -> bool:
        value = self.value(name)
        assert isinstance(value, bool), f"{name} is {value!r}"
        return value

    def text(self, name: str) -> str | None:
        value = self.value(name)
        assert value is None or isinstance(value, str), f"{name} is {value!r}"
        return value

    def strings(self, name: str) -> tuple[str, ...]:
        value = self.value(name)
        assert value is None or isinstance(value, tuple), f"{name} is {value!r}"
        return value or ()

    @property
    def topic_defaults(self) -> dict[str, Value]:
        """The settings of a topic that sets nothing itself. Do not change it."""
        if self._topic_defaults is None:
            self._topic_defaults = {name: self._topic_default(name) for name in topic_settings()}
        return self._topic_defaults

    @property
    def node_id(self) -> int:
        return self.integer("node.id")

    @property
    def rack(self) -> str | None:
        return self.text("broker.rack")

    @property
    def is_broker(self) -> bool:
        return "broker" in self.strings("process.roles")

    @property
    def is_controller(self) -> bool:
        return "controller" in self.strings("process.roles")

    @property
    def log_dir(self) -> str:
        return (self.strings("log.dirs") or self.strings("log.dir"))[0]

    @property
    def listeners(self) -> tuple[Listener, ...]:
        """Where clients and brokers are served."""
        return self._where.clients

    @property
    def controller_listeners(self) -> tuple[Listener, ...]:
        """Where the metadata quorum is served."""
        return self._where.controllers

    @property
    def advertised_listeners(self) -> tuple[Listener, ...]:
        """What clients are told to dial. An empty host and port 0 are known only to who binds the socket."""
        return self._where.advertised

    @property
    def inter_broker_listener(self) -> str:
        return self._where.inter_broker

    @property
    def voters(self) -> tuple[tuple[int, str, int], ...]:
        """The controllers of a fixed quorum: id, host and port."""
        return self._where.voters

    @property
    def metrics_place(self) -> tuple[str, int] | None:
        """Where metrics are served, host and port; nowhere unless somebody said so."""
        return address(self.text("klamm.metrics.listener") or "")

    @property
    def _where(self) -> Places:
        if self._places is None:
            self._places = places_of(self.value, [])
        return self._places

    def _take(self, layer: dict[str, str], name: str, text: str) -> None:
        setting = broker_setting(name)
        try:
            if setting is None or setting.alterable == "fixed":
                raise BadValueError(name, text, "It cannot be altered while the broker runs")
            self._values[name] = setting.parsed(text)
            layer[name] = text
        except BadValueError as problem:
            self.warnings.append(f"left out: {problem}")

    def _topic_default(self, name: str) -> Value:
        for synonym, factor in SYNONYMS.get(name, ()):
            value = self.value(synonym)
            if value is not None:
                value = value * factor if isinstance(value, int) and factor > 1 else value
                return max(value, -1) if name == "retention.ms" and isinstance(value, int) else value
        return topic_settings()[name].parsed_default()

    def __repr__(self) -> str:
        return f"<BrokerConfig {len(self.static)} set, {len(self.dynamic_broker)}+{len(self.dynamic_default)} altered>"
