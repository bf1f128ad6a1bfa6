"""However `klamm produce` ends, and however often somebody presses Ctrl-C: there is an account, and it is true."""

import json
import signal
import subprocess
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count, repeat

import pytest

from klamm.cli.json_records import Record
from klamm.cli.produce_ending import INTERRUPTED, ON_CTRL_C, flushed, say_outcome
from klamm.cli.produce_obstacles import Silence
from klamm.cli.produce_sending import ROUND, GaveUp, Sender
from klamm.cli.progress import Progress
from klamm.errors import ErrorCode
from tests.cli.sending import LONG_SECONDS
from tests.cli.taking_broker import PRODUCE, TakingBroker
from tests.cli.test_produce_sending import RECORD, silent
from tests.harness.waiting import wait_until

__all__ = ["silent"]

OPTIONS = Namespace(topic="t", acks="all", json=True)
WAITS = "klamm produce: what was sent is waited for; once more Ctrl-C gives it up\n"


@contextmanager
def producing(broker: TakingBroker, *words: str) -> Iterator["subprocess.Popen[str]"]:
    """What was sent is on its way, and nobody acknowledges it."""
    command = [sys.executable, "-m", "klamm", "produce", "t", *words, "--bootstrap", broker.servers]
    pipe = subprocess.PIPE
    sending = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
    try:
        yield sending
    finally:
        sending.kill()
        sending.communicate()


def refusing() -> TakingBroker:
    return TakingBroker("t", says=ErrorCode.REQUEST_TIMED_OUT)


def test_ctrl_c_says_what_is_waited_for_and_a_second_one_gives_it_up() -> None:
    """The first was swallowed without a word, the second ended it without an account."""
    with refusing() as broker, producing(broker, "--value", "x") as sending:
        wait_until(lambda: broker.asked.count(PRODUCE), "it sends", within_seconds=60)
        sending.send_signal(signal.SIGINT)
        assert sending.stderr is not None
        assert next(line for line in sending.stderr if "no acknowledgement yet" not in line) == WAITS
        sending.send_signal(signal.SIGINT)
        _, rest = sending.communicate(timeout=LONG_SECONDS)
        assert "klamm produce: 1 record given up on Ctrl-C\n" in rest and "timed out" not in rest
        assert "1 sent to t, 0 acknowledged, 0 failed, 1 not acknowledged (may be there)" in rest
        assert sending.returncode == INTERRUPTED


def test_after_a_bad_line_the_first_ctrl_c_waits_as_well() -> None:
    """It gave everything up at once."""
    nobody_leads = TakingBroker("t", leads=[], leaderless=[0])
    with nobody_leads as broker, producing(broker, "--format", "json") as sending:
        assert sending.stdin is not None and sending.stderr is not None
        sending.stdin.write('{"value": "x"}\nnonsense\n')
        sending.stdin.flush()
        assert "line 2" in next(sending.stderr)
        assert "no acknowledgement yet: t-0 has no leader" in next(sending.stderr), "it waits for what came before"
        sending.send_signal(signal.SIGINT)
        assert next(sending.stderr) == WAITS
        sending.send_signal(signal.SIGINT)
        _, rest = sending.communicate(timeout=LONG_SECONDS)
        assert "klamm produce: 1 record given up on Ctrl-C (t-0 has no leader)\n" in rest
        assert "1 sent to t, 0 acknowledged, 0 failed, 1 not acknowledged (may be there)" in rest
        assert sending.returncode == INTERRUPTED


def test_whoever_holds_ctrl_c_down_gets_the_account() -> None:
    """The third one came while it asked what is in the way: it ended with nothing said at all."""
    with refusing() as broker, producing(broker, "--value", "x", "--json") as sending:
        wait_until(lambda: broker.asked.count(PRODUCE), "it sends", within_seconds=60)
        while sending.poll() is None:
            sending.send_signal(signal.SIGINT)
            try:
                sending.wait(0.03)
            except subprocess.TimeoutExpired:
                continue
        out, _ = sending.communicate(timeout=LONG_SECONDS)
        document = json.loads(out)
        assert (document["sent"], document["not_acknowledged"]) == (1, 1)
        assert document["problems"] == {ON_CTRL_C: 1}
        # One more may come when Python has ended: to a shell that is 130 as well.
        assert sending.returncode in (INTERRUPTED, -signal.SIGINT)


