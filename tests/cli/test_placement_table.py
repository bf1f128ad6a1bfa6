"""The table of S8, and what becomes of it when brokers fail."""

from dataclasses import replace

from klamm.cli.placement_table import cells, headings, rows_of
from klamm.controller.placement import Candidate, Load, placements
from klamm.local.view import BrokerSeen, ClusterSeen, PartitionSeen

BROKERS = tuple(
    BrokerSeen(number, "R1" if number < 3 else "R2", "127.0.0.1", 19092 + number, is_fenced=False)
    for number in range(6)
)
CANDIDATES = [Candidate(each.broker_id, each.rack) for each in BROKERS]
INVOICE = ClusterSeen(
    "an-id",
    0,
    BROKERS,
    tuple(
        PartitionSeen("invoice", number, replicas[0], replicas, replicas)
        for number, replicas in enumerate(placements(CANDIDATES, Load(), 10, 3))
    ),
)


def lines(seen: ClusterSeen) -> list[list[str]]:
    return [cells(row) for row in rows_of(seen)]


def test_the_table_of_s8() -> None:
    """`invoice`, 10 partitions, 3 replicas each, on a new cluster of six brokers in two racks."""
    assert headings(3) == ["broker", "leads", "first follower of", "second follower of"]
    assert lines(INVOICE) == [
        ["R1-B0", "P0 P6", "P5", "P4"],
        ["R2-B3", "P1 P7", "P0 P6", "P5"],
        ["R1-B1", "P2 P8", "P1 P7", "P0 P6"],
        ["R2-B4", "P3 P9", "P2 P8", "P1 P7"],
        ["R1-B2", "P4", "P3 P9", "P2 P8"],
        ["R2-B5", "P5", "P4", "P3 P9"],
    ]


def test_a_broker_that_is_down_follows_out_of_sync() -> None:
    """Broker 0 is dead: its leaderships moved to the next in sync, and it is behind everywhere."""

    def without_0(each: PartitionSeen) -> PartitionSeen:
        in_sync = tuple(replica for replica in each.replicas if replica != 0)
        return replace(each, in_sync=in_sync, leader=in_sync[0])

    brokers = (replace(BROKERS[0], is_fenced=True), *BROKERS[1:])
    seen = replace(INVOICE, brokers=brokers, partitions=tuple(map(without_0, INVOICE.partitions)))
    assert lines(seen)[:2] == [
        ["R1-B0 (fenced)", "", "P0! P5! P6!", "P4!"],
        ["R2-B3", "P0 P1 P6 P7", "", "P5"],
    ]


def test_the_replicas_of_a_partition_without_a_leader_keep_their_places() -> None:
    """There is no follower more for it. Where it would be led it stands in parentheses."""
    partitions = (PartitionSeen("invoice", 0, -1, (0, 3), (3,)), PartitionSeen("invoice", 1, 3, (3, 0), (3, 0)))
    found = lines(replace(INVOICE, partitions=partitions))
    assert found[0] == ["R1-B0", "(P0!)", "P1"]
    assert found[1] == ["R2-B3", "P1", "P0"]


def test_a_broker_that_was_unregistered_still_has_its_row() -> None:
    partition = PartitionSeen("invoice", 0, 9, (9,), (9,))
    found = lines(replace(INVOICE, partitions=(partition,)))
    assert ["B9 (fenced)", "P0"] in found and len(found) == 7


def test_many_followers_have_names_too() -> None:
    assert headings(11)[-1] == "10th follower of"
