"""What cluster a test wants: said by its marker, else on the command line, else in the ini file."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from klamm.local.agreeing import settings_text

BROKERS, RACKS = 3, 1


@dataclass(frozen=True, slots=True)
class Shape:
    brokers: int = BROKERS
    racks: int = RACKS
    settings: Mapping[str, str] = field(default_factory=dict)
    """Kafka's broker settings, for every node."""

    def with_marker(self, arguments: Mapping[str, object]) -> "Shape":
        """As `@pytest.mark.klamm(brokers=1, settings={"num.partitions": 6})` says; settings are added to those that
        hold for everybody. ValueError if it says something else."""
        unknown = sorted(set(arguments) - {"brokers", "racks", "settings"})
        if unknown:
            raise ValueError(f"@pytest.mark.klamm does not know {unknown[0]!r}; it takes brokers, racks and settings")
        settings = arguments.get("settings", {})
        if not isinstance(settings, Mapping):
            raise ValueError('@pytest.mark.klamm: settings is a dict, as in settings={"num.partitions": 6}')
        return replace(
            self,
            brokers=counted("brokers", arguments.get("brokers", self.brokers)),
            racks=counted("racks", arguments.get("racks", self.racks)),
            settings={**self.settings, **settings_text(settings)},
        )


def counted(name: str, value: object) -> int:
    try:
        number = int(str(value))
    except ValueError:
        number = 0
    if number < 1:
        raise ValueError(f"klamm: {name} is a number from 1 upwards, not {value!r}")
    return number


def parsed_settings(pairs: Iterable[str]) -> dict[str, str]:
    """`num.partitions=6` and the like. ValueError if one of them is something else."""
    settings = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise ValueError(f"klamm: expected KEY=VALUE, as in num.partitions=6, not {pair!r}")
        settings[key.strip()] = value.strip()
    return settings
