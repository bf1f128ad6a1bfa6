"""Who is read on when unfinished frames have used up their room, told with connections that are only numbers."""

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from klamm.runtime.room import (
    MOST_PATIENCE_MS,
    MOST_TURNS_IN_VAIN,
    ORDINARY_BYTES,
    PASSED_OVER_BYTES,
    SILENT_MS,
    SMALL_READ,
    Room,
)

MEBIBYTE = 1 << 20
LIMIT = 64 * MEBIBYTE
FRAME = 100 * MEBIBYTE


@dataclass(eq=False)
class Peer:
    id: int
    counted_bytes: int = 0
    frame_bytes: int = FRAME
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
    house, first, second = House(), Peer(1), Peer(2, has_said_more=True)
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


def test_an_ordinary_request_goes_before_all_who_announced_a_large_one() -> None:
    """Sixty connections announce a hundred mebibytes, and say twenty of them each. The room is theirs; but somebody who
    needs less than a mebibyte is read on at once, in the turn in which it was starved, and nobody is closed."""
    house, large = House(), [Peer(number, has_said_more=True) for number in range(1, 61)]
    for each in large:
        house.says(each, MEBIBYTE)
    house.says(large[0], 20 * MEBIBYTE)
    honest = Peer(100, frame_bytes=900_000)
    house.says(honest, 100_000)
    assert not house.room.is_starved(honest) and not house.room.is_short_for(honest)
    assert house.room.is_starved(large[0])
    house.says(honest, 0)
    assert not house.room.is_starved(large[0]), "it was only interrupted"
    assert all(house.room.is_starved(each) for each in large[1:])


def test_another_nodes_answer_goes_before_large_requests_of_any_announced_size() -> None:
    house, large, node = House(), Peer(1), Peer(-1)
    house.says(large, MEBIBYTE)
    house.says(node, MEBIBYTE)
    assert not house.room.is_starved(node)


def test_ordinary_requests_do_not_interrupt_one_another_and_one_large_one_at_a_time() -> None:
    house, large = House(), Peer(1)
    first, second = Peer(2, frame_bytes=MEBIBYTE), Peer(3, frame_bytes=MEBIBYTE, has_said_more=True)
    house.says(large, MEBIBYTE)
    house.says(first, SMALL_READ + 1)
    house.says(second, SMALL_READ + 1)
    assert [house.room.is_starved(each) for each in (large, first, second)] == [True, False, True]
    house.says(first, 0)
    assert [house.room.is_starved(each) for each in (large, second)] == [True, False]
    house.says(second, 0)
    assert not house.room.is_starved(large)


def test_ordinary_requests_that_stall_are_passed_over_and_at_the_bound_closed() -> None:
    """However many there are: as much as may be passed over, and then two seconds, for all of them together."""
    house = House()
    stalled = [Peer(number, frame_bytes=ORDINARY_BYTES, has_said_more=True) for number in range(1, 40)]
    for each in stalled:
        house.says(each, MEBIBYTE)
    for each in stalled:
        each.has_said_more = False
    honest = Peer(100, frame_bytes=900_000, has_said_more=True)
    house.says(honest, SMALL_READ + 1)
    assert house.later(SILENT_MS) == [] and not house.room.is_starved(honest)
    house.says(honest, 0)
    house.says(stalled[1], PASSED_OVER_BYTES)
    house.says(honest, SMALL_READ + 1)
    assert house.room.is_starved(honest) and house.later(SILENT_MS) == []
    closed = house.later(MOST_PATIENCE_MS)
    assert sorted(closed) == [each.id for each in stalled]


def test_a_little_now_and_then_is_no_progress() -> None:
    """It always has something to say, and never gets on: after some turns it is closed like one that is silent."""
    house, dribbling = House(), Peer(1, frame_bytes=FRAME)
    waiting = Peer(2, frame_bytes=FRAME, has_said_more=True)
    house.says(dribbling, MEBIBYTE)
    house.says(waiting, MEBIBYTE)
    size = MEBIBYTE
    for _ in range(MOST_TURNS_IN_VAIN):
        for _ in range(3):
            size += 1
            house.says(dribbling, size)
            house.now_ms += SILENT_MS / 2
        assert house.later(0) == [] and house.room.is_starved(dribbling)
        dribbling.has_said_more, waiting.has_said_more = True, False
        house.says(waiting, waiting.counted_bytes + SMALL_READ)
        assert house.later(SILENT_MS) == [] and not house.room.is_starved(dribbling)
        dribbling.has_said_more, waiting.has_said_more = False, True
    house.says(waiting, PASSED_OVER_BYTES + MEBIBYTE)
    house.later(SILENT_MS)
    dribbling.has_said_more, waiting.has_said_more = True, False
    assert 1 in house.later(MOST_PATIENCE_MS + 1)


@given(st.lists(st.tuples(st.integers(0, 7), st.booleans(), st.booleans(), st.booleans()), max_size=300))
def test_whatever_they_say_they_hold_no_more_than_the_room_one_frame_and_what_was_passed_over(
    told: list[tuple[int, bool, bool, bool]],
) -> None:
    """Eight peers that announced a hundred mebibytes each, or two, and say, are silent, or go away as they like."""
    changed: list[int] = []
    room = Room[Peer](LIMIT, lambda peer: changed.append(peer.id))
    peers = [Peer(number, frame_bytes=FRAME if number < 5 else ORDINARY_BYTES) for number in range(8)]
    now_ms = 0.0
    for number, speaks, waits, leaves in told:
        peer = peers[number]
        peer.has_said_more = waits
        if leaves:
            room.forget(peer, now_ms)
        elif speaks and not room.is_starved(peer):
            more = SMALL_READ if room.is_short_for(peer) else 20 * MEBIBYTE
            grown = min(peer.frame_bytes, peer.counted_bytes + more)
            room.note(peer, grown, grown, now_ms)
        now_ms += SILENT_MS
        for closed in room.look(now_ms):
            room.forget(closed, now_ms)
        most = LIMIT + FRAME + ORDINARY_BYTES + 2 * PASSED_OVER_BYTES + len(peers) * 2 * SMALL_READ
        assert sum(each.counted_bytes for each in peers) <= most
