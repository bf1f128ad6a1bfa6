"""Settings that mean nothing here, said to whoever sets one: a node tells it to its log only."""

from collections.abc import Iterable, Mapping
from contextlib import suppress

from klamm.cli.config_asking import BROKER, TOPIC, Owner, settings_of
from klamm.cli.group_asking import Cluster, Refused
from klamm.cli.saying import say
from klamm.config import Status, broker_settings, topic_settings
from klamm.config.names import broker_setting
from klamm.config.reading import read
from klamm.local.asking import NoAnswer

TELLING = "num.io.threads"
"""Every broker has it. What it says of it tells a broker of ours from Apache Kafka's, to which it means something."""


def say_without_effect(settings: Mapping[str, str]) -> None:
    """Of what every node of a cluster is given: once, however many there are."""
    for warning in read((), {"node.id": "0", **settings}).warnings:
        say(warning)


def say_without_effect_on(cluster: Cluster, kind: int, names: Iterable[str]) -> None:
    """Of what was just set in a cluster, which may be anybody's."""
    found = [topic_settings().get(name) if kind == TOPIC else broker_setting(name) for name in names]
    inert = [setting for setting in found if setting is not None and setting.status is not Status.WORKS]
    if not inert or not _is_ours(cluster):
        return
    for setting in inert:
        say(f"{setting.name} has no effect. {setting.documentation}")


def _is_ours(cluster: Cluster) -> bool:
    # It is set already: who is not sure says nothing.
    with suppress(NoAnswer, Refused):
        told = settings_of(cluster, Owner(BROKER, str(min(cluster.brokers(), default=0))), [TELLING])
        return [each.documentation for each in told] == [broker_settings()[TELLING].documentation]
    return False
