"""Which setting a name means: itself, a setting of one listener, one that Kafka has dropped, or a typing mistake.

A key such as `listener.name.internal.max.connections` sets `max.connections` for one listener. Some families of names
belong to plug-ins or to logging; they mean nothing here. `nearest` finds what a mistyped name was meant to be.
"""

from klamm.config.tables import Setting, Status, broker_settings, topic_settings
from klamm.config.topic_table import SYNONYMS


def broker_setting(name: str) -> Setting | None:
    """The setting behind this name, with the prefix of a listener or without; nothing when there is none."""
    found = broker_settings().get(name)
    if found is not None:
        return found
    base = without_listener(name)
    return None if base == name else _of_one_listener(name, base)


def without_listener(name: str) -> str:
    """`listener.name.internal.max.connections` → `max.connections`; other names stay as they are."""
    if not name.startswith("listener.name."):
        return name
    return name.removeprefix("listener.name.").partition(".")[2] or name


def why_ignored(name: str) -> str | None:
    """Why a name that is no setting of Kafka 4 is still no mistake."""
    if name in _DROPPED:
        return _DROPPED[name]
    return next((why for prefix, why in _FAMILIES if name.startswith(prefix)), None)


def nearest(name: str) -> str | None:
    """The setting of a broker that a mistyped name most likely means."""
    import difflib  # Only ever needed to word an error.

    if name in SYNONYMS:
        return SYNONYMS[name][0][0]
    wanted = name.lower().replace("_", ".").replace("-", ".")
    return next(iter(difflib.get_close_matches(wanted, list(broker_settings()), n=1, cutoff=0.7)), None)


def nearest_of_topic(name: str) -> str | None:
    """The setting of a topic that a mistyped name most likely means."""
    import difflib

    return next(iter(difflib.get_close_matches(name.lower(), list(topic_settings()), n=1, cutoff=0.7)), None)


def _of_one_listener(name: str, base: str) -> Setting | None:
    """A setting for one listener. Those of SASL may also have the name of the mechanism in front."""
    found = broker_settings().get(base) or broker_settings().get(base.partition(".")[2])
    if found is None:
        return None
    if found.status is not Status.NOT_YET:
        found = found._replace(status=Status.NO_EFFECT, documentation="All listeners share one setting.")
    return found._replace(name=name, alterable="fixed")


_ZOOKEEPER = "Kafka 4 has no ZooKeeper, and neither has Klamm."
_TIERED = "Tiered storage is not there."
_FAMILIES = (
    ("zookeeper.", _ZOOKEEPER),
    ("log4j.", "Logging is not set up by this file."),
    ("rsm.config.", _TIERED),
    ("rlmm.config.", _TIERED),
)

_GONE = "Kafka 4 has dropped it."
_DROPPED = {
    "advertised.host.name": "Kafka has dropped it: use advertised.listeners.",
    "advertised.port": "Kafka has dropped it: use advertised.listeners.",
    "auto.include.jmx.reporter": _GONE,
    "broker.id.generation.enable": _GONE,
    "control.plane.listener.name": _GONE,
    "group.coordinator.new.enable": _GONE,
    "host.name": "Kafka has dropped it: use listeners.",
    "inter.broker.protocol.version": _GONE,
    "leader.imbalance.per.broker.percentage": _GONE,
    "log.message.downconversion.enable": _GONE,
    "log.message.format.version": _GONE,
    "log.message.timestamp.difference.max.ms": "Kafka 4 has dropped it: use log.message.timestamp.before.max.ms.",
    "offsets.commit.required.acks": _GONE,
    "password.encoder.cipher.algorithm": _GONE,
    "password.encoder.iterations": _GONE,
    "password.encoder.key.length": _GONE,
    "password.encoder.keyfactory.algorithm": _GONE,
    "password.encoder.old.secret": _GONE,
    "password.encoder.secret": _GONE,
    "port": "Kafka has dropped it: use listeners.",
    "reserved.broker.max.id": _GONE,
}
