"""Where our settings are not as Kafka's, each with its reason. The rest has Kafka's name, kind, rule and default.

Each entry gives Kafka's own default (or who may alter it there) and why ours is another.
"""

_FAILOVER = "a silent leader should cost its clients three seconds, not nine; a dead one is noticed at once"
_CAPPED = "capped at the number of brokers there are, so that one broker alone works"

# `None`: Kafka has no default and wants a value.
DEFAULTS_IN_KAFKA: dict[str, tuple[str | None, str]] = {
    "listeners": ("PLAINTEXT://:9092", "a broker without authentication listens on loopback unless told otherwise"),
    "process.roles": (None, "one node alone is a whole cluster"),
    "controller.listener.names": (None, "a quorum of one needs no listener of its own"),
    "broker.heartbeat.interval.ms": ("2000", _FAILOVER),
    "broker.session.timeout.ms": ("9000", _FAILOVER),
    "leader.imbalance.check.interval.seconds": ("300", "leaders should be back where they belong soon after a restart"),
}

ALTERABLE_IN_KAFKA: dict[str, tuple[str, str]] = {
    "listeners": ("broker", "a node binds its listeners when it starts"),
    "listener.security.protocol.map": ("broker", "a node binds its listeners when it starts"),
}

# Same default, other meaning.
MEANT_DIFFERENTLY: dict[str, tuple[str, str]] = {
    "offsets.topic.replication.factor": ("3", _CAPPED),
    "transaction.state.log.replication.factor": ("3", _CAPPED),
    "transaction.state.log.min.isr": ("2", _CAPPED),
    "log.dirs": ("", "a Klamm node keeps its data in one directory; run one node for each disk"),
    "replica.selector.class": ("", "no Java class can be loaded; Kafka's rack-aware one is known by its name"),
}
