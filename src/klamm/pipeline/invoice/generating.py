"""`klamm pipeline generate`: invoices into a topic, as many or as quickly as asked for, and a ledger of them."""

import argparse
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import SystemRandom

from klamm.pipeline.invoice.generator import COPY, Recipe, generated
from klamm.pipeline.invoice.ledger import Ledger
from klamm.pipeline.invoice.sending import NotMade, Sent, create_topic, send

DESCRIPTION = """\
Invoices from the tills of some shops, as JSON, for the pipeline that `klamm pipeline example` writes. Some are late,
some come twice, some are huge, some are malformed: which ones, the seed decides.
"""
EXAMPLES = """\
examples:
  klamm pipeline generate --count 100000
  klamm pipeline generate --rate 500                       until Ctrl-C
  klamm pipeline generate --count 1000 --ledger sent.json  with an account of what was sent

exit code 0: everything is acknowledged; 1: something is not, or nobody answers
"""
SHOW_EVERY_SECONDS, SAY_EVERY_SECONDS = 0.2, 10.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The bootstrap servers are left to the command line that this becomes a part of: `options.bootstrap`."""
    default = Recipe(0)
    parser.add_argument("--topic", default="invoice", help="made if it is missing; %(default)s unless told")
    parser.add_argument("--count", type=_count, help="so many invoices; without it, until Ctrl-C")
    parser.add_argument("--rate", type=_positive, help="so many a second; without it, as quickly as it goes")
    parser.add_argument("--seed", type=int, help="the same seed and start, the same invoices; else any")
    parser.add_argument("--start-ms", type=int, help="when the first is issued; else so that the last is issued now")
    parser.add_argument(
        "--step-ms", type=_count, help="between one and the next, by their times; else as the rate says"
    )
    parser.add_argument("--late", type=_share, default=default.late, metavar="SHARE", help="%(default)s")
    parser.add_argument("--copied", type=_share, default=default.copied, metavar="SHARE", help="%(default)s")
    parser.add_argument("--malformed", type=_share, default=default.malformed, metavar="SHARE", help="%(default)s")
    parser.add_argument("--huge", type=_share, default=default.huge, metavar="SHARE", help="%(default)s")
    parser.add_argument("--ledger", type=Path, metavar="FILE", help="where the account of what was sent is written")


def run(
    options: argparse.Namespace,
    obstacle: Callable[[Sent], str | None] = lambda _: None,
    cause: Callable[[], str | None] = lambda: None,
) -> int:
    """`obstacle` says, now and then, what keeps records from being acknowledged; each once. `cause` says it of those
    that were given up: other partitions may have acknowledged all the time."""
    recipe = recipe_of(options, int(time.time() * 1_000))
    ledger = Ledger.of(recipe)
    view = _View(recipe.count, ledger)
    try:
        view.say(create_topic(options.bootstrap, options.topic) + f"; seed {recipe.seed}, start {recipe.start_ms}")
        with _until_asked_to_stop(view) as asked:

            def show(sent: Sent) -> None:
                found = obstacle(sent)
                if found is not None:
                    view.say(f"klamm pipeline generate: no acknowledgement yet: {found}")
                view.show(sent)

            sent = send(
                generated(recipe),
                options.bootstrap,
                options.topic,
                per_second=options.rate,
                on_sent=ledger.note,
                on_progress=show,
                stops=lambda: len(asked) > 0,
                has_to_end=lambda: len(asked) > 1,
            )
    except NotMade as problem:
        view.say(f"klamm pipeline generate: {problem}")
        return 1
    if options.ledger:
        ledger.save(options.ledger)
    view.end(sent)
    if sent.was_silent and (found := cause()) is not None:
        view.say(f"klamm pipeline generate: {found}")
    return 0 if sent.acknowledged == sent.records else 1


def recipe_of(options: argparse.Namespace, now_ms: int) -> Recipe:
    step_ms = options.step_ms or (max(1, int(1_000 / options.rate)) if options.rate else Recipe(0).step_ms)
    is_live = options.rate is not None or options.count is None
    start_ms = now_ms if is_live else now_ms - options.count * step_ms
    return Recipe(
        seed=SystemRandom().randrange(10_000) if options.seed is None else options.seed,
        count=options.count,
        start_ms=start_ms if options.start_ms is None else options.start_ms,
        step_ms=step_ms,
        late=options.late,
        huge=options.huge,
        malformed=options.malformed,
        copied=options.copied,
    )


@contextmanager
def _until_asked_to_stop(view: "_View") -> Iterator[list[int]]:
    """How often. Ctrl-C ends it between two invoices, so that the ledger knows of each that was sent; what is on its
    way is waited for, unless it is pressed again."""
    asked: list[int] = []

    def note(number: int, _: object) -> None:
        asked.append(number)
        if len(asked) == 1:
            view.say("stopping, when what was sent is acknowledged; once more Ctrl-C gives it up")

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _View:
    """How far it is, on stderr: a line that changes on a terminal, now and then a line elsewhere."""

    def __init__(self, count: int | None, ledger: Ledger) -> None:
        self._of, self._ledger = f" of {count:,}" if count else "", ledger
        self._is_terminal = sys.stderr.isatty()
        self._clear = "\r\x1b[K" if self._is_terminal else ""
        self._every = SHOW_EVERY_SECONDS if self._is_terminal else SAY_EVERY_SECONDS
        self._began = self._last = time.monotonic()

    def say(self, text: str) -> None:
        print(f"{self._clear}{text}", file=sys.stderr, flush=True)

    def show(self, sent: Sent) -> None:
        now = time.monotonic()
        if now - self._last >= self._every:
            self._last = now
            what = f"{self._ledger.issued:,}{self._of} invoices{self._copies}"
            text = f"{what} sent, {sent.acknowledged:,} acknowledged, {self._speed(sent)}"
            print(f"{self._clear}{text}", end="" if self._is_terminal else "\n", file=sys.stderr, flush=True)

    def end(self, sent: Sent) -> None:
        what = f"{_many(self._ledger.issued, 'invoice', 'invoices')}{self._copies}"
        fates = ", ".join(f"{count:,} {fate}" for fate, count in sorted(self._ledger.fates.items()) if fate != COPY)
        of_them = f". Of the invoices: {fates}" if fates else ""
        self.say(
            f"{what}: {sent.acknowledged:,} of {_many(sent.records, 'record', 'records')} acknowledged, "
            f"{self._speed(sent)}{of_them}"
        )
        for problem, count in Counter(sent.errors).most_common(3):
            self.say(f"not acknowledged: {count:,}, {problem}")

    @property
    def _copies(self) -> str:
        """That come on top of the invoices. Who asked for 20,000 would wonder about 20,195 records."""
        copies = self._ledger.copies
        return f" and {_many(copies, 'copy', 'copies')}" if copies else ""

    def _speed(self, sent: Sent) -> str:
        return f"{sent.acknowledged / max(1e-3, time.monotonic() - self._began):,.0f}/s"


def _many(count: int, one: str, more: str) -> str:
    return f"{count:,} {one if count == 1 else more}"


def _count(text: str) -> int:
    return int(
        _number(text.replace("_", "").replace(",", ""), "a whole number of at least 1", lambda count: count >= 1)
    )


def _positive(text: str) -> float:
    return _number(text, "a number above 0", lambda rate: rate > 0)


def _share(text: str) -> float:
    return _number(text, "a share between 0 and 1", lambda share: 0 <= share <= 1)


def _number(text: str, wanted: str, is_right: Callable[[float], bool]) -> float:
    try:
        if is_right(number := float(text)):
            return number
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(f"{text!r} is not {wanted}")
