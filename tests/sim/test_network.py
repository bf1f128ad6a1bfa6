"""The simulated network keeps the promises of TCP, and not one more."""

from itertools import count

from klamm.node.events import Closed, Event, Opened, Received, Refused
from klamm.sim.network import Host, Network
from klamm.sim.world import World


class Listener(Host):
    def __init__(self, name: str, port: int) -> None:
        super().__init__(name, port)
        self.heard: list[Event] = []
        self.takes_connections = True
        self._numbers = count(1)

    def accept(self) -> int:
        return next(self._numbers)

    def hear(self, event: Event) -> None:
        self.heard.append(event)

    def texts(self) -> list[bytes]:
        return [bytes(frame) for event in self.heard if isinstance(event, Received) for frame in event.frames]


def framed(text: bytes) -> bytes:
    return len(text).to_bytes(4, "big") + text


class Two:
    """Two hosts, the first connected to the second."""

    def __init__(self) -> None:
        self.world = World(7)
        self.network = Network(self.world)
        self.one, self.other = Listener("one", 1), Listener("other", 2)
        for host in (self.one, self.other):
            self.network.add(host)
        self.network.dial(self.one, -1, 2)
        self.run(10)
        assert isinstance(self.one.heard[0], Opened) and isinstance(self.other.heard[0], Opened)

    def run(self, milliseconds: float) -> None:
        self.world.run_until(self.world.now_ms + milliseconds)


def test_what_is_sent_arrives_in_order() -> None:
    two = Two()
    for number in range(100):
        two.network.send(two.one, -1, framed(b"%d" % number))
    two.run(100)
    assert two.other.texts() == [b"%d" % number for number in range(100)]


def test_several_frames_sent_at_once_arrive_as_frames() -> None:
    two = Two()
    two.network.send(two.other, 1, framed(b"a") + framed(b"bc"))
    two.run(10)
    assert two.one.texts() == [b"a", b"bc"]


def test_a_cut_link_holds_back_and_tells_nobody() -> None:
    two = Two()
    heal = two.network.cut(two.one, two.other)
    two.network.send(two.one, -1, framed(b"late"))
    two.network.send(two.other, 1, framed(b"back"))
    two.run(5_000)
    assert two.other.texts() == [] and two.one.texts() == [b"back"]
    heal()
    two.network.send(two.one, -1, framed(b"later"))
    two.run(1_000)
    assert two.other.texts() == [b"late", b"later"]


def test_answers_are_held_and_questions_are_not() -> None:
    two = Two()
    hear = two.network.hold_answers(two.other, two.one)
    two.network.dial(two.other, -1, 1)
    two.run(10)
    two.network.send(two.one, -1, framed(b"asked"))
    two.network.send(two.other, 1, framed(b"answered"))
    two.network.send(two.other, -1, framed(b"asked as well"))
    two.network.send(two.one, 1, framed(b"answered at once"))
    two.run(5_000)
    assert two.other.texts() == [b"asked", b"answered at once"] and two.one.texts() == [b"asked as well"]
    hear()
    two.run(1_000)
    assert two.one.texts() == [b"asked as well", b"answered"]


def test_cuts_add_up() -> None:
    two = Two()
    first, second = two.network.cut(two.one, two.other), two.network.cut(two.one, two.other)
    two.network.send(two.one, -1, framed(b"x"))
    first()
    two.run(1_000)
    assert two.other.texts() == []
    second()
    two.run(1_000)
    assert two.other.texts() == [b"x"]


def test_a_reset_is_heard_on_both_sides_and_nothing_arrives_after_it() -> None:
    two = Two()
    two.network.reset(two.one.ends[-1])
    two.run(10)
    two.network.send(two.one, -1, framed(b"x"))
    two.run(10)
    assert isinstance(two.one.heard[-1], Closed) and isinstance(two.other.heard[-1], Closed)


def test_who_closes_is_heard_after_what_it_sent() -> None:
    two = Two()
    two.network.send(two.one, -1, framed(b"goodbye"))
    two.network.close(two.one, -1)
    two.run(10)
    assert two.other.texts() == [b"goodbye"] and isinstance(two.other.heard[-1], Closed)
    assert not isinstance(two.one.heard[-1], Closed), "who closes knows"


def test_nobody_hears_that_the_power_is_gone_until_they_write_to_it() -> None:
    two = Two()
    two.network.power_lost(two.other)
    two.other.is_on = False
    two.network.send(two.one, -1, framed(b"x"))
    two.run(5_000)
    assert len(two.one.heard) == 1
    two.other.is_on = True
    two.network.send(two.one, -1, framed(b"y"))
    two.run(10)
    assert isinstance(two.one.heard[-1], Closed) and two.other.texts() == []


def test_a_process_that_does_not_run_refuses() -> None:
    two = Two()
    two.other.takes_connections = False
    two.network.dial(two.one, -2, 2)
    two.run(10)
    assert two.one.heard[-1] == Refused(-2, nobody_listens=True)


def test_a_dial_into_a_cut_is_tried_again_and_given_up() -> None:
    two = Two()
    heal = two.network.cut(two.one, two.other)
    two.network.dial(two.one, -2, 2)
    two.run(500)
    heal()
    two.run(1_000)
    assert isinstance(two.one.heard[-1], Opened)
    two.network.cut(two.one, two.other)
    two.network.dial(two.one, -3, 2)
    two.run(20_000)
    assert two.one.heard[-1] == Refused(-3, nobody_listens=False)


def test_on_a_slow_line_what_is_sent_stands_in_line() -> None:
    two = Two()
    heal = two.network.limit(two.other, bytes_a_second=1_000)
    for number in range(4):
        two.network.send(two.one, -1, framed(b"%d" % number * 100))
    two.run(250)
    assert len(two.other.texts()) == 2, "a hundred bytes take a tenth of a second"
    two.run(250)
    assert len(two.other.texts()) == 4
    heal()
    two.network.send(two.one, -1, framed(b"x" * 10_000))
    two.run(20)
    assert len(two.other.texts()) == 5
