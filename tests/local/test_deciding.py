"""Who runs, whether they can decide, and who is gone."""

import socket
from random import Random

import pytest

from klamm.local import asking
from klamm.local.agreeing import Wish, new_cluster, with_ports
from klamm.local.deciding import NodeState, WhoRuns, who_runs
from klamm.local.ports import HeldPorts
from klamm.local.processes import State
from klamm.local.record import ClusterRecord


@pytest.fixture
def record() -> ClusterRecord:
    """Six brokers of which 0, 1 and 2 vote; their ports are nobody's."""
    with HeldPorts("127.0.0.1", [0] * 6) as held:
        return with_ports(new_cluster(Wish(6, 1), Random(1)), held.ports)


def told(record: ClusterRecord, *states: State) -> WhoRuns:
    return who_runs(record, [NodeState(node, state) for node, state in zip(record.nodes, states, strict=True)])


def test_dead_and_paused_brokers_are_gone_where_nobody_decides_it(record: ClusterRecord) -> None:
    who = told(record, "running", "dead", "running", "paused", "dead", "running")
    assert who.can_decide and who.gone == [] and who.dead == [1, 4] and who.paused == [3]
    who = told(record, "running", "dead", "paused", "running", "dead", "running")
    assert not who.can_decide and who.gone == [1, 2, 4]


def test_who_listens_where_a_dead_node_would_runs_elsewhere(record: ClusterRecord) -> None:
    with socket.create_server(("127.0.0.1", record.nodes[1].port)):
        who = told(record, "running", "dead", "dead", "dead", "running", "running")
        assert who.can_decide and who.running == {0, 1, 4, 5} and who.elsewhere == {1}
        assert who.gone == [] and who.dead == [2, 3]
    with socket.create_server(("127.0.0.1", record.nodes[3].port)):
        who = told(record, "running", "dead", "dead", "dead", "running", "running")
        assert not who.can_decide and who.gone == [1, 2], "it has no vote, and is there"


def test_nobody_is_asked_where_processes_tell_enough(record: ClusterRecord, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also not of a cluster that was stopped: others may have its ports."""
    monkeypatch.setattr(asking, "takes_connections", lambda *_: pytest.fail("asked"))
    assert told(record, "running", "running", "dead", "dead", "dead", "dead").can_decide
    who = told(record, *["dead"] * 6)
    assert not who.can_decide and not who.is_anybody_there and who.gone == []
