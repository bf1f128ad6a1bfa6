"""A loop in a thread of its own: asked, answered, and never waited for in vain."""

import threading
from collections.abc import Callable
from concurrent.futures import Future

import pytest

from klamm.local.loop_thread import LoopFailed, LoopThread


def one(done: Callable[[int], None]) -> None:
    done(1)


def test_what_is_asked_is_done_in_the_loops_thread() -> None:
    thread = LoopThread("a-loop")

    def name(done: Callable[[str], None]) -> None:
        done(threading.current_thread().name)

    assert thread.asked(name).result(10) == "a-loop"
    thread.end()


def test_an_answer_may_come_later() -> None:
    thread = LoopThread("a-loop")

    def promise(done: Callable[[str], None]) -> None:
        thread.loop.call_soon(lambda: done("later"))

    assert thread.asked(promise).result(10) == "later"
    thread.end()


def test_a_wish_that_cannot_be_done_harms_nobody_else() -> None:
    thread = LoopThread("a-loop")

    def refuse(done: object) -> None:
        raise ValueError("not this")

    with pytest.raises(ValueError, match="not this"):
        thread.asked(refuse).result(10)
    assert thread.asked(one).result(10) == 1
    thread.end()


def test_whoever_waits_for_a_loop_that_breaks_hears_why() -> None:
    thread = LoopThread("a-loop")
    never: Future[int] = thread.asked(lambda done: None)

    def break_it() -> None:
        raise AssertionError("a mistake of ours")

    thread.loop.call_soon(break_it)
    with pytest.raises(LoopFailed, match="a mistake of ours"):
        never.result(10)
    with pytest.raises(LoopFailed, match="a mistake of ours"):
        thread.asked(one)
    with pytest.raises(LoopFailed) as failure:
        thread.end()
    assert isinstance(failure.value.__cause__, AssertionError)
