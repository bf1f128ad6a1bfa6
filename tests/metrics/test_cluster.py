"""A cluster of `klamm up` is watched: where its pages are, what they say when a broker dies, who is ready."""

import contextlib
import socket
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from klamm.local.agreeing import METRICS_ABOVE, Wish
from klamm.local.cluster import LocalCluster
from klamm.local.ports import HeldPorts
from klamm.local.problems import LocalError, NoCluster
from klamm.local.record import METRICS, ClusterRecord
from tests.cli.running import klamm
from tests.harness.waiting import wait_until
from tests.local.clients import write
from tests.metrics.scraping import Scraped, asked, scraped

MANAGER = "kafka_server_replicamanager"
CONTROLLER = "kafka_controller_kafkacontroller"
TRAFFIC = "kafka_server_brokertopicmetrics"


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LocalCluster]:
    cluster = LocalCluster(tmp_path / "cluster")
    yield cluster
    with contextlib.suppress(NoCluster):
        cluster.kill(node.node_id for node in cluster.record().nodes)


def ports_of(record: ClusterRecord) -> list[int]:
    return [node.metrics_port or 0 for node in record.nodes]


def summed(pages: list[Scraped], name: str) -> float:
    return sum(page.value(name) for page in pages)


def test_a_cluster_is_watched_while_a_broker_dies_and_returns(cluster: LocalCluster) -> None:
    record = cluster.up(Wish(3, first_port=0, settings={"num.partitions": "6", "default.replication.factor": "3"}))
    ports = ports_of(record)
    at = ("--dir", str(cluster.directory))
    pages_shown = [node["metrics"] for node in klamm("status", "--json", *at).json["nodes"]]
    assert pages_shown == [f"http://127.0.0.1:{port}/metrics" for port in ports] and len(set(ports)) == 3
    assert pages_shown[0] in klamm("status", *at).out
    write(record.bootstrap_servers, "orders", *map(str, range(300)))
    pages = [scraped(port) for port in ports]
    assert summed(pages, f"{CONTROLLER}_activecontrollercount") == 1
    assert summed(pages, f"{CONTROLLER}_activebrokercount") == 3
    assert summed(pages, f"{MANAGER}_leadercount") == 6 and summed(pages, f"{MANAGER}_partitioncount") == 18
    assert summed(pages, f"{TRAFFIC}_messagesin_total") == 300

    def is_replicated() -> bool:
        pages = [scraped(port) for port in ports]
        given = summed(pages, f"{TRAFFIC}_replicationbytesout_total")
        taken = summed(pages, f"{TRAFFIC}_replicationbytesin_total")
        return given == taken == 2 * summed(pages, f"{TRAFFIC}_bytesin_total")

    wait_until(is_replicated, "each byte went to two followers")
    victim = next(index for index, page in enumerate(pages) if not page.value(f"{CONTROLLER}_activecontrollercount"))
    cluster.kill([victim])
    others = [port for index, port in enumerate(ports) if index != victim]

    def is_noticed() -> bool:
        pages = [scraped(port) for port in others]
        return (
            summed(pages, f"{MANAGER}_underreplicatedpartitions") == summed(pages, f"{MANAGER}_leadercount") == 6
            and summed(pages, f"{MANAGER}_isrshrinks_total") == 6
            and summed(pages, f"{CONTROLLER}_fencedbrokercount") == 1
        )

    wait_until(is_noticed, "the other two lead everything, under-replicated")
    assert asked(ports[victim], "/healthz") == (0, "")
    cluster.start([victim])
    assert ports_of(cluster.record()) == ports

    def is_healed() -> bool:
        pages = [scraped(port) for port in ports]
        return (
            summed(pages, f"{MANAGER}_underreplicatedpartitions") == 0
            and summed(pages, f"{MANAGER}_isrexpands_total") >= 6
            and asked(ports[victim], "/readyz")[0] == 200
        )

    wait_until(is_healed, "everybody is in sync again", 30)


def test_a_broker_without_a_majority_is_alive_and_not_ready(cluster: LocalCluster) -> None:
    ports = ports_of(cluster.up(Wish(3, first_port=0)))
    cluster.kill([0, 1, 2])
    cluster.start([0])
    wait_until(lambda: asked(ports[0], "/healthz")[0] == 200, "node 0 answers")
    assert asked(ports[0], "/readyz") == (503, "this broker is not registered with a controller\n")
    page = scraped(ports[0])
    assert page.value("klamm_ready") == 0 and page.value("kafka_server_kafkaserver_brokerstate") == 1
    cluster.start([1])
    wait_until(lambda: asked(ports[0], "/readyz") == (200, "ready\n"), "node 0 is counted on")


def test_metrics_ports_follow_the_nodes_give_way_and_return(cluster: LocalCluster) -> None:
    """As 9404 follows 9092. A port that is taken is no reason not to start; an empty setting switches them off."""
    port = _port_with_room()
    usual = port + METRICS_ABOVE
    with socket.create_server(("127.0.0.1", usual)):
        (elsewhere,) = ports_of(cluster.up(Wish(1, first_port=port)))
        assert elsewhere != usual and asked(elsewhere, "/readyz")[0] == 200
        cluster.kill([0])
        assert ports_of(cluster.up(Wish())) == [elsewhere], "it keeps the one it had"
        cluster.kill([0])
    assert ports_of(cluster.up(Wish())) == [usual], "it is free again"
    cluster.kill([0])
    record = cluster.up(Wish(settings={METRICS: ""}))
    assert record.metrics_url(record.node(0)) is None
    assert asked(usual, "/healthz") == (0, "")


def test_a_new_cluster_has_them_right_above(cluster: LocalCluster) -> None:
    port = _port_with_room()
    assert ports_of(cluster.up(Wish(1, first_port=port))) == [port + METRICS_ABOVE]


def _port_with_room() -> int:
    """One that is free, and so is that of its metrics. Not one that the system would give to anybody meanwhile."""
    while True:
        port = Random().randrange(12_000, 32_000)
        with contextlib.suppress(LocalError), HeldPorts("127.0.0.1", [port, port + METRICS_ABOVE]):
            return port
