"""What was seen is noted, whenever Ctrl-C comes."""

import os
import select
import signal
import threading
import time
from collections.abc import Iterator
from functools import partial

import pytest

from klamm.cli import consume_output
from klamm.cli.consume_output import Output

MAIN = threading.main_thread().ident or 0


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    """Where what is written can be read, and where it is written."""
    reads, writes = os.pipe()
    yield reads, writes
    os.close(writes)
    os.close(reads)


def _wait_for_ctrl_c() -> None:
    """In short sleeps: a signal that comes right before a sleep does not end it."""
    for _ in range(6_000):
        time.sleep(0.01)


def test_whoever_sees_a_record_may_press_ctrl_c_at_once(pipe: tuple[int, int]) -> None:
    output = Output(pipe[1])
    for number in range(50):
        noted: list[int] = []

        def see_and_interrupt(seen: threading.Event) -> None:
            os.read(pipe[0], 100)
            signal.pthread_kill(MAIN, signal.SIGINT)
            seen.set()

        seen = threading.Event()
        threading.Thread(target=see_and_interrupt, args=(seen,), daemon=True).start()
        with pytest.raises(KeyboardInterrupt):
            output.write_and_note(b"a record\n", partial(noted.append, number))
            _wait_for_ctrl_c()
        assert noted == [number]
        while not seen.is_set():
            time.sleep(0.001)


def test_a_pipe_that_nobody_empties_does_not_keep_us(pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consume_output, "GRACE_SECONDS", 0.1)
    noted: list[bool] = []

    def interrupt_who_writes() -> None:
        select.select([pipe[0]], [], [])
        signal.pthread_kill(MAIN, signal.SIGINT)

    threading.Thread(target=interrupt_who_writes, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        Output(pipe[1]).write_and_note(b"x" * 1_000_000, lambda: noted.append(True))
    assert noted == [], "it is not out"
    left = 1_000_000
    while left:
        left -= len(os.read(pipe[0], 1 << 20))


def test_ctrl_c_that_another_thread_took_is_heard(pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """It does not end the wait, as one that comes a moment before the wait does not: that was waited out for ever."""
    monkeypatch.setattr(consume_output, "GRACE_SECONDS", 0.1)
    is_over = threading.Event()

    def interrupt_and_at_last_read() -> None:
        select.select([pipe[0]], [], [])
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)
        is_over.wait(20)
        left = 1_000_000
        while left:
            left -= len(os.read(pipe[0], 1 << 20))

    reader = threading.Thread(target=interrupt_and_at_last_read)
    reader.start()
    noted: list[bool] = []
    with pytest.raises(KeyboardInterrupt):
        Output(pipe[1]).write_and_note(b"x" * 1_000_000, lambda: noted.append(True))
    was_noted = list(noted)
    is_over.set()
    reader.join()
    assert was_noted == [], "it was heard while nobody read"


def test_all_of_it_is_written_before_it_is_noted(pipe: tuple[int, int]) -> None:
    seen: list[bytes] = []

    def read_all() -> None:
        while sum(map(len, seen)) < 1_000_000:
            seen.append(os.read(pipe[0], 1 << 16))

    reader = threading.Thread(target=read_all)
    reader.start()
    noted: list[bool] = []
    Output(pipe[1]).write_and_note(b"x" * 1_000_000, lambda: noted.append(True))
    reader.join()
    assert noted == [True] and b"".join(seen) == b"x" * 1_000_000


def test_a_reader_that_is_gone_is_told() -> None:
    reads, writes = os.pipe()
    output, noted = Output(writes), list[bool]()
    assert not output.has_nobody_to_read_it()
    os.close(reads)
    assert output.has_nobody_to_read_it()
    with pytest.raises(BrokenPipeError):
        output.write_and_note(b"a record\n", lambda: noted.append(True))
    assert noted == []
    os.close(writes)
