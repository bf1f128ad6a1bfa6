"""Runs that once broke a promise, each with what it taught, the first few of all, and some that nobody has seen.

A fresh seed that fails is a finding: its number is in the message, and it belongs among the pinned ones. They are drawn
without groups, for those have not stood as many runs yet.

Seeds mean other runs whenever faults or workload are drawn differently; what older ones taught has tests of its own
(docs/proof.md tells where).
"""

from random import SystemRandom

import pytest

from klamm.sim.many import outcome_of
from klamm.sim.plan import FORGED_FAULTS, Plan, drawn_plan

PINNED = {
    21: "a follower that was registered again within one life was never in sync again where nothing moved",
    66: "a log that is damaged in its middle stays offline until somebody gives the machine an empty disk",
    195: "a blackout, and the last known leader's disk is lost besides: the budget must not allow it",
    350: "a directory that was being made when its process was killed was taken for damage, and trust was lost",
    401: "a disk that is about to fail counts as one that has",
    471: "after a blackout nothing is promised of a compacted topic either",
    1051: "damage found at the start cost the trust in all that was written later",
    1327: "a producer that begins anew may be overtaken by what it had under way before",
    700286: "an earlier topic of the same name, of which a checkpoint still told, was taken for damage",
    1852: "a leader waited for metadata that a deposed controller had promised, and its in-sync replicas froze",
    904255: "a follower that was cut, and heard next that all is deleted, forgot its producers",
    802020: "a follower that had lost its tail told a consumer that its history was another",
    801897: "a voter acknowledged and then lost its disk: under the new one it is no voter, so what it had counts",
    1631: "a follower forgot its producers when the leader deleted all that they had written",
}
"""A seed that once failed, and what it taught; all of them before there were groups, or anybody who forges requests."""

PINNED_WITH_GROUPS = {
    1000346: "a static member succeeded one that waited for its assignment, and nobody ever got anything",
    1050198: "what a classic member had still to give up was forgotten when its group became classic, and given away",
    1040202: "a coordinator wrote down what a member owns in the last moment, and was taken for one that parted",
    1030554: "a consumer asked one that led once, with the epoch of one that led later, and took its word",
    1073551: "a replica that had not heard from its leader yet ended where the leader did, with other records",
    1070126: "a member heard late that it owns something, and its group had begun anew with the first epoch",
    1070100: "who led until the last moment had what nobody else has, and had not dropped it when all was over",
    1061414: "a record was deleted by age before its producer sent it again, to a replica that began behind it",
    1060673: "a leader without room on its disk heard that fewer are in sync; what that committed was not noted",
    1002753: "damage was found and mended, and the node stopped cleanly before the controller had heard of it",
}

FRESH = 3


def check(plan: Plan) -> None:
    outcome = outcome_of(plan)
    less = "" if plan.groups else " --without groups"
    command = f"klamm sim --seed {plan.seed}{less} --verbose"
    assert outcome.failure is None, f"{command}\n" + "\n".join(outcome.story[-60:])


@pytest.mark.parametrize("seed", PINNED)
def test_a_run_that_once_failed(seed: int) -> None:
    check(drawn_plan(seed, with_groups=False).without(*FORGED_FAULTS))


@pytest.mark.parametrize("seed", PINNED_WITH_GROUPS)
def test_a_run_with_groups_that_once_failed(seed: int) -> None:
    check(drawn_plan(seed).without(*FORGED_FAULTS))


@pytest.mark.parametrize("seed", range(8))
def test_the_first_seeds(seed: int) -> None:
    check(drawn_plan(seed))


@pytest.mark.parametrize("turn", range(FRESH))
def test_a_fresh_seed(turn: int) -> None:
    check(drawn_plan(SystemRandom().randrange(1_000_000, 1_000_000_000), with_groups=False))
