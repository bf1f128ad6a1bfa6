"""Who is read on when unfinished frames have used up their room, told with connections that are only numbers."""

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from klamm.runtime.room import MOST_PATIENCE_MS, PASSED_OVER_BYTES, SILENT_MS, SMALL_READ, Room

MEBIBYTE = 1 << 20
LIMIT = 64 * MEBIBYTE
FRAME = 100 * MEBIBYTE


@dataclass(eq=False)
class Peer:
    id: int
    counted_bytes: int = 0
    active_ms: float = 0.0
    may_be_read: bool = True
    has_said_more: bool = False


@dataclass
class House:
    """A room that is used up by somebody who holds all of it, whole frames that nobody has taken yet."""

    now_ms: float = 1_000_000.0
    changed: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.room = Room[Peer](LIMIT, lambda peer: self.changed.append(peer.id))
        self.owner = Peer(0)
        self.room.note(self.owner, 0, LIMIT, self.now_ms)

    def says(self, peer: Peer, unfinished_bytes: int) -> None:
        """It was read, and its unfinished frame is as long by now."""
        peer.active_ms = self.now_ms
        self.room.note(peer, unfinished_bytes, unfinished_bytes, self.now_ms)

    def later(self, ms: float) -> list[int]:
        """Who is closed when it looks then."""
        self.now_ms += ms
        return [peer.id for peer in self.room.look(self.now_ms)]


def test_one_is_favoured_and_the_others_wait_once_they_hold_more_than_a_little() -> None:
    house, first, second, third = House(), Peer(1), Peer(2), Peer(3)
    house.says(first, MEBIBYTE)
    house.says(second, MEBIBYTE)
    house.says(third, SMALL_READ)
    assert [house.room.is_starved(each) for each in (first, second, third)] == [False, True, False]
    assert [house.room.is_short_for(each) for each in (first, second, third)] == [False, True, True]


def test_whoever_is_done_hands_its_favour_to_the_first_who_has_something_to_say() -> None:
    house, first, second, third = House(), Peer(1), Peer(2), Peer(3, has_said_more=True)
    for each in (first, second, third):
        house.says(each, MEBIBYTE)
    house.says(first, 0)
    assert house.room.is_starved(second) and not house.room.is_starved(third)


def test_a_silent_favourite_is_passed_over_and_heard_again_in_its_turn() -> None:
    """Its peer may wait seconds before it sends again what was lost; thousands would wait for each in turn."""
    house, first, second = House(), Peer(1), Peer(2, has_said_more=True)
    house.says(first, MEBIBYTE)
    house.says(second, MEBIBYTE)
    assert house.later(SILENT_MS) == []
    assert house.room.is_starved(first) and not house.room.is_starved(second)
    first.has_said_more, second.has_said_more = True, False
    assert house.later(SILENT_MS) == []
    assert house.room.is_starved(second) and not house.room.is_starved(first)


def test_a_favourite_that_speaks_or_was_just_favoured_stays() -> None:
    house, first, second = House(), Peer(1, active_ms=0.0), Peer(2, has_said_more=True)
    house.says(first, MEBIBYTE)
    house.says(second, MEBIBYTE)
    house.later(SILENT_MS / 2)
    assert not house.room.is_starved(first), "not silent for long"
    first.has_said_more = True
    house.later(MOST_PATIENCE_MS * 2)
    assert not house.room.is_starved(first), "only not read yet"


def test_where_nobody_else_has_something_to_say_the_silent_one_stays_for_ever() -> None:
    house, first, second = House(), Peer(1), Peer(2)
    house.says(first, MEBIBYTE)
    house.says(second, MEBIBYTE)
    assert house.later(MOST_PATIENCE_MS * 10) == []
    assert house.room.is_starved(second)


def test_one_too_large_to_be_passed_over_is_closed_when_it_has_been_silent_for_long() -> None:
    house, first, second = House(), Peer(1), Peer(2, has_said_more=True)
    house.says(first, PASSED_OVER_BYTES + 1)
    house.says(second, MEBIBYTE)
    assert house.later(MOST_PATIENCE_MS) == []
    assert not house.room.is_starved(first)
    assert house.later(1) == [1]
    house.room.forget(first, house.now_ms)
    assert not house.room.is_starved(second)


def test_all_that_were_silent_too_long_are_closed_together_when_no_more_may_be_passed_over() -> None:
    """One after the other, ten seconds each, the silence of thousands would last for hours."""
    house = House()
    silent = [Peer(number, has_said_more=True) for number in range(1, 20)]
    for each in silent:
        house.says(each, MEBIBYTE)
    most = PASSED_OVER_BYTES // MEBIBYTE + 1
    for each in silent[:most]:
        each.has_said_more = False
        assert house.later(SILENT_MS) == []
    assert [each.id for each in silent if not house.room.is_starved(each)] == [most]
    assert house.later(MOST_PATIENCE_MS * 2) == list(range(1, most + 1))


def test_at_the_bound_one_who_was_passed_over_is_heard_in_exchange() -> None:
    house, first, second = House(), Peer(1), Peer(2, has_said_more=True)
    third = Peer(3, has_said_more=True)
    house.says(first, PASSED_OVER_BYTES // 2)
    house.says(second, MEBIBYTE)
    house.says(third, MEBIBYTE)
    house.later(SILENT_MS)
    house.says(second, PASSED_OVER_BYTES // 2 + MEBIBYTE)
    second.has_said_more = False
    house.later(SILENT_MS)
    assert not house.room.is_starved(second), "it and the first one together are too much"
    first.has_said_more = True
    house.later(SILENT_MS)
    assert house.room.is_starved(second) and not house.room.is_starved(first)


def test_everybody_is_read_again_once_there_is_room() -> None:
    house, favoured, waiting = House(), Peer(1), Peer(2)
    house.says(favoured, MEBIBYTE)
    house.says(waiting, MEBIBYTE)
    assert house.room.is_contested and house.room.is_starved(waiting)
    house.room.forget(house.owner, house.now_ms)
    assert not house.room.is_contested and not house.room.is_starved(waiting)
    assert not house.room.is_short_for(waiting)
    assert house.changed == [2, 2]


@given(st.lists(st.tuples(st.integers(0, 7), st.booleans(), st.booleans(), st.booleans()), max_size=300))
def test_whatever_they_say_they_hold_no_more_than_the_room_one_frame_and_what_was_passed_over(
    told: list[tuple[int, bool, bool, bool]],
) -> None:
    """Eight peers that announced a hundred mebibytes each and say, are silent, or go away as they like."""
    changed: list[int] = []
    room = Room[Peer](LIMIT, lambda peer: changed.append(peer.id))
    peers = [Peer(number) for number in range(8)]
    now_ms = 0.0
    for number, speaks, waits, leaves in told:
        peer = peers[number]
        peer.has_said_more = waits
        if leaves:
            room.forget(peer, now_ms)
        elif speaks and not room.is_starved(peer):
            more = SMALL_READ if room.is_short_for(peer) else 20 * MEBIBYTE
            peer.active_ms, grown = now_ms, min(FRAME, peer.counted_bytes + more)
            room.note(peer, grown, grown, now_ms)
        now_ms += SILENT_MS
        for closed in room.look(now_ms):
            room.forget(closed, now_ms)
        most = LIMIT + FRAME + PASSED_OVER_BYTES + len(peers) * 2 * SMALL_READ
        assert sum(each.counted_bytes for each in peers) <= most
