"""The loop's promises to those who live on it: what comes in which order, and that nothing is slept through."""

import os
import socket
import threading

from klamm.runtime.alertness import Alertness
from klamm.runtime.loop import READABLE, Loop


def test_the_end_of_a_turn_comes_after_everything_that_was_ready() -> None:
    loop, order = Loop(), []
    pairs = [socket.socketpair() for _ in range(3)]

    def on_ready(number: int) -> None:
        pairs[number][1].recv(1)
        order.append(f"socket {number}")
        loop.at_end_of_turn(lambda: order.append(f"end for {number}"))
        if number == 2:
            loop.stop()

    for number, (mine, yours) in enumerate(pairs):
        loop.watch(yours.fileno(), READABLE, lambda events, number=number: on_ready(number))  # type: ignore[misc]
        mine.send(b"x")
    loop.run()
    for mine, yours in pairs:
        mine.close()
        yours.close()
    loop.close()
    assert sorted(order[:3]) == ["socket 0", "socket 1", "socket 2"]
    assert sorted(order[3:]) == ["end for 0", "end for 1", "end for 2"]


def test_the_end_of_a_turn_does_not_wait_for_the_next_event() -> None:
    """Not when it was asked for before the loop ran, by an alarm, or by another end."""
    loop, order = Loop(), []

    def third() -> None:
        order.append("third")
        loop.stop()

    def second() -> None:
        order.append("second")
        alarm.at_ms = 0.0

    def first() -> None:
        order.append("first")
        loop.at_end_of_turn(second)

    alarm = loop.alarm(lambda: loop.at_end_of_turn(third))
    loop.at_end_of_turn(first)
    thread = threading.Thread(target=loop.run, daemon=True)
    thread.start()
    thread.join(timeout=30)
    assert order == ["first", "second", "third"]


def test_an_alert_loop_hears_everything_too() -> None:
    """A ping-pong close enough to keep it awake, with pauses that send it to sleep."""
    loop = Loop(Alertness())
    reading, writing = os.pipe()
    answers, asked = os.pipe()
    loop.watch(reading, READABLE, lambda events: os.write(asked, os.read(reading, 1)))  # type: ignore[arg-type, func-returns-value]
    thread = threading.Thread(target=loop.run, daemon=True)
    thread.start()
    for number in range(500):
        os.write(writing, b"x")
        assert os.read(answers, 1) == b"x"
        if number % 100 == 99:
            threading.Event().wait(0.01)
    loop.stop()
    thread.join(timeout=30)
    assert not thread.is_alive()
    for descriptor in (reading, writing, answers, asked):
        os.close(descriptor)
