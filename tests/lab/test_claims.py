"""A claim that the figures do not bear out is reported as such. The figures here are made up, and then spoiled."""

from dataclasses import replace
from typing import Any

import pytest

from klamm.lab.catalogue import EXPERIMENTS
from klamm.lab.keys import Found, keyed, with_gaps
from klamm.lab.measured import Measured
from tests.lab.figures import (
    ACKS,
    COMMITTED,
    FAILOVER,
    GOOD,
    GROUPS,
    ISR,
    KEYS,
    LOOKS,
    MIN_INSYNC,
    PLACED,
    RACKS,
)


def nth(values: tuple[Any, ...], index: int, **changes: Any) -> tuple[Any, ...]:
    """The same with one of them changed."""
    return tuple(replace(value, **changes) if place == index else value for place, value in enumerate(values))


SPOILED: dict[str, tuple[Measured, str]] = {
    "acks: nothing lost with 0": (
        replace(ACKS, tallies=nth(ACKS.tallies, 0, lost=0, readable=150)),
        "acks=0 lost records",
    ),
    "acks: nothing lost with 1": (
        replace(ACKS, tallies=nth(ACKS.tallies, 1, lost=0, readable=150)),
        "acks=1 lost records",
    ),
    "acks: the leader did not answer in time": (
        replace(ACKS, tallies=nth(ACKS.tallies, 1, acknowledged_before_the_leader_died=140)),
        "acks=1 lost records",
    ),
    "acks: one lost with all": (
        replace(ACKS, tallies=nth(ACKS.tallies, 2, lost=1, readable=149)),
        "acks=all acknowledged every record",
    ),
    "acks: one not acknowledged with all": (
        replace(ACKS, tallies=nth(ACKS.tallies, 2, acknowledged=149)),
        "acks=all acknowledged every record",
    ),
    "acks: one doubled with all": (
        replace(ACKS, tallies=nth(ACKS.tallies, 2, doubled=1, readable=151)),
        "acks=all acknowledged every record",
    ),
    "acks: counts that do not add up": (
        replace(ACKS, tallies=nth(ACKS.tallies, 0, readable=90)),
        "what is lost is what is missing",
    ),
    "acks: the followers were out": (replace(ACKS, in_sync_when_the_leader_died=(3,)), "the followers were in sync"),
    "committed: a consumer saw it": (replace(COMMITTED, seen_while_uncommitted=1), "no consumer saw it"),
    "committed: the watermark moved": (
        replace(COMMITTED, moments=nth(COMMITTED.moments, 1, high_watermark=8)),
        "the high watermark stayed",
    ),
    "committed: a follower had it": (
        replace(COMMITTED, moments=nth(COMMITTED.moments, 1, log_ends={3: 8, 4: 8, 5: 8})),
        "the high watermark stayed",
    ),
    "committed: the old leader leads": (
        replace(COMMITTED, moments=nth(COMMITTED.moments, 2, leader=3)),
        "a follower leads",
    ),
    "committed: not truncated": (
        replace(COMMITTED, moments=nth(COMMITTED.moments, 3, log_ends={3: 8, 4: 7, 5: 7})),
        "was truncated",
    ),
    "committed: as long, and not alike": (replace(COMMITTED, replicas_are_alike=False), "was truncated"),
    "committed: read in the end": (
        replace(COMMITTED, seen_in_the_end=(*COMMITTED.seen_in_the_end[:-1], "uncommitted 0")),
        "never anything else",
    ),
    "isr: it never left": (replace(ISR, looks=(*LOOKS[:2], LOOKS[3])), "left the in-sync replicas"),
    "isr: it left at once": (replace(ISR, left_after_seconds=0.1), "left the in-sync replicas"),
    "isr: nobody waited": (replace(ISR, longest_silence_seconds=0.1), "acks=all waited"),
    "isr: nothing went on": (replace(ISR, acknowledged_without_it=0), "acks=all waited"),
    "isr: it did not return": (replace(ISR, looks=LOOKS[:3]), "let in again"),
    "isr: it did not catch up": (replace(ISR, log_ends={0: 900, 1: 900, 2: 899}), "let in again"),
    "isr: one lost": (replace(ISR, lost=1), "none is lost"),
    "min-insync: taken by too few": (
        replace(MIN_INSYNC, steps=nth(MIN_INSYNC.steps, 2, acks_all="ok")),
        "with fewer it is refused",
    ),
    "min-insync: refused for another reason": (
        replace(MIN_INSYNC, steps=nth(MIN_INSYNC.steps, 2, acks_all="_MSG_TIMED_OUT")),
        "with fewer it is refused",
    ),
    "min-insync: refused by enough": (
        replace(MIN_INSYNC, steps=nth(MIN_INSYNC.steps, 1, acks_all="NOT_ENOUGH_REPLICAS")),
        "with 2 or more",
    ),
    "min-insync: acks 1 refused": (
        replace(MIN_INSYNC, steps=nth(MIN_INSYNC.steps, 2, acks_1="NOT_ENOUGH_REPLICAS")),
        "acks=1 goes on",
    ),
    "min-insync: not readable": (
        replace(MIN_INSYNC, steps=nth(MIN_INSYNC.steps, 2, readable=3)),
        "reads go on",
    ),
    "min-insync: committed by one": (
        replace(MIN_INSYNC, steps=nth(MIN_INSYNC.steps, 2, readable=5)),
        "is not committed",
    ),
    "failover: nobody took over": (replace(FAILOVER, next_leader=0), "took over"),
    "failover: one lost": (replace(FAILOVER, lost=1, readable=599), "none is lost"),
    "failover: one doubled": (replace(FAILOVER, doubled=1, readable=601), "none is doubled"),
    "failover: the consumer stopped": (replace(FAILOVER, read_meanwhile=300), "the consumer went on"),
    "failover: it did not lead again": (replace(FAILOVER, last_leader=1), "leads again"),
    "failover: it did not come back in sync": (replace(FAILOVER, looks=LOOKS[:3]), "leads again"),
    "keys: one misplaced": (replace(KEYS, misplaced=1), "names its partition"),
    "keys: a key in two partitions": (
        replace(
            KEYS,
            keyed=nth(KEYS.keyed, 0, partitions_of_key={**KEYS.keyed[0].partitions_of_key, "STR003": (0, 3)}),
        ),
        "murmur2",
    ),
    "keys: out of order": (replace(KEYS, keyed=nth(KEYS.keyed, 1, keys_out_of_order=("STR001",))), "consistent"),
    "keys: an empty partition": (replace(KEYS, without_key={0: 100, 1: 70, 2: 0, 3: 70}), "without a key"),
    "keys: a gap": (replace(KEYS, partitions_with_gaps=("by-murmur2-1",)), "counts its own records"),
    "groups: one reads all": (
        replace(GROUPS, rounds=nth(GROUPS.rounds, 0, shares={"a": (0, 1, 2, 3), "b": ()})),
        "fewer members",
    ),
    "groups: one of four idle": (
        replace(GROUPS, rounds=nth(GROUPS.rounds, 1, shares={"a": (0,), "b": (1,), "c": (2, 3), "d": ()})),
        "as many",
    ),
    "groups: nobody idle": (replace(GROUPS, rounds=(*GROUPS.rounds[:2], *GROUPS.rounds[1:3])), "more:"),
    "groups: read by somebody else": (
        replace(GROUPS, rounds=nth(GROUPS.rounds, 1, readers={0: ("a", "b"), 1: ("b",), 2: ("c",), 3: ("d",)})),
        "by one member at a time",
    ),
    "groups: not handed over": (
        replace(GROUPS, rounds=nth(GROUPS.rounds, 3, shares={"b": (1,), "c": (2,), "d": (3,), "e": ()})),
        "is killed",
    ),
    "groups: one missed": (replace(GROUPS, read_by_the_first_group=159), "the first group"),
    "groups: one read twice": (replace(GROUPS, read_twice_by_the_first_group=1), "the first group"),
    "groups: the second group missed one": (replace(GROUPS, read_by_the_second_group=159), "the second group"),
    "racks: placed elsewhere": (replace(RACKS, placed=nth(PLACED, 4, replicas=(2, 5, 1))), "position (p + j)"),
    "racks: one rack only": (replace(RACKS, placed=nth(PLACED, 4, replicas=(2, 1, 0))), "in both racks"),
    "racks: twice on a broker": (replace(RACKS, placed=nth(PLACED, 4, replicas=(2, 5, 2))), "two replicas"),
    "racks: uneven": (replace(RACKS, placed=nth(nth(PLACED, 1, leader=0), 7, leader=0)), "differ by at most one"),
    "racks: no leader": (
        replace(RACKS, without_the_rack=nth(RACKS.without_the_rack, 9, leader=-1)),
        "every partition has a leader",
    ),
    "racks: led by the dead": (
        replace(RACKS, without_the_rack=nth(RACKS.without_the_rack, 1, leader=3)),
        "every partition has a leader",
    ),
    "racks: one lost": (replace(RACKS, lost=1), "none is lost"),
    "racks: led by another afterwards": (replace(RACKS, returned=nth(PLACED, 0, leader=3)), "as it was before"),
}


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_good_figures_bear_every_claim_out(name: str) -> None:
    assert [claim for claim in GOOD[name].claims() if not claim.holds] == []
    assert GOOD[name].holds


