"""The driver between a node and the world."""

import errno
from pathlib import Path

import pytest

from klamm.config import BrokerConfig
from klamm.facts import unheard
from klamm.ids import Now
from klamm.metadata.image import Endpoint
from klamm.node.effects import Close, Effect, Flush, Send, Wake
from klamm.node.events import Closed, Event, Flushed, Woke
from klamm.runtime.driver import Driver
from klamm.runtime.facts import Stopped
from klamm.runtime.files import RealFiles
from klamm.runtime.loop import NEVER, Loop
from klamm.runtime.observe import log_lines
from klamm.runtime.process import limits_of
from klamm.runtime.server import Limits


class Recorder:
    """In the place of a node: remembers what happened, in order."""

    def __init__(self) -> None:
        self.happened: list[object] = []

    def step(self, event: Event, now: Now) -> list[Effect]:
        self.happened.append(event)
        return []

    def stop(self) -> bool:
        self.happened.append("stop")
        return True


def test_a_flush_that_fails_while_stopping_is_heard_before_the_node_stops(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Linux tells of a failed fsync once. If it is not heard, the next one, of the shutdown, seems to succeed."""

    def failing(descriptor: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr("os.fdatasync", failing)
    node, files = Recorder(), RealFiles(tmp_path)
    file = files.file("x")
    file.append(b"x")
    driver = Driver(node, files, Loop(), Limits(), unheard)  # type: ignore[arg-type]
    driver._perform([Flush(1, [[file]])])
    driver.stop()
    assert node.happened == [Flushed(1, {0: "x: Input/output error"}), "stop"]


def test_what_happens_while_effects_are_carried_out_has_its_turn_afterwards(tmp_path: Path) -> None:
    """A connection breaks when something is sent. If the node heard of it at once, the wake-up it asks for then would
    be set before the older one that is still to be carried out, and be lost: deadlines would pass unnoticed."""

    class Alarmed(Recorder):
        def step(self, event: Event, now: Now) -> list[Effect]:
            super().step(event, now)
            if isinstance(event, Woke):
                return [Close(1), Wake(9_000.0)]
            return [Wake(1_000.0)]

    node = Alarmed()
    driver = Driver(node, RealFiles(tmp_path), Loop(), Limits(), unheard)  # type: ignore[arg-type]
    driver.server.close_after_sending = lambda identity: driver.closed(identity)  # type: ignore[method-assign]
    driver.step(Woke())
    assert node.happened == [Woke(), Closed(1)]
    assert driver._alarm.at_ms == 1_000.0
    driver.stop()


@pytest.mark.parametrize("act", ["start", "begin_to_stop"])
def test_what_happens_while_a_node_starts_or_begins_to_stop_has_its_turn_afterwards_too(
    tmp_path: Path, act: str
) -> None:
    """Both have effects like any event: goodbyes are sent, and a connection may break under them."""

    class Leaving(Recorder):
        def start(self, endpoint: Endpoint, now: Now) -> list[Effect]:
            return [Send(1, [b"goodbye"]), Wake(9_000.0)]

        def begin_to_stop(self, now: Now) -> list[Effect]:
            return [Send(1, [b"goodbye"]), Wake(9_000.0)]

        def step(self, event: Event, now: Now) -> list[Effect]:
            super().step(event, now)
            return [Wake(1_000.0)]

    node = Leaving()
    driver = Driver(node, RealFiles(tmp_path), Loop(), Limits(), unheard)  # type: ignore[arg-type]
    driver.server.send = lambda identity, pieces: driver.closed(identity)  # type: ignore[method-assign]
    if act == "start":
        driver.start(Endpoint("PLAINTEXT", "127.0.0.1", 9092))
    else:
        driver.begin_to_stop()
    assert node.happened == [Closed(1)]
    assert driver._alarm.at_ms == 1_000.0
    driver.stop()


def test_minus_one_closes_no_idle_connection(tmp_path: Path) -> None:
    config = BrokerConfig.from_properties((), {"node.id": "0", "connections.max.idle.ms": "-1"})
    assert limits_of(config, RealFiles(tmp_path)).max_idle_ms == NEVER


def test_a_log_that_cannot_be_written_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    class Full:
        def write(self, text: str) -> None:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr("sys.stderr", Full())
    log_lines(0)(Stopped(True))
