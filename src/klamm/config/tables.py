"""A setting, and the tables of all of them, read once when they are first needed.

The tables are text, because that is how they are best read and because text costs nothing to import. In them a
sentence stands above the settings that it describes, one a line: name, kind, default, rule, and who may alter it while
the cluster runs (`fixed`: nobody; `broker`: for one broker; `cluster`: for one or for all; `topic`: for a topic). A
default of `-` is none, `!` means that there must be a value, `max` the largest of the kind.
"""

from enum import Enum
from functools import cache
from typing import NamedTuple

from klamm.config.differences import ALTERABLE_IN_KAFKA, DEFAULTS_IN_KAFKA, MEANT_DIFFERENTLY
from klamm.config.kinds import Kind, Value, parsed
from klamm.config.rules import check


class Status(Enum):
    WORKS = "works"
    NO_EFFECT = "no_effect"
    NOT_YET = "not_yet"


class Setting(NamedTuple):
    name: str
    kind: Kind
    default: str | None
    rule: str
    alterable: str
    status: Status
    documentation: str
    required: bool = False
    listed: bool = True

    @property
    def is_sensitive(self) -> bool:
        return self.kind is Kind.PASSWORD

    @property
    def differs(self) -> str | None:
        """Why this is not as in Kafka, if it is not."""
        for reasons in (DEFAULTS_IN_KAFKA, ALTERABLE_IN_KAFKA, MEANT_DIFFERENTLY):
            if self.name in reasons:
                return reasons[self.name][1]
        return None

    def parsed(self, text: str) -> Value:
        """The value of this text; `BadValueError` when the setting does not take it."""
        return check(self.name, self.rule, parsed(self.name, self.kind, text))

    def parsed_default(self) -> Value:
        return None if self.default is None else parsed(self.name, self.kind, self.default)


@cache
def broker_settings() -> dict[str, Setting]:
    """Every setting of a broker, by name, in the order of the names."""
    from klamm.config.cluster_table import CLUSTER_SETTINGS
    from klamm.config.coordinator_table import COORDINATOR_SETTINGS
    from klamm.config.inert_table import INERT_SETTINGS
    from klamm.config.log_table import LOG_SETTINGS
    from klamm.config.own_table import OWN_SETTINGS
    from klamm.config.refused_table import REFUSED_SETTINGS
    from klamm.config.server_table import SERVER_SETTINGS

    working = SERVER_SETTINGS + LOG_SETTINGS + CLUSTER_SETTINGS + COORDINATOR_SETTINGS + OWN_SETTINGS
    return _by_name(working, INERT_SETTINGS, REFUSED_SETTINGS)


@cache
def topic_settings() -> dict[str, Setting]:
    """Every setting of a topic, by name, in the order of the names."""
    from klamm.config.topic_table import INERT_TOPIC_SETTINGS, REFUSED_TOPIC_SETTINGS, TOPIC_SETTINGS

    return _by_name(TOPIC_SETTINGS, INERT_TOPIC_SETTINGS, REFUSED_TOPIC_SETTINGS)


def _by_name(working: str, inert: str, refused: str) -> dict[str, Setting]:
    settings = _rows(working, Status.WORKS) + _rows(inert, Status.NO_EFFECT) + _rows(refused, Status.NOT_YET)
    return {setting.name: setting for setting in sorted(settings, key=lambda setting: setting.name)}


def _rows(table: str, status: Status) -> list[Setting]:
    rows = []
    sentence = ""
    for line in table.splitlines():
        if line.startswith("    "):
            name, kind, default, rule, alterable = line.split()
            rows.append(_setting(name, Kind[kind.upper()], default, rule, alterable, status, sentence))
        elif line and not line.startswith("#"):
            sentence = line
    return rows


def _setting(name: str, kind: Kind, default: str, rule: str, alterable: str, status: Status, sentence: str) -> Setting:
    text = _LARGEST[kind] if default == "max" else _WRITTEN_DEFAULTS.get(default, default)
    listed = name[0] not in "~+"
    return Setting(name.lstrip("~+"), kind, text, rule, alterable, status, sentence, default == "!", listed)


_WRITTEN_DEFAULTS = {"-": None, "!": None, '""': ""}
_LARGEST = {
    Kind.INT: "2147483647",
    Kind.LONG: "9223372036854775807",
    Kind.DOUBLE: "1.7976931348623157E308",
}