@pytest.mark.parametrize("what", SPOILED)
def test_spoiled_figures_break_the_claim_that_rests_on_them(what: str) -> None:
    measured, claim = SPOILED[what]
    broken = [each.text for each in measured.claims() if not each.holds]
    assert any(claim in text for text in broken), broken
    assert not measured.holds


def test_every_claim_can_be_broken() -> None:
    """Each claim of each experiment is broken by one of the cases above."""
    broken = {each.text for measured, _ in SPOILED.values() for each in measured.claims() if not each.holds}
    claimed = {claim.text for good in GOOD.values() for claim in good.claims()}
    assert claimed - broken == set()


def test_where_keys_are_found() -> None:
    found = [Found(0, 0, "STR000", 0), Found(0, 1, "STR001", 1), Found(0, 2, "STR000", 12), Found(1, 0, "STR001", 13)]
    assert keyed("any", found).partitions_of_key == {"STR000": (0,), "STR001": (0, 1)}
    assert keyed("any", found).keys_out_of_order == ()
    swapped = [Found(0, 0, "STR000", 12), Found(0, 1, "STR000", 0)]
    assert keyed("any", swapped).keys_out_of_order == ("STR000",)


def test_gaps_in_offsets() -> None:
    assert with_gaps([Found(0, 0, "", 0), Found(1, 0, "", 1), Found(0, 1, "", 2)]) == []
    assert with_gaps([Found(0, 0, "", 0), Found(1, 1, "", 1), Found(0, 2, "", 2)]) == [0, 1]
