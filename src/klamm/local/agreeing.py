"""What a person asks for and what the directory holds already, brought together.

A cluster keeps its layout: its topics are placed over its racks, and its nodes know each other by number. So a wish
that names none of it takes the cluster as it is, and one that contradicts it is refused. Settings may change from one
start to the next; so may the ports of processes, all of which are told at every start where the voters are, which
counts for more than where they were, and register anew. Where nodes are part of this process they keep their ports.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

from klamm.ids import drawn_uuid, uuid_text
from klamm.local.ports import MOST, ports_from
from klamm.local.problems import LocalError
from klamm.local.record import METRICS, ClusterRecord, NodeRecord
from klamm.local.topology import planned

HOST = "127.0.0.1"
BROKERS, RACKS = 3, 1
METRICS_ABOVE = 9404 - 9092


@dataclass(frozen=True, slots=True)
class Wish:
    """None where nothing was said."""

    brokers: int | None = None
    racks: int | None = None
    first_port: int | None = None
    """The first node's; the others follow. 0 lets the system choose all of them."""
    settings: Mapping[str, str] | None = None


def settings_text(settings: Mapping[str, object]) -> dict[str, str]:
    """As a file would say it: who writes Python says `6` and `False`."""
    return {str(key): _text(value) for key, value in settings.items()}


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def new_cluster(wish: Wish, random: Random) -> ClusterRecord:
    """A cluster that never was, as wished; its ports are yet to be given."""
    nodes = planned(BROKERS if wish.brokers is None else wish.brokers, RACKS if wish.racks is None else wish.racks)
    return ClusterRecord(
        cluster_id=uuid_text(drawn_uuid(random)),
        host=HOST,
        settings=dict(wish.settings or {}),
        nodes=tuple(NodeRecord(node.node_id, node.rack, node.roles, port=0) for node in nodes),
    )


def known_cluster(known: ClusterRecord, wish: Wish, *, may_move: bool = False) -> ClusterRecord:
    """The cluster that is there, with the settings wished for; LocalError if it is another than was asked for. One that
    may move to other ports is the same there, and its metrics go with it."""
    if others := differences(known, replace(wish, first_port=None) if may_move else wish):
        raise LocalError(
            f"the directory holds another cluster: {'; '.join(others)}. "
            "Leave these options out to start it as it is, add --fresh to delete it and start anew, or choose another "
            "directory with --dir"
        )
    if may_move and wish.first_port:
        known = _moved(known, ports_from(wish.first_port, len(known.nodes)))
    return known if wish.settings is None else replace(known, settings=dict(wish.settings))


def _moved(known: ClusterRecord, ports: list[int]) -> ClusterRecord:
    """On these ports. Its metrics stay where they are if all of them are its own."""
    if ports == [node.port for node in known.nodes]:
        return known
    nodes = (replace(node, metrics_port=None, usual_metrics_port=None) for node in known.nodes)
    return with_ports(replace(known, nodes=tuple(nodes)), ports)


def differences(known: ClusterRecord, wish: Wish) -> list[str]:
    """In what the cluster that is there is another than was asked for, settings apart."""
    return [
        f"{name} {is_there}, not {wished}"
        for name, is_there, wished in (
            ("--brokers", len(known.brokers), wish.brokers),
            ("--racks", known.racks, wish.racks),
            ("--port", known.nodes[0].port, wish.first_port or None),
        )
        if wished is not None and wished != is_there
    ]


def check_metrics(wish: Wish, nodes: int) -> None:
    """What is set is set for every node, and several cannot listen at one place."""
    place = (wish.settings or {}).get(METRICS)
    if place and nodes > 1:
        raise LocalError(
            f"{METRICS}={place} would be one place for {nodes} nodes. Leave it out: every node has a port of its own, "
            f"which `klamm up --json` names; or switch metrics off with --set {METRICS}="
        )


def properties_of(record: ClusterRecord, node: NodeRecord, directory: Path) -> dict[str, str]:
    """What one node is told, under Kafka's names; its data lies in a directory of the cluster's."""
    values = dict(record.given_settings)
    values["node.id"] = str(node.node_id)
    values["listeners"] = f"PLAINTEXT://{record.host}:{node.port}"
    values["log.dirs"] = str(directory / f"node-{node.node_id}")
    if node.rack is not None:
        values["broker.rack"] = node.rack
    values["process.roles"] = ",".join(node.roles)
    values["controller.quorum.voters"] = record.quorum
    return values


def usual_metrics_port(node: NodeRecord, port: int) -> int:
    """The one that is noted for it; or as far above the node's own port as 9404, where Kafka's exporter usually is,
    above 9092; or any, where the node's own may be any too."""
    noted = node.metrics_port if node.usual_metrics_port is None else node.usual_metrics_port
    if noted is not None:
        return noted
    return port + METRICS_ABOVE if 0 < port <= MOST - METRICS_ABOVE else 0


def with_metrics_ports(record: ClusterRecord, ports: Mapping[int, tuple[int, int]]) -> ClusterRecord:
    """For these nodes, the usual port and the one they have. What was any becomes usual: whoever scrapes it will find
    it there again."""

    def given(node: NodeRecord) -> NodeRecord:
        if node.node_id not in ports:
            return node
        usual, port = ports[node.node_id]
        return replace(node, metrics_port=port, usual_metrics_port=usual or port)

    return replace(record, nodes=tuple(map(given, record.nodes)))


def with_ports(record: ClusterRecord, ports: list[int]) -> ClusterRecord:
    nodes = (replace(node, port=port) for node, port in zip(record.nodes, ports, strict=True))
    return replace(record, nodes=tuple(nodes))
