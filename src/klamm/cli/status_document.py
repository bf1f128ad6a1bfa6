"""`klamm status --json`: the same for programs, at once or whenever it changes."""

from collections.abc import Mapping
from pathlib import Path

from klamm.local.cluster import LocalCluster
from klamm.local.deciding import WhoRuns
from klamm.local.look import Look
from klamm.local.record import ClusterRecord
from klamm.local.storage_seen import StorageSeen
from klamm.local.view import BrokerSeen, ClusterSeen

Document = dict[str, object]


def document(
    cluster: LocalCluster,
    record: ClusterRecord,
    who: WhoRuns,
    seen: ClusterSeen | None,
    storage: Mapping[int, StorageSeen],
) -> Document:
    return {
        "dir": str(cluster.directory),
        "bootstrap_servers": record.bootstrap_servers,
        "nodes": [
            {
                "id": node.node_id,
                "rack": node.rack,
                "roles": list(node.roles),
                "pid": node.process.pid if node.process and state != "dead" else None,
                "state": state,
                "address": f"{record.host}:{node.port}",
                "metrics": record.metrics_url(node),
                "log": str(cluster.log_of(node.node_id)),
            }
            for node, state in who.states
        ],
        # Without a majority of voters the rest is what a broker last heard, less those brokers that do not run.
        "voters": [node.node_id for node in record.nodes if node.is_voter],
        "has_majority": who.can_decide,
        "reachable": seen is not None,
        "cluster_id": seen.cluster_id if seen else record.cluster_id,
        "controller": seen.controller if seen else None,
        "fenced_brokers": [each.broker_id for each in seen.brokers if each.is_fenced] if seen else None,
        "partitions": len(seen.partitions) if seen else None,
        "offline_partitions": _listed(seen, "is_offline"),
        "under_replicated_partitions": _listed(seen, "is_under_replicated"),
        "under_min_isr_partitions": _listed(seen, "is_below_min_in_sync"),
        "storage": [
            {
                "broker": broker_id,
                "takes_writes": each.takes_writes,
                "is_full": each.is_full,
                "failed_logs": [{"topic": topic, "partition": partition} for topic, partition in each.offline],
            }
            for broker_id, each in storage.items()
        ]
        if seen
        else None,
    }


def document_of(directory: Path, record: ClusterRecord, look: Look) -> Document:
    """The same of a look that somebody had already."""
    brokers = (
        BrokerSeen(node.node_id, node.rack, record.host, node.port, node.node_id not in look.live)
        for node in record.brokers
    )
    controller = look.controller if look.can_decide else None
    seen = ClusterSeen(record.cluster_id, controller, tuple(brokers), tuple(look.partitions.values()))
    return document(LocalCluster(directory), record, look.who_runs, seen if look.is_answered else None, look.storage)


def _listed(seen: ClusterSeen | None, which: str) -> list[dict[str, object]] | None:
    if seen is None:
        return None
    return [{"topic": each.topic, "partition": each.partition} for each in seen.partitions if getattr(each, which)]
