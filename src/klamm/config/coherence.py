"""Settings that are right one by one and wrong together: who this node is, where it listens, what exceeds what.

`value` is a function from a name to a value, so that what is checked can be a configuration or the wish for one.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from klamm.config.kinds import Value
from klamm.config.listeners import (
    Listener,
    check_dialable,
    check_ports,
    check_protocols,
    listeners_of,
    protocols_of,
)
from klamm.config.rules import address, voter

Ask: TypeAlias = Callable[[str], Value]


class Places(NamedTuple):
    """Where a node is reached, and where it reaches its quorum."""

    clients: tuple[Listener, ...]
    controllers: tuple[Listener, ...]
    advertised: tuple[Listener, ...]
    inter_broker: str
    voters: tuple[tuple[int, str, int], ...]


def problems_between(value: Ask) -> list[str]:
    problems: list[str] = []
    _check_identity(value, problems)
    _check_quorum(value, places_of(value, problems), problems)
    problems += limit_problems(value)
    return problems


def places_of(value: Ask, problems: list[str]) -> Places:
    controller_names = tuple(name.upper() for name in _strings(value, "controller.listener.names"))
    protocols = protocols_of(str(value("listener.security.protocol.map")), controller_names, problems)
    everywhere = listeners_of("listeners", _strings(value, "listeners"), problems)
    check_ports(everywhere, problems)
    check_protocols("listeners", everywhere, protocols, problems)
    written = listeners_of("advertised.listeners", _strings(value, "advertised.listeners"), problems)
    check_protocols("advertised.listeners", written, protocols, problems)
    clients = tuple(listener for listener in everywhere if listener.name not in controller_names)
    advertised = tuple(listener for listener in written if listener.name not in controller_names) or clients
    check_dialable(advertised, problems)
    voters = tuple(found for text in _strings(value, "controller.quorum.voters") if (found := voter(text)))
    inter_broker = str(value("inter.broker.listener.name") or value("security.inter.broker.protocol")).upper()
    places = Places(clients, tuple(one for one in everywhere if one not in clients), advertised, inter_broker, voters)
    if "broker" in _strings(value, "process.roles"):
        _check_broker_listeners(value, places, problems)
    return places


def limit_problems(value: Ask) -> list[str]:
    """What must hold between numbers, also after an alteration."""
    problems = [
        f"{lower} ({value(lower)}) must not be more than {upper} ({value(upper)})"
        for lower, upper in _NOT_MORE_THAN
        if _number(value(lower)) > _number(value(upper))
    ]
    queued = _number(value("queued.max.request.bytes"))
    if 0 < queued < _number(value("socket.request.max.bytes")):
        problems.append("queued.max.request.bytes must not be less than socket.request.max.bytes")
    times = [value(f"log.retention.{unit}") for unit in ("ms", "minutes", "hours")]
    if next((time for time in times if time is not None), None) == 0:
        problems.append("log.retention must be -1 (for ever) or at least 1: nothing could be read otherwise")
    if value("log.roll.ms") is not None and _number(value("log.roll.ms")) < 1:
        problems.append("log.roll.ms must be at least 1")
    _check_connection_limits(value, problems)
    return problems


_NOT_MORE_THAN = (
    ("broker.heartbeat.interval.ms", "broker.session.timeout.ms"),
    ("replica.fetch.wait.max.ms", "replica.lag.time.max.ms"),
    ("replica.fetch.wait.max.ms", "replica.socket.timeout.ms"),
    ("log.cleaner.min.compaction.lag.ms", "log.cleaner.max.compaction.lag.ms"),
    ("group.min.session.timeout.ms", "group.max.session.timeout.ms"),
    ("group.consumer.min.session.timeout.ms", "group.consumer.session.timeout.ms"),
    ("group.consumer.session.timeout.ms", "group.consumer.max.session.timeout.ms"),
    ("group.consumer.min.heartbeat.interval.ms", "group.consumer.heartbeat.interval.ms"),
    ("group.consumer.heartbeat.interval.ms", "group.consumer.max.heartbeat.interval.ms"),
    ("group.consumer.heartbeat.interval.ms", "group.consumer.session.timeout.ms"),
)

# The replica selectors there are, by the names of Kafka's classes.
SELECTORS = (
    "org.apache.kafka.common.replica.LeaderSelector",
    "org.apache.kafka.common.replica.RackAwareReplicaSelector",
)


def _check_identity(value: Ask, problems: list[str]) -> None:
    node_id, broker_id = value("node.id"), value("broker.id")
    if node_id is not None and node_id != broker_id:
        problems.append(f"node.id ({node_id}) and broker.id ({broker_id}) must be the same")
    elif node_id is not None and _number(node_id) < 0:
        problems.append(f"broker.id is {broker_id}: nodes are numbered from 0, and nobody numbers them but you")
    directories = _strings(value, "log.dirs") or _strings(value, "log.dir")
    if len(directories) > 1:
        problems.append(
            f"log.dirs names {len(directories)} directories; a Klamm node uses one: run one node for each disk"
        )
    if value("replica.selector.class") not in (None, "", *SELECTORS):
        problems.append(f"replica.selector.class: only {' and '.join(SELECTORS)} are known here")


def _check_broker_listeners(value: Ask, places: Places, problems: list[str]) -> None:
    if not places.clients:
        problems.append("listeners: a broker needs one that is not in controller.listener.names")
        return
    known = {listener.name for listener in places.clients}
    for listener in places.advertised:
        if listener.name not in known:
            problems.append(f"advertised.listeners: {listener.name} is not in listeners, which has {_names(known)}")
    if value("security.inter.broker.protocol") != "PLAINTEXT":
        problems.append("security.inter.broker.protocol: only PLAINTEXT is implemented yet")
    elif places.inter_broker not in {listener.name for listener in places.advertised}:
        problems.append(
            f"inter.broker.listener.name: brokers would talk over {places.inter_broker}, which is not advertised;"
            f" choose one of {_names(known)}"
        )


def _check_quorum(value: Ask, places: Places, problems: list[str]) -> None:
    roles = _strings(value, "process.roles")
    voters = [number for number, _, _ in places.voters]
    node_id = value("node.id")
    if "controller" in roles:
        if voters and node_id is not None and node_id not in voters:
            problems.append(f"controller.quorum.voters does not name this node ({node_id}), which is a controller")
        missing = {name.upper() for name in _strings(value, "controller.listener.names")}
        missing -= {listener.name for listener in places.controllers}
        if missing:
            problems.append(f"controller.listener.names: {_names(missing)} is not in listeners")
        return
    if node_id in voters:
        problems.append(f"controller.quorum.voters names this node ({node_id}), which is not a controller")
    if not voters and not value("controller.quorum.bootstrap.servers"):
        problems.append("a node that is no controller needs controller.quorum.voters or .bootstrap.servers")


def _check_connection_limits(value: Ask, problems: list[str]) -> None:
    overrides = str(value("max.connections.per.ip.overrides") or "")
    for entry in filter(None, (part.strip() for part in overrides.split(","))):
        host, _, count = entry.rpartition(":")
        if not count.isdigit() or address(f"{host}:1") is None or not host:
            problems.append(f"max.connections.per.ip.overrides: {entry!r} is not host:count")
    if value("max.connections.per.ip") == 0 and not overrides:
        problems.append("max.connections.per.ip is 0 and nobody is excepted by max.connections.per.ip.overrides")


def _strings(value: Ask, name: str) -> tuple[str, ...]:
    found = value(name)
    return found if isinstance(found, tuple) else ()


def _number(value: Value) -> float:
    return value if isinstance(value, int | float) else 0


def _names(names: set[str]) -> str:
    return ", ".join(sorted(names))
