"""A wish and what the directory holds already."""

from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from klamm.local.agreeing import (
    Wish,
    known_cluster,
    new_cluster,
    properties_of,
    usual_metrics_port,
    with_metrics_ports,
    with_ports,
)
from klamm.local.problems import LocalError
from klamm.local.record import ClusterRecord


def test_three_brokers_in_one_rack_unless_told_otherwise() -> None:
    record = new_cluster(Wish(), Random(1))
    assert [(node.node_id, node.rack, node.is_voter) for node in record.nodes] == [
        (0, "R1", True),
        (1, "R1", True),
        (2, "R1", True),
    ]


@pytest.mark.parametrize(("brokers", "replicas"), [(1, "1"), (2, "2"), (3, "3"), (6, "3")])
def test_a_topic_that_says_nothing_outlives_a_broker(brokers: int, replicas: str) -> None:
    record = new_cluster(Wish(brokers, settings={"num.partitions": "6"}), Random(1))
    assert properties_of(record, record.nodes[0], Path("data"))["default.replication.factor"] == replicas


def test_who_wants_a_single_replica_gets_it() -> None:
    record = new_cluster(Wish(3, settings={"default.replication.factor": "1"}), Random(1))
    assert properties_of(record, record.nodes[0], Path("data"))["default.replication.factor"] == "1"


def test_every_new_cluster_has_an_id_of_its_own() -> None:
    random = Random(1)
    assert new_cluster(Wish(), random).cluster_id != new_cluster(Wish(), random).cluster_id


KNOWN = with_ports(new_cluster(Wish(6, 2, 19092, {"num.partitions": "6"}), Random(1)), list(range(19092, 19099)))


def test_a_wish_that_names_nothing_takes_the_cluster_as_it_is() -> None:
    assert known_cluster(KNOWN, Wish()) == KNOWN
    assert known_cluster(KNOWN, Wish(first_port=0)) == KNOWN, "any port: also those it has"


def test_a_wish_that_names_the_same_is_none() -> None:
    assert known_cluster(KNOWN, Wish(6, 2, 19092)) == KNOWN


@pytest.mark.parametrize(
    ("wish", "said"),
    [
        (Wish(brokers=3), "--brokers 6, not 3"),
        (Wish(racks=3), "--racks 2, not 3"),
        (Wish(first_port=9092), "--port 19092, not 9092"),
    ],
)
def test_another_layout_is_refused(wish: Wish, said: str) -> None:
    """Nodes know each other by number, and topics are placed over the racks there are."""
    with pytest.raises(LocalError, match=said):
        known_cluster(KNOWN, wish)


def test_who_may_move_is_the_same_on_other_ports() -> None:
    noted = replace(
        KNOWN, nodes=tuple(replace(node, metrics_port=9404, usual_metrics_port=9404) for node in KNOWN.nodes)
    )
    assert known_cluster(noted, Wish(first_port=0), may_move=True) == noted, "any port: those it has, if they are free"
    assert known_cluster(noted, Wish(first_port=19092), may_move=True) == noted
    assert known_cluster(noted, Wish(first_port=9092), may_move=True) == with_ports(KNOWN, list(range(9092, 9099)))


def test_who_had_to_give_way_on_some_ports_can_go_back() -> None:
    """--port 0 moves only the nodes whose ports are taken. The first one's said that all are where they should be."""
    partly = with_ports(KNOWN, [19092, 40_001, *range(19094, 19099)])
    assert known_cluster(partly, Wish(first_port=19092), may_move=True) == KNOWN


def test_settings_may_change_and_stay_when_none_are_named() -> None:
    assert known_cluster(KNOWN, Wish(settings={"num.partitions": "9"})).settings == {"num.partitions": "9"}
    assert known_cluster(KNOWN, Wish()).settings == {"num.partitions": "6"}


def usual_ports(record: ClusterRecord) -> list[int]:
    return [usual_metrics_port(node, node.port) for node in record.nodes]


def test_metrics_ports_that_had_to_move_are_wished_back() -> None:
    usual = usual_ports(KNOWN)
    assert usual == [node.port + 312 for node in KNOWN.nodes]
    moved = with_metrics_ports(KNOWN, {0: (usual[0], 4711)})
    assert moved.nodes[0].metrics_port == 4711 and usual_ports(moved) == usual
    assert moved.nodes[1:] == KNOWN.nodes[1:]


def test_metrics_ports_that_were_any_are_kept() -> None:
    """Also those of a cluster from before it was noted which one is usual."""
    any_ports = list(range(40_000, 40_007))
    chosen = with_metrics_ports(KNOWN, {number: (0, port) for number, port in enumerate(any_ports)})
    assert usual_ports(chosen) == any_ports
    noted_then = (replace(node, usual_metrics_port=None) for node in chosen.nodes)
    assert usual_ports(replace(chosen, nodes=tuple(noted_then))) == any_ports
