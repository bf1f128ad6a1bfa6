"""`klamm status`, in words: from what a broker said of the cluster to what a person reads."""

from dataclasses import replace
from pathlib import Path

from klamm.cli.status import text
from klamm.ids import TopicPartition
from klamm.local.asking import Address
from klamm.local.deciding import NodeState, WhoRuns
from klamm.local.processes import Process
from klamm.local.record import ClusterRecord
from klamm.local.storage_seen import StorageSeen
from klamm.local.view import BrokerSeen, ClusterSeen, PartitionSeen
from klamm.log.files import Space
from tests.local.looks import NODES, healthy, without

RECORD = ClusterRecord("an-id", "127.0.0.1", {}, NODES)
BROKERS = tuple(BrokerSeen(node.node_id, node.rack, "127.0.0.1", node.port, False) for node in NODES if node.is_broker)


def said(partitions: tuple[PartitionSeen, ...]) -> dict[str, str]:
    """The lines below the table, by their first words."""
    seen = ClusterSeen("an-id", 0, BROKERS, partitions)
    shown = text(Path("here"), RECORD, WhoRuns(tuple(NodeState(node, "running") for node in NODES)), seen)
    _, _, below = shown.partition("\n\n")
    return {line[:18].strip(): line[18:] for line in below.splitlines()}


def internal(count: int, in_sync: tuple[int, ...]) -> tuple[PartitionSeen, ...]:
    return tuple(PartitionSeen("__consumer_offsets", each, 1, (1, 2), in_sync, True) for each in range(count))


def test_peoples_own_partitions_are_named_and_those_of_the_brokers_counted() -> None:
    own = tuple(without(healthy(), 0).partitions.values())
    lines = said(internal(50, (1,)) + own)
    assert lines["partitions"] == "60, 50 of them internal"
    assert lines["under-replicated"] == "54: invoice-0, invoice-4, invoice-5, invoice-6 and 50 internal ones"
    assert said(internal(50, (1,)))["under-replicated"] == "50 internal partitions"
    assert said(internal(1, (1,)))["under-replicated"] == "1 internal partition"
    many = tuple(replace(own[0], partition=number) for number in range(30))
    assert said(many)["under-replicated"] == "30: invoice-0, invoice-1, invoice-2, invoice-3 and 26 more"
    assert said(tuple(healthy().partitions.values()))["under-replicated"] == "0"


def test_who_was_asked_to_end_is_stopped_and_who_was_killed_is_dead() -> None:
    states = WhoRuns(tuple(NodeState(node, "dead") for node in NODES))
    everybody = range(len(NODES))
    shown = text(Path("/srv/demo"), RECORD, states, None, everybody).splitlines()
    assert shown[-1] == "stopped; `klamm up --dir /srv/demo` starts it"
    assert all(" stopped " in line for line in shown[2:9])
    shown = text(Path("/srv/demo"), RECORD, states, None, everybody[1:]).splitlines()
    assert " dead " in shown[2] and " stopped " in shown[3]
    assert shown[-1] == "no node runs; `klamm up --dir /srv/demo` starts it"
    silent = WhoRuns(tuple(NodeState(node, "running") for node in NODES))
    assert text(Path("here"), RECORD, silent, None).endswith("\n\nno broker answers")
    witness_only = WhoRuns(tuple(NodeState(node, "dead" if node.is_broker else "running") for node in NODES))
    shown = text(Path("/srv/demo"), RECORD, witness_only, None).splitlines()
    start = "`klamm node start 0 1 2 3 4 5 --dir /srv/demo`"
    assert shown[-1] == f"no broker runs; {start} starts what is missing"


def test_of_a_broker_that_waits_for_a_majority_it_is_said_what_it_lacks() -> None:
    """One of the voters 0, 3 and 6 was started and has heard nothing yet; or all stand still."""
    states = WhoRuns(tuple(NodeState(node, "running" if node.node_id == 3 else "dead") for node in NODES))
    assert text(Path("/srv/demo"), RECORD, states, None).splitlines()[-2:] == [
        "1 of 3 voters runs: no majority, so nothing can be decided;",
        "`klamm node start 0 1 2 4 5 6 --dir /srv/demo` mends it",
    ]
    paused = WhoRuns(tuple(NodeState(node, "paused") for node in NODES))
    shown = text(Path("/srv/demo"), RECORD, paused, None).splitlines()
    assert shown[-2:] == [
        "0 of 3 voters run: no majority, so nothing can be decided;",
        "`klamm node resume 0 1 2 3 4 5 6 --dir /srv/demo` mends it",
    ]


def test_on_eighty_columns_the_port_says_where_metrics_are() -> None:
    nodes = [replace(node, metrics_port=node.port + 312, process=Process(4_194_303, "")) for node in NODES]
    states = WhoRuns(tuple(NodeState(node, "running") for node in nodes))
    for columns, where in ((80, "  :19404/metrics"), (100, "  http://127.0.0.1:19404/metrics"), (None, "metrics")):
        shown = text(Path("here"), RECORD, states, None, columns=columns).splitlines()
        assert max(map(len, shown)) <= (columns or 100) and any(line.endswith(where) for line in shown)


def test_where_acks_all_is_refused() -> None:
    """Two of three have to be in sync. A partition without a leader refuses everything, and is said to be offline."""
    one, two, none = (0,), (0, 1), ()
    partitions = [PartitionSeen("invoice", each, 0, (0, 1, 2), (one, two)[each % 2], False, 2) for each in range(4)]
    partitions.append(PartitionSeen("invoice", 4, -1, (0, 1, 2), none, False, 2))
    partitions.append(PartitionSeen("alone", 0, 0, (0,), (0,), False, 2))
    states = WhoRuns(tuple(NodeState(node, "running") for node in NODES))
    shown = text(Path("here"), RECORD, states, ClusterSeen("an-id", 0, BROKERS, tuple(partitions)))
    assert "below min.insync.replicas: invoice-0 and invoice-2; acks=all is refused there" in shown
    # Without a majority nobody can take the dead out of the ISR: the leader writes, and waits in vain.
    alone = WhoRuns(tuple(NodeState(node, "running" if node.node_id == 0 else "dead") for node in NODES))
    asked = Address("127.0.0.1", NODES[0].port)
    shown = text(Path("here"), RECORD, alone, ClusterSeen("an-id", None, BROKERS, tuple(partitions)), (), asked)
    assert "below min.insync.replicas: invoice-0 and invoice-2; acks=all is not acknowledged there" in shown
    assert "refused" not in shown
    assert "below" not in "".join(said(tuple(healthy().partitions.values())))


def test_disks_that_are_in_trouble_are_named() -> None:
    seen = ClusterSeen("an-id", 0, BROKERS, tuple(healthy().partitions.values()))
    states = WhoRuns(tuple(NodeState(node, "running") for node in NODES))
    storage = {
        0: StorageSeen(),
        1: StorageSeen(takes_writes=False, space=Space(40_000_000, 0)),
        2: StorageSeen(offline=(TopicPartition("invoice", 3),)),
    }
    shown = text(Path("here"), RECORD, states, seen, storage=storage).splitlines()
    assert shown[-2:] == ["broker 1 has a full disk, 0 B of 40.0 MB free", "broker 2 has failed logs: invoice-3"]
