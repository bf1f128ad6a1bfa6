"""What happened between two looks, in the words that people read."""

from dataclasses import replace

from klamm.local.happenings import happenings, roughly
from klamm.local.view import PartitionSeen
from klamm.local.view import without as without_gone
from tests.local.looks import grown, healthy, place, without


def test_nothing_happened() -> None:
    assert happenings(healthy(), grown(healthy(), 500)) == []


def test_a_broker_dies_and_others_lead() -> None:
    assert happenings(healthy(), without(healthy(), 0)) == [
        "broker 0 is dead",
        "broker 3 leads invoice-0 and invoice-6 now, not broker 0",
        "broker 0 left the ISR of invoice-0, invoice-4, invoice-5 and invoice-6",
    ]


def test_who_was_asked_to_end_is_stopped_and_not_dead() -> None:
    ended = replace(healthy(), states={**healthy().states, 1: "dead", 6: "dead"}, stopped=frozenset({6}))
    assert happenings(healthy(), ended) == ["broker 1 is dead", "witness 6 is stopped"]


def test_a_broker_falls_behind_while_its_leader_goes_on() -> None:
    """It stands still: what it has is what it had, and what it lacks is what was written since."""
    before = replace(healthy(), states={**healthy().states, 3: "paused"})
    shrunk = PartitionSeen("invoice", 0, 0, (0, 3, 1), (0, 1))
    after = grown(replace(before, partitions={**before.partitions, place(0): shrunk}), 12_400)
    assert happenings(before, after) == ["broker 3 left the ISR of invoice-0: 12,400 records behind"]


def test_a_broker_returns_first_here_then_everywhere() -> None:
    gone = without(healthy(), 0)
    some = replace(
        gone,
        states=healthy().states,
        partitions={**gone.partitions, **{place(each): healthy().partitions[place(each)] for each in (0, 6)}},
    )
    assert happenings(gone, some) == [
        "broker 0 runs again",
        "broker 0 leads invoice-0 and invoice-6 now, not broker 3",
        "broker 0 is in sync again in invoice-0 and invoice-6",
    ]
    assert happenings(some, healthy()) == ["broker 0 is back in sync everywhere"]


def test_pauses_and_the_quorum() -> None:
    still = replace(healthy(), states={**healthy().states, 0: "paused"}, controller=6, quorum_epoch=5)
    assert happenings(healthy(), still) == ["broker 0 is paused", "witness 6 leads the quorum now (epoch 5)"]
    on = replace(healthy(), controller=3, quorum_epoch=6)
    assert happenings(still, on) == ["broker 0 goes on", "broker 3 leads the quorum now (epoch 6)"]


def test_without_a_majority_nobody_leaves_and_the_dead_do_not_come_back() -> None:
    """Voters are 0, 3 and 6. What brokers say of those that are dead is from before."""
    heard = {key: without_gone(each, (0, 3)) for key, each in healthy().partitions.items()}
    lost = replace(healthy(), states={**healthy().states, 0: "dead", 3: "dead"}, partitions=heard)
    assert happenings(healthy(), lost) == [
        "broker 0 is dead",
        "broker 3 is dead",
        "1 of 3 voters runs: no majority, so nothing can be decided",
        "invoice-0, invoice-6, invoice-1 and invoice-7 have no leader",
    ]
    back = replace(lost, states={**healthy().states, 0: "dead"}, quorum_epoch=5, controller=3)
    assert happenings(lost, back) == [
        "broker 3 runs again",
        "2 of 3 voters run: the quorum has its majority again",
        "broker 3 leads the quorum now (epoch 5)",
    ]
    stale = replace(back, partitions=healthy().partitions)
    assert happenings(back, stale) == [
        "broker 3 leads invoice-1 and invoice-7 now",
        "broker 3 is back in sync everywhere",
    ]


def test_topics_come_and_go_and_lose_their_leaders() -> None:
    new = replace(
        healthy(), partitions={**healthy().partitions, place(0, "other"): PartitionSeen("other", 0, 5, (5,), (5,))}
    )
    assert happenings(healthy(), new) == ["topic other is new: 1 partition, 1 replica"]
    assert happenings(new, healthy()) == ["topic other is deleted"]
    lost = replace(new, partitions={**new.partitions, place(0, "other"): PartitionSeen("other", 0, -1, (5,), (5,))})
    assert happenings(new, lost) == ["other-0 has no leader"]


def test_what_befalls_many_partitions_is_one_sentence() -> None:
    """Those of the brokers' own topics are counted, not named."""

    def led_by(leader: int) -> dict:  # type: ignore[type-arg]
        own = {place(each): PartitionSeen("invoice", each, leader, (0, 1), (0, 1)) for each in range(9)}
        internal = {
            place(each, "__consumer_offsets"): PartitionSeen("__consumer_offsets", each, leader, (0, 1), (0, 1), True)
            for each in range(50)
        }
        return own | internal

    before, after = (replace(healthy(), partitions=led_by(leader)) for leader in (0, 1))
    assert happenings(before, after) == [
        "broker 1 leads invoice-0, invoice-1, invoice-2, invoice-3, 5 more and 50 internal ones now, not broker 0"
    ]


def test_leadership_that_moves_between_many_at_one_moment_is_one_sentence() -> None:
    """Else the sentences about who leads would push out the one that says who died."""

    def led(*leaders: int) -> dict:  # type: ignore[type-arg]
        return {place(each): PartitionSeen("invoice", each, leader, (), ()) for each, leader in enumerate(leaders)}

    def said(before: dict, after: dict) -> list[str]:  # type: ignore[type-arg]
        return happenings(replace(healthy(), partitions=before), replace(healthy(), partitions=after))

    assert said(led(4, 4, 4, 4), led(1, 3, 5, -1)) == [
        "invoice-3 has no leader",
        "brokers 1, 3 and 5 lead invoice-0, invoice-1 and invoice-2 now, not broker 4",
    ]
    assert said(led(1, 3, 5, -1), led(4, 4, 4, 4)) == [
        "broker 4 leads invoice-0, invoice-1, invoice-2 and invoice-3 now, not brokers 1, 3 and 5"
    ]
    assert said(led(0, 1, 2), led(1, 2, 0)) == ["brokers 0, 1 and 2 lead invoice-0, invoice-1 and invoice-2 now"]


def test_what_comes_first_is_told_first() -> None:
    new = {**without(healthy(), 0).partitions, place(0, "other"): PartitionSeen("other", 0, 5, (5,), (5,))}
    assert happenings(healthy(), replace(without(healthy(), 0), partitions=new))[:2] == [
        "topic other is new: 1 partition, 1 replica",
        "broker 0 is dead",
    ]


def test_numbers_that_are_estimates_do_not_pretend() -> None:
    assert [roughly(each) for each in (1, 870, 1_234, 12_437, 1_999_999)] == [
        "1",
        "870",
        "1,230",
        "12,400",
        "2,000,000",
    ]
