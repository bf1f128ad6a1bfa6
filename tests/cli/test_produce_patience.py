"""Who gives records up sends none of them again: of what the log may have already there is no second copy."""

import gc
import os
import threading
import time
from collections.abc import Iterator
from itertools import repeat
from typing import BinaryIO

import pytest

from klamm.cli.json_records import ANY_PARTITION, NOW_MS, Record
from klamm.cli.produce_records import Meanwhile, Shape, Tally, lines_and_whether_few, records_of_lines
from klamm.cli.produce_sending import Sender
from klamm.errors import ErrorCode
from tests.cli.taking_broker import PRODUCE, TakingBroker

SETTINGS = {
    "enable.idempotence": True,
    "acks": -1,
    "linger.ms": 0,
    "retry.backoff.ms": 10,
    "retry.backoff.max.ms": 100,
}
SLOWLY_AGAIN = {**SETTINGS, "retry.backoff.ms": 400, "retry.backoff.max.ms": 500}
"""What is to be sent again is in no queue whenever somebody looks."""
FAR_TOO_LONG_SECONDS = 60
ON_THE_WIRE = 5
"""So many requests of an idempotent producer are unanswered at most."""
RECORD: Record = (b"x", None, ANY_PARTITION, None, None, NOW_MS, None)


def writing() -> TakingBroker:
    """It takes every batch, and says that the others did not have it in time: the records are in the log."""
    return TakingBroker("t", says=ErrorCode.REQUEST_TIMED_OUT)


def test_what_is_given_up_is_not_sent_under_another_epoch() -> None:
    """librdkafka's own time limit did: a topic held 117,015 records of 58,710."""
    with writing() as broker:
        sender = Sender(broker.servers, "t", SETTINGS, gives_up_after_seconds=2.0)
        began, many = time.monotonic(), 100 * FAR_TOO_LONG_SECONDS
        sender.send(sender.paced(repeat(RECORD, many), 100, nothing), nothing)
        sender.flush(nothing)
        assert time.monotonic() - began >= 2.0
        assert broker.asked.count(PRODUCE) > 2, "it was tried again"
        assert 0 < sender.sent < many and sender.gave_up
        assert (sender.acknowledged, sender.failed, sender.open) == (0, sender.sent, sender.sent)
        assert list(sender.problems) == [sender.timed_out]
        # Not its length: statistics count as well, and may have come since.
        assert sender._producer.flush(FAR_TOO_LONG_SECONDS) == 0, "it holds nothing that it could send again"
        asked = broker.asked.count(PRODUCE)
        del sender
        gc.collect()  # It reports to itself, and the broker waits for its connections.
    # Whatever was on the wire has been read: the broker's threads have ended.
    assert broker.asked.count(PRODUCE) <= asked + ON_THE_WIRE
    assert {epoch for epoch, _ in broker.written} == {0}, "nothing was sent under another one"


def test_what_is_refused_for_now_behind_one_that_has_failed_is_given_up() -> None:
    """It was tried for ever: one record that was too large, and nobody counted any more what waits."""
    with TakingBroker("t", says=ErrorCode.MESSAGE_TOO_LARGE) as broker:
        sender = Sender(broker.servers, "t", SLOWLY_AGAIN, gives_up_after_seconds=1.0)
        rescue = threading.Timer(FAR_TOO_LONG_SECONDS, sender.give_up, ["far too late"])
        rescue.start()
        sender.send([RECORD], nothing)
        sender.flush(nothing)
        assert (sender.failed, sender.open, sender.gave_up) == (1, 0, False)
        broker.says = ErrorCode.NOT_ENOUGH_REPLICAS
        sender.send([RECORD], nothing)
        sender.flush(nothing)
        assert rescue.is_alive()
        assert (sender.sent, sender.acknowledged, sender.open, sender.gave_up) == (2, 0, 1, True)
        rescue.cancel()
        del sender, rescue
        gc.collect()


@pytest.fixture
def pipe() -> Iterator[tuple[BinaryIO, BinaryIO]]:
    reading, writing = os.pipe()
    with open(reading, "rb") as reader, open(writing, "wb", buffering=0) as writer:  # noqa: PTH123
        yield reader, writer


def test_whoever_waits_for_input_gives_up_all_the_same(pipe: tuple[BinaryIO, BinaryIO]) -> None:
    """It waited for 2,000 lines, said nothing, and librdkafka's statistics piled up."""
    reader, writer = pipe
    writer.write(b"one\ntwo\n")
    rescue = threading.Timer(FAR_TOO_LONG_SECONDS, writer.close)
    rescue.start()
    with writing() as broker:
        shown = _send_lines(broker, reader)
        assert not writer.closed
        gc.collect()
    rescue.cancel()
    assert shown.count(2) > 3, "and there was time to say so"


def _send_lines(broker: TakingBroker, reader: BinaryIO) -> list[int]:
    """How many were sent at each look."""
    sender = Sender(broker.servers, "t", SETTINGS, gives_up_after_seconds=1.0)
    shown: list[int] = []
    lines, _ = lines_and_whether_few(reader, Meanwhile(lambda: sender.listen(lambda: shown.append(sender.sent))))
    sender.send(records_of_lines(Shape(), lines, Tally()), nothing)
    sender.flush(nothing)
    assert sender.gave_up and (sender.sent, sender.acknowledged, sender.open) == (2, 0, 2)
    return shown


def test_input_that_comes_in_drops_lets_nobody_wait(pipe: tuple[BinaryIO, BinaryIO]) -> None:
    reader, writer = pipe
    looks: list[float] = []
    lines, _ = lines_and_whether_few(reader, Meanwhile(lambda: looks.append(time.monotonic())))
    began, left = time.monotonic(), iter(lines)
    while time.monotonic() < began + 0.5:
        writer.write(b"x\n")
        assert next(left) == b"x\n"
    assert 2 <= len(looks) <= 6


def nothing() -> None:
    pass
