"""When a loop stays awake for a moment instead of going to sleep, on a clock of our own."""

from klamm.runtime.alertness import AWAKE_S, CLOSE_S, LONGEST_GAP_S, MODEST_S, SHARED_S, Alertness, Happened

EVENT: Happened = [(7, 1)]
MICROSECOND = 1e-6


class Machine:
    """A clock, a processor that may be given away, and an event that comes at its time."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.event_s = float("inf")
        self.others_take_s = 0.0
        self.sleeps: list[float | None] = []
        self.looks = 0
        self.alertness = Alertness(lambda: self.now_s, self._make_room)

    def _make_room(self) -> None:
        self.now_s += self.others_take_s

    def poll(self, timeout_s: float | None) -> Happened:
        self.now_s += MICROSECOND
        if timeout_s == 0.0:
            self.looks += 1
        else:
            self.sleeps.append(timeout_s)
            self.now_s = min(self.event_s, self.now_s + (1e9 if timeout_s is None else timeout_s))
        return EVENT if self.now_s >= self.event_s else []

    def wait(self, for_s: float, timeout_s: float | None = None, *, may_stay_awake: bool = True) -> Happened:
        """An event comes after `for_s`."""
        self.event_s = self.now_s + for_s
        self.sleeps.clear()
        self.looks = 0
        return self.alertness.wait(self.poll, timeout_s, may_stay_awake=may_stay_awake)

    def hurry(self) -> None:
        """Events come so close that it is worth staying awake."""
        for _ in range(40):
            assert self.wait(50 * MICROSECOND) == EVENT


def test_rare_events_are_slept_for() -> None:
    machine = Machine()
    for _ in range(5):
        assert machine.wait(0.5) == EVENT
        assert (machine.looks, machine.sleeps) == (0, [None])


def test_close_events_are_heard_awake() -> None:
    machine = Machine()
    machine.hurry()
    assert machine.wait(AWAKE_S / 2) == EVENT
    assert machine.looks > 1 and machine.sleeps == []


def test_staying_awake_has_an_end() -> None:
    machine = Machine()
    machine.hurry()
    assert machine.wait(AWAKE_S * 5) == EVENT
    assert machine.looks <= AWAKE_S / MICROSECOND + 1 and machine.sleeps == [None]


def test_it_is_over_when_events_become_rare() -> None:
    machine = Machine()
    machine.hurry()
    waits = 0
    while machine.wait(LONGEST_GAP_S) and machine.looks:
        waits += 1
    assert 0 < waits < 10, "each of them costs a fifth of a millisecond of processor time"


def test_an_alarm_is_not_slept_through() -> None:
    machine = Machine()
    machine.hurry()
    began_s = machine.now_s
    assert machine.wait(1.0, timeout_s=0.01) == []
    assert 0.01 <= machine.now_s - began_s < 0.01 + 5 * MICROSECOND
    began_s = machine.now_s
    assert machine.wait(1.0, timeout_s=AWAKE_S / 4) == []
    assert machine.now_s - began_s < AWAKE_S / 4 + 5 * MICROSECOND


def test_others_who_need_the_processor_get_it() -> None:
    machine = Machine()
    machine.hurry()
    machine.others_take_s = SHARED_S * 2
    assert machine.wait(AWAKE_S * 2 / 3) == EVENT
    assert machine.looks == 2 and machine.sleeps == [None]
    machine.others_take_s = 0.0
    assert machine.wait(MODEST_S / 10) == EVENT
    assert machine.looks == 0, "and for a while nothing more is tried"
    machine.now_s += MODEST_S
    assert machine.wait(CLOSE_S / 4) == EVENT
    assert machine.looks > 1


def test_what_happened_while_others_had_the_processor_is_heard_at_once() -> None:
    machine = Machine()
    machine.hurry()
    machine.others_take_s = SHARED_S * 2
    assert machine.wait(SHARED_S) == EVENT
    assert machine.looks == 2 and machine.sleeps == []


def test_who_waits_for_a_reader_sleeps() -> None:
    machine = Machine()
    machine.hurry()
    assert machine.wait(50 * MICROSECOND, may_stay_awake=False) == EVENT
    assert (machine.looks, machine.sleeps) == (0, [None])
