"""How `klamm produce` ends: what was sent is waited for, or given up, and there is an account of it in any case.

The first Ctrl-C ends the reading, and what is on its way is waited for. The second gives that up. Whoever presses it
once more, or holds it down, is in a hurry: the account comes at once, and from what is known.
"""

import argparse
import json
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from klamm.cli.librdkafka import ACKS
from klamm.cli.produce_obstacles import Silence
from klamm.cli.produce_sending import Sender
from klamm.cli.progress import Progress
from klamm.cli.saying import INTERRUPTED, counted, say, say_result

INTERRUPTED_SECONDS = 0.5
"""After Ctrl-C what was sent is acknowledged within that, or something is in the way."""
ON_CTRL_C = "given up on Ctrl-C"
NAMED_PROBLEMS = 3
WANTS_KEYS = "a topic that is compacted, cleanup.policy=compact, wants keys: --key or --key-separator"


def flushed(sender: Sender, progress: Progress, show: Callable[[], None], code: int) -> int:
    """The exit code: this one, or that of Ctrl-C, which is heard twice, whatever has ended the sending."""
    if code != INTERRUPTED:
        try:
            sender.flush(show)
            return code
        except KeyboardInterrupt:
            pass
    try:
        sender.flush(_saying_what_is_waited_for(progress, show))
    except KeyboardInterrupt:
        with _undisturbed():
            sender.give_up(ON_CTRL_C)
            sender.flush(lambda: None)
    return INTERRUPTED


def say_outcome(
    sender: Sender, silence: Silence, progress: Progress, options: argparse.Namespace, *, is_interrupted: bool
) -> None:
    progress.clear()
    seconds = progress.seconds
    if is_interrupted:
        with _undisturbed():
            _say_outcome(sender, silence.obstacle, seconds, options)
    else:
        _say_outcome(sender, _cause(sender, silence), seconds, options)


def _saying_what_is_waited_for(progress: Progress, show: Callable[[], None]) -> Callable[[], None]:
    """Once, if it takes long."""
    until: float | None = progress.seconds + INTERRUPTED_SECONDS

    def show_and_say() -> None:
        nonlocal until
        show()
        if until is not None and progress.seconds > until:
            until = None
            progress.clear()
            say("klamm produce: what was sent is waited for; once more Ctrl-C gives it up")

    return show_and_say


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Not even by one more Ctrl-C: it could only take the account away."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _cause(sender: Sender, silence: Silence) -> str | None:
    """Of what nobody acknowledged in time. It may be asked for some seconds: Ctrl-C ends that."""
    if sender.timed_out not in sender.problems:
        return None
    with suppress(KeyboardInterrupt):
        return silence.cause()
    return silence.obstacle


def _say_outcome(sender: Sender, cause: str | None, seconds: float, options: argparse.Namespace) -> None:
    for problem, count in sender.problems.most_common(NAMED_PROBLEMS):
        fates = {ON_CTRL_C: problem, sender.timed_out: f"given up: {problem}"}
        because = f" ({cause})" if cause and problem in fates else ""
        because = because or (f" ({WANTS_KEYS})" if problem == sender.refused_without_key else "")
        say(f"klamm produce: {counted(count, 'record')} {fates.get(problem, f'failed: {problem}')}{because}")
    if sender.gave_up and not sender.has_sent_all:
        say("klamm produce: nothing was sent after that")
    failed_for_sure = sender.failed - sender.open
    if options.json:
        document = {
            "topic": options.topic,
            "sent": sender.sent,
            "acknowledged": sender.acknowledged,
            "failed": failed_for_sure,
            "not_acknowledged": sender.open,
            "problems": dict(sender.problems),
            "seconds": round(seconds, 3),
        }
        say_result(json.dumps(document, indent=2))
        return
    # Nobody acknowledges with acks=0: it has left this machine, that is all.
    done = "handed to the network" if ACKS[options.acks] == 0 else "acknowledged"
    may_be = "may be there" if sender.open == 1 else "some may be there"
    more = f", {sender.open:,} not acknowledged ({may_be})" if sender.open else ""
    say(
        f"{sender.sent:,} sent to {options.topic}, {sender.acknowledged:,} {done}, {failed_for_sure:,} failed{more} "
        f"in {seconds:.2f} s ({sender.acknowledged / seconds:,.0f} a second)"
    )
