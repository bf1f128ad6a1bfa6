"""The account of `klamm produce`: what it counts is what librdkafka was given, whenever Ctrl-C comes."""

import os
import signal
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from klamm.cli import produce_sending
from klamm.cli.json_records import ANY_PARTITION, NOW_MS, Record
from klamm.cli.produce_sending import Sender

RECORD: Record = (b"x", None, ANY_PARTITION, None, None, NOW_MS, None)
ROOM = 5


@pytest.fixture
def silent() -> Iterator[str]:
    """Somebody who is there and never answers: no record leaves the queue, and no error takes a place in it."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"127.0.0.1:{listening.getsockname()[1]}"


def nothing() -> None:
    pass


def endless() -> Iterator[Record]:
    while True:
        yield RECORD


def test_a_record_that_waits_for_room_is_not_sent_yet(silent: str) -> None:
    sender = Sender(silent, "t", {"queue.buffering.max.messages": ROOM})
    timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        timer.start()
        sender.send(endless(), nothing)
    timer.join()
    assert (sender.sent, sender.acknowledged, sender.failed) == (ROOM, 0, 0)


def test_ctrl_c_at_any_moment_leaves_the_account_right(silent: str) -> None:
    """From outside, as from a keyboard: most come while librdkafka takes a record."""
    sender = Sender(silent, "t", {"queue.buffering.max.messages": 10_000_000})
    before = signal.signal(signal.SIGVTALRM, signal.default_int_handler)
    try:
        for number in range(20):
            with pytest.raises(KeyboardInterrupt):
                signal.setitimer(signal.ITIMER_VIRTUAL, 0.005 + number * 0.0001)
                sender.send(endless(), nothing)
            assert sender.acknowledged == 0, "neither one too many nor one too few"
    finally:
        signal.signal(signal.SIGVTALRM, before)
    assert sender.sent > 0


class WithAnEvent:
    """A producer whose queue is empty of records, and holds the news that brokers are down."""

    def flush(self, _: float) -> int:
        return 0

    def __len__(self) -> int:
        return 1


@pytest.mark.parametrize("failed", [0, 1])
def test_news_of_brokers_are_no_records(silent: str, failed: int) -> None:
    """It said "1 sent, -1 acknowledged, 1 failed"."""
    sender = Sender(silent, "t", {})
    sender._producer = WithAnEvent()
    sender.sent, sender.problems["gone"] = 1, failed
    assert sender.acknowledged == 0
    sender.flush(nothing)
    assert (sender.waiting, sender.acknowledged) == (0, 1 - failed)


class WithAClockThatStandsStill:
    """A producer that holds its record for ever, whatever its timeout is."""

    def __init__(self) -> None:
        self.held = 1

    def flush(self, _: float) -> int:
        time.sleep(0.01)
        return self.held

    def purge(self) -> None:
        self.held = 0

    def __len__(self) -> int:
        return self.held


def test_what_had_all_of_its_time_is_given_up(silent: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """`--timeout 4` took up to 13.6 s: librdkafka was waiting to connect again, and did not look at its clock."""
    monkeypatch.setattr(produce_sending, "LATE_SECONDS", 0.1)
    sender = Sender(silent, "t", {"message.timeout.ms": 200})
    sender._producer, sender.sent = WithAClockThatStandsStill(), 1
    rescue = threading.Timer(20.0, sender.give_up, ["far too late"])
    rescue.start()
    began = time.monotonic()
    sender.flush(nothing)
    assert sender.gave_up and rescue.is_alive() and time.monotonic() - began >= 0.3
    rescue.cancel()


def test_what_cannot_be_sent_at_all_is_not_counted(silent: str) -> None:
    sender = Sender(silent, "t", {})
    too_late: Record = (b"x", None, ANY_PARTITION, None, None, 1 << 64, None)
    with pytest.raises(OverflowError):
        sender.send([RECORD, too_late], nothing)
    assert (sender.sent, sender.acknowledged) == (1, 0)
