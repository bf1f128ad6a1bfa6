"""What takes long to look at is looked at in slices, also where there is nothing to say of it."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import cast

from klamm.runtime.metrics import groups
from klamm.runtime.metrics.family import GAUGE, Family, Sample, Seen
from klamm.runtime.metrics.page import in_pieces
from klamm.runtime.metrics.tally import SLICE
from tests.broker.groups_world import GroupsWorld, commit, joined, synced, the_topic_is_that_of_the_offsets
from tests.metrics.scraping import parsed

__all__ = ["the_topic_is_that_of_the_offsets"]


def seen_by(world: GroupsWorld) -> Seen:
    """As much of it as the families of groups look at."""
    return cast(Seen, SimpleNamespace(broker=world[0].broker))


def test_a_piece_ends_after_a_slice_of_which_nothing_is_said() -> None:
    looked_at = 0

    def gather(seen: Seen) -> Iterator[Sample | None]:
        nonlocal looked_at
        for number in range(10 * SLICE):
            looked_at += 1
            yield ("", 7) if number == 5 * SLICE else None

    family = Family("rare", GAUGE, "Seldom.", (), gather)
    pieces, before = [], 0
    for piece in in_pieces([family], seen_by(GroupsWorld())):
        assert looked_at - before <= SLICE
        before = looked_at
        pieces.append(piece)
    assert looked_at == 10 * SLICE and len(pieces) > 10
    assert parsed("".join(pieces)).value("rare") == 7


def test_offsets_of_partitions_held_elsewhere_are_looked_at_one_by_one() -> None:
    world = GroupsWorld()
    world.create("elsewhere", 50)
    for partition in range(50):
        commit(world[0], 3, partition, "elsewhere", "a group")
    world.settle_all()
    seen = seen_by(world)
    assert list(groups.lag(seen)) == [None] * 50
    assert [sample and sample[1] for sample in groups.positions(seen)] == [3] * 50


def test_a_group_without_offsets_is_looked_at_too() -> None:
    world = GroupsWorld()
    first = joined(world[0])
    world.settle_all()
    world.pass_ms(3_000)
    world.settle_all()
    synced(world[0], first[0])
    world.settle_all()
    seen = seen_by(world)
    (count,) = groups.group_count(seen)
    assert count == ("", 1)
    assert list(groups.lag(seen)) == list(groups.positions(seen)) == [None]
