"""The tables of settings: whole, readable, quick to load."""

import subprocess
import sys

import pytest

from klamm.config import BrokerConfig, Kind, Status, broker_settings, topic_settings
from klamm.config.differences import ALTERABLE_IN_KAFKA, DEFAULTS_IN_KAFKA, MEANT_DIFFERENTLY
from klamm.config.topic_table import SYNONYMS

SETTINGS = [*broker_settings().values(), *topic_settings().values()]


def test_every_default_is_a_value_that_its_setting_takes() -> None:
    for setting in SETTINGS:
        if setting.default is not None:
            assert setting.parsed(setting.default) == setting.parsed_default(), setting.name


def test_every_setting_has_a_sentence() -> None:
    for setting in SETTINGS:
        assert setting.documentation.endswith("."), setting.name


def test_every_topic_setting_resolves_to_a_broker_setting_of_its_kind() -> None:
    for name, synonyms in SYNONYMS.items():
        for synonym, factor in synonyms:
            kind = broker_settings()[synonym].kind
            assert kind == topic_settings()[name].kind or (factor > 1 and kind is Kind.INT), name


def test_what_differs_from_kafka_says_why() -> None:
    for name in (*DEFAULTS_IN_KAFKA, *ALTERABLE_IN_KAFKA, *MEANT_DIFFERENTLY):
        assert broker_settings()[name].differs, name
    assert broker_settings()["num.partitions"].differs is None


def test_passwords_are_sensitive_and_nothing_else() -> None:
    assert broker_settings()["ssl.key.password"].is_sensitive
    assert not broker_settings()["listeners"].is_sensitive


@pytest.mark.parametrize(
    ("name", "status"),
    [
        ("log.retention.hours", Status.WORKS),
        ("broker.session.timeout.ms", Status.WORKS),
        ("group.initial.rebalance.delay.ms", Status.WORKS),
        ("num.io.threads", Status.NO_EFFECT),
        ("sasl.jaas.config", Status.NOT_YET),
    ],
)
def test_each_setting_works_has_no_effect_or_is_not_there_yet(name: str, status: Status) -> None:
    assert broker_settings()[name].status is status


def test_a_value_is_asked_for_by_its_kind() -> None:
    config = BrokerConfig.from_properties((), {"node.id": "3", "log.cleanup.policy": "compact, delete"})
    assert config.integer("num.partitions") == 1
    assert config.decimal("log.cleaner.min.cleanable.ratio") == 0.5
    assert config.boolean("auto.create.topics.enable") is True
    assert config.text("broker.rack") is None
    assert config.strings("log.cleanup.policy") == ("compact", "delete")
    assert config.strings("advertised.listeners") == ()
    assert repr(config) == "<BrokerConfig 3 set, 0+0 altered>"


def test_importing_the_settings_pulls_in_nothing_heavy() -> None:
    """Every start pays for what is imported: no dataclasses (inspect), no difflib, no decimal, no json."""
    code = "import sys, klamm.config; print([m for m in ('inspect', 'difflib', 'decimal', 'json') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
