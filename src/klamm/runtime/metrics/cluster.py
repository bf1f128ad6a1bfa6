"""This node's place in the cluster: what it is, what the quorum and the controller on it know.

What is about the whole cluster is told by the active controller; other nodes say 0, so that a sum over all is right.
"""

from collections.abc import Iterator

import klamm
from klamm.controller.controller import Controller
from klamm.metadata.image import Image
from klamm.runtime.health import why_not_ready
from klamm.runtime.metrics.family import GAUGE, Sample, Seen, family, labelled, one

STARTING, RUNNING, STOPPING = 1, 3, 6
"""As Kafka numbers a broker's states."""

CONTROLLER = "kafka_controller_kafkacontroller"


@family(
    "klamm_info", GAUGE, "1; the labels say which node this is.", "version", "node_id", "cluster_id", "rack", "roles"
)
def info(seen: Seen) -> Iterator[Sample]:
    config = seen.broker.config
    roles = "+".join(config.strings("process.roles"))
    pairs = {"version": klamm.__version__, "node_id": config.node_id, "cluster_id": seen.broker.cluster_id}
    yield labelled({**pairs, "rack": config.rack or "", "roles": roles}, 1)


@one("kafka_server_kafkaserver_brokerstate", GAUGE, "1: starting; 3: running; 6: handing over before it stops.")
def state(seen: Seen) -> float:
    cluster = seen.driver.node.cluster
    if cluster.leaving.has_begun:
        return STOPPING
    return RUNNING if cluster.is_serving else STARTING


@one("klamm_ready", GAUGE, "1 where /readyz says so: registered, not fenced, serving.")
def ready(seen: Seen) -> float:
    return int(not why_not_ready(seen.driver.node, seen.now))


# The quorum.


@one("kafka_server_raft_metrics_current_leader", GAUGE, "The node that leads the metadata quorum; -1: none is known.")
def quorum_leader(seen: Seen) -> float:
    return seen.broker.quorum.leader_id


@one("kafka_server_raft_metrics_current_epoch", GAUGE, "The quorum's epoch, which grows with every election.")
def quorum_epoch(seen: Seen) -> float:
    return seen.broker.quorum.epoch


@one("kafka_server_raft_metrics_log_end_offset", GAUGE, "Where the metadata log ends here.")
def metadata_end(seen: Seen) -> float:
    return seen.broker.quorum.log.end_offset


@one("kafka_server_raft_metrics_high_watermark", GAUGE, "The metadata log is agreed on up to here, as far as is known.")
def metadata_watermark(seen: Seen) -> float:
    return seen.broker.quorum.high_watermark


@one(
    "kafka_server_broker_metadata_metrics_last_applied_record_offset",
    GAUGE,
    "The last record of the metadata log that this node has followed.",
)
def applied(seen: Seen) -> float:
    return seen.broker.image.offset


# The controller.


def _controlled(seen: Seen) -> Controller | None:
    return seen.broker.controller


def _image(seen: Seen) -> Image | None:
    """The whole cluster, where it is ours to tell of."""
    return None if seen.broker.controller is None else seen.broker.image


@one(f"{CONTROLLER}_activecontrollercount", GAUGE, "1 on the node that decides. The sum over all nodes should be 1.")
def active(seen: Seen) -> float:
    return int(_controlled(seen) is not None)


@one(f"{CONTROLLER}_offlinepartitionscount", GAUGE, "Partitions that nobody leads.")
def offline_partitions(seen: Seen) -> float:
    controller = _controlled(seen)
    return 0 if controller is None else controller.leaderless_count


@one(f"{CONTROLLER}_preferredreplicaimbalancecount", GAUGE, "Partitions led by another than their preferred replica.")
def imbalance(seen: Seen) -> float:
    controller = _controlled(seen)
    return 0 if controller is None else controller.misled_count


@one(f"{CONTROLLER}_activebrokercount", GAUGE, "Brokers that are counted on.")
def active_brokers(seen: Seen) -> float:
    image = _image(seen)
    return 0 if image is None else sum(not broker.fenced for broker in image.brokers.values())


@one(f"{CONTROLLER}_fencedbrokercount", GAUGE, "Brokers that are registered and not counted on.")
def fenced_brokers(seen: Seen) -> float:
    image = _image(seen)
    return 0 if image is None else sum(broker.fenced for broker in image.brokers.values())


@one(f"{CONTROLLER}_globaltopiccount", GAUGE, "Topics of the cluster.")
def topics(seen: Seen) -> float:
    image = _image(seen)
    return 0 if image is None else len(image.topics)


@one(f"{CONTROLLER}_globalpartitioncount", GAUGE, "Partitions of the cluster.")
def partitions(seen: Seen) -> float:
    controller = _controlled(seen)
    return 0 if controller is None else controller.partition_count