def pressed_at(*looks: int) -> Callable[[], None]:
    """Ctrl-C while it looks how far it is: the first time, the second …"""
    numbers = count(1)

    def show() -> None:
        if next(numbers) in looks:
            raise KeyboardInterrupt

    return show


@pytest.mark.parametrize("code", [0, 1])
def test_the_second_ctrl_c_gives_up_whatever_has_ended_it(silent: str, code: int) -> None:
    sender = sent_to(silent)
    assert flushed(sender, Progress(wanted=False), pressed_at(2, 4, 5), code) == INTERRUPTED, "nobody looks after that"
    assert sender.gave_up and sender.problems == {ON_CTRL_C: 1}


def test_whoever_is_interrupted_already_has_one_left(silent: str) -> None:
    sender = sent_to(silent)
    assert flushed(sender, Progress(wanted=False), pressed_at(2), INTERRUPTED) == INTERRUPTED
    assert sender.problems == {ON_CTRL_C: 1}


def test_whoever_is_in_a_hurry_is_told_what_is_known(silent: str, capsys: pytest.CaptureFixture[str]) -> None:
    def ask() -> str | None:
        pytest.fail("nobody waits for that")

    sender, silence = sent_to(silent), Silence(ask, pytest.fail)
    silence.obstacle = "a wall"
    sender.give_up(ON_CTRL_C)
    sender.flush(lambda: None)
    say_outcome(sender, silence, Progress(wanted=False), OPTIONS, is_interrupted=True)
    told = capsys.readouterr()
    assert told.err.startswith("klamm produce: 1 record given up on Ctrl-C (a wall)\n")
    assert json.loads(told.out)["not_acknowledged"] == 1


def test_ctrl_c_while_the_cause_is_asked_for(silent: str, capsys: pytest.CaptureFixture[str]) -> None:
    def ask() -> str | None:
        raise KeyboardInterrupt

    sender = sent_to(silent)
    sender.give_up(sender.timed_out)
    sender.flush(lambda: None)
    say_outcome(sender, Silence(ask, pytest.fail), Progress(wanted=False), OPTIONS, is_interrupted=False)
    told = capsys.readouterr()
    assert told.err.startswith("klamm produce: 1 record given up: Local: Message timed out\n")
    assert json.loads(told.out)["not_acknowledged"] == 1


AND_NO_MORE = "klamm produce: nothing was sent after that\n"


@pytest.mark.parametrize("number", [1, ROUND, ROUND + 1])
def test_nothing_is_left_unsent_of_what_was_sent_whole(
    silent: str, capsys: pytest.CaptureFixture[str], number: int
) -> None:
    sender = Sender(silent, "t", {})
    sender.send(repeat(RECORD, number), lambda: None)
    assert AND_NO_MORE not in account_of(sender, capsys)


def test_what_is_left_unsent_is_said(silent: str, capsys: pytest.CaptureFixture[str]) -> None:
    sender, left = Sender(silent, "t", {}), repeat(RECORD)

    def one_and_then_no_more() -> Iterator[Record]:
        yield next(left)
        raise GaveUp

    sender.send(one_and_then_no_more(), lambda: None)
    assert AND_NO_MORE in account_of(sender, capsys)


def test_what_is_left_unsent_by_one_who_paces_is_said(silent: str, capsys: pytest.CaptureFixture[str]) -> None:
    sender = Sender(silent, "t", {}, gives_up_after_seconds=0.3)
    sender.send(sender.paced(repeat(RECORD), 10, lambda: None), lambda: None)
    assert AND_NO_MORE in account_of(sender, capsys)


def account_of(sender: Sender, capsys: pytest.CaptureFixture[str]) -> str:
    """Of one that has given up."""
    sender.give_up(sender.timed_out)
    sender.flush(lambda: None)
    say_outcome(sender, Silence(lambda: None, pytest.fail), Progress(wanted=False), OPTIONS, is_interrupted=False)
    return capsys.readouterr().err


def sent_to(servers: str) -> Sender:
    sender = Sender(servers, "t", {})
    sender.send([RECORD], lambda: None)
    return sender
