"""`klamm produce`: lines, JSON, files or words into a topic, and an account of what became of them."""

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from itertools import chain, islice
from pathlib import Path
from typing import BinaryIO

from klamm.cli.carried_out import carried_out
from klamm.cli.group_asking import Cluster, Refused
from klamm.cli.json_records import ANY_PARTITION, Record, is_text
from klamm.cli.librdkafka import ACKS, COMPRESSIONS, library
from klamm.cli.options import (
    Misused,
    add_json,
    add_where,
    addresses_of,
    bootstrap_of,
    count_of,
    parser_of,
    rate_of,
    seconds_of,
)
from klamm.cli.produce_obstacles import Silence, obstacle_to
from klamm.cli.produce_records import (
    FEW_BYTES,
    BadLine,
    Meanwhile,
    Shape,
    Tally,
    lines_and_whether_few,
    record_of_whole,
    records_of_json,
    records_of_lines,
    records_of_words,
)
from klamm.cli.produce_sending import Sender
from klamm.cli.progress import Progress
from klamm.cli.saying import FAILED, INTERRUPTED, counted, failed, is_terminal, say
from klamm.cli.topic_asking import chosen, partitions_made

DESCRIPTION = """\
Send records to a topic: each line of standard input is the value of one. A topic that is not there is made by the
cluster, if that is how it is set up (auto.create.topics.enable).

What became of them is said at the end: so many sent, acknowledged, failed, and of how many nobody knows.
"""

EXAMPLES = """\
examples:
  echo hello | klamm produce greetings
  klamm produce greetings --key ann --value hello         one record, from the command line
  klamm produce prices --file prices.csv --key-separator ,       "ABC,12.50": key ABC, value 12.50
  klamm produce scans --whole --file a.pdf --file b.pdf --header kind=pdf
  klamm produce users --key ann --tombstone               null for ann: a compacted topic forgets her
  klamm produce clicks --file clicks.log --rate 500 --count 10000 --compression zstd
  klamm consume invoice --format json | klamm produce copy --format json --partition any

lines of JSON (--format json), as `klamm consume --format json` prints them; everything but the value may be missing:
  {"key": "ann", "value": "hello", "headers": [["source", "till-3"]], "partition": 0, "timestamp": 1700000000000}
  a string is UTF-8 text, {"base64": "AAECAw=="} is any bytes, null is null; topic and offset are left aside

With --acks all nothing is doubled or out of order if a connection is lost (the producer is idempotent), except for one
small input: a single --value, or one file or pipe that has ended below 64 KiB. Those go half a second sooner without.
So that this stays true it ends when a partition has acknowledged nothing for --timeout, and sends nothing after that.
With --acks 0 or 1, and for one small input, --timeout is for each record alone: the others are still sent.

At the end, and with --json: failed are records that are surely not there; not_acknowledged are those given up, or whose
answer was lost: they may be there, or were never sent.

exit code 0: everything was acknowledged; 1: something was not, or nobody answers; 2: asked for in a way that makes no
sense; 130: Ctrl-C, after what was sent until then, or a second one, which gives that up
"""

INTERRUPTED_SECONDS = 0.5
"""After Ctrl-C what was sent is acknowledged within that, or something is in the way."""
NAMED_PROBLEMS = 3
STANDARD_INPUT = "-"


def make_parser() -> argparse.ArgumentParser:
    parser = parser_of("produce", DESCRIPTION, EXAMPLES)
    parser.add_argument("topic", metavar="TOPIC")
    what = parser.add_argument_group("what is sent")
    what.add_argument("--file", action="append", metavar="FILE", help="instead of standard input; repeatable")
    what.add_argument("--format", choices=("lines", "json"), default="lines", help="of the input (lines)")
    what.add_argument("--whole", action="store_true", help="each file, or all of standard input, is one record")
    what.add_argument("--value", action="append", metavar="TEXT", help="a record of this; repeatable; nothing is read")
    what.add_argument("--tombstone", action="store_true", help="a record whose value is null; nothing is read")
    what.add_argument("--count", type=count_of, metavar="N", help="at most so many records")
    shape = parser.add_argument_group("what each record gets")
    shape.add_argument("--key", metavar="KEY", help="this key")
    shape.add_argument("--key-separator", metavar="TEXT", help="each line is a key, this, and a value; \\t is a tab")
    shape.add_argument("--header", action="append", default=[], metavar="NAME=VALUE", help="a header; repeatable")
    shape.add_argument("--null", metavar="TEXT", help="a key or value that reads like this is null")
    shape.add_argument("--partition", metavar="N|any", help="to this one; any: as the key says, else as it comes")
    how = parser.add_argument_group("how it is sent")
    how.add_argument("--acks", choices=tuple(ACKS), default="all", help="who has to have it: nobody, leader, all (all)")
    how.add_argument("--compression", choices=COMPRESSIONS, default="none", help="of the batches (none)")
    how.add_argument("--rate", type=rate_of, metavar="N", help="so many a second; else as quickly as it goes")
    how.add_argument(
        "--timeout",
        type=seconds_of,
        default=30.0,
        metavar="SECONDS",
        help="give up after so long without an acknowledgement (30); see below",
    )
    add_where(parser)
    add_json(parser)
    return parser


def run(arguments: Sequence[str]) -> int:
    options = make_parser().parse_args(arguments)
    return carried_out("produce", options, lambda: _run(options), Refused)


def _run(options: argparse.Namespace) -> int:
    shape, tally, meanwhile = _shape(options), Tally(), Meanwhile()
    with ExitStack() as files:
        records, are_few = _records(options, shape, files, tally, meanwhile)
        bootstrap = bootstrap_of(options)
        library()
        cluster = Cluster(addresses_of(bootstrap))
        there, is_new = partitions_made(cluster, options.topic)
        if is_new:
            replicas = counted(max(len(each.replicas) for each in there.values()), "replica")
            made = f"{counted(len(there), 'partition')}, {replicas}"
            say(f"there was no topic {options.topic}: the cluster has made it, {made}")
        wanted = None if shape.partition in (None, ANY_PARTITION) else [shape.partition]
        if wanted is not None:
            chosen(options.topic, there, wanted)
        settings = _settings(options, are_few)
        patience_seconds = options.timeout if settings["enable.idempotence"] else None
        sender = Sender(bootstrap, options.topic, settings, patience_seconds)
        if _reads_a_terminal(options):
            say("all of it is one record; Ctrl-D ends" if options.whole else "one record a line; Ctrl-D ends")
        code = _sent(sender, records, meanwhile, options, lambda: _obstacle(cluster, options, wanted))
        if tally.without_separator:
            say(f"{counted(tally.without_separator, 'line')} had no separator: sent without a key")
        return code


def _reads_a_terminal(options: argparse.Namespace) -> bool:
    reads = not options.value and not options.tombstone and STANDARD_INPUT in (options.file or [STANDARD_INPUT])
    return reads and is_terminal(sys.stdin)


def _settings(options: argparse.Namespace, are_few: bool) -> dict[str, object]:
    return {
        "acks": ACKS[options.acks],
        # Nothing is doubled or out of order whatever happens on the way. It takes librdkafka half a second to begin,
        # which a line or two are not worth: theirs would be a connection lost in the very moment.
        "enable.idempotence": ACKS[options.acks] == ACKS["all"] and not are_few,
        "compression.type": options.compression,
        "message.timeout.ms": max(1, int(options.timeout * 1_000)),
    }


def _obstacle(cluster: Cluster, options: argparse.Namespace, partitions: "list[int] | None") -> str | None:
    return obstacle_to(cluster, options.topic, partitions, needs_all=ACKS[options.acks] == ACKS["all"])


def _sent(
    sender: Sender,
    records: Iterator[Record],
    meanwhile: Meanwhile,
    options: argparse.Namespace,
    ask: Callable[[], str | None],
) -> int:
    progress = Progress(wanted=not _reads_a_terminal(options))

    def say_obstacle(obstacle: str) -> None:
        progress.clear()
        say(f"klamm produce: no acknowledgement yet: {obstacle}; trying for {options.timeout:g} s")

    silence = Silence(ask, say_obstacle)

    def show() -> None:
        silence.maybe_ask(sender.acknowledged, sender.waiting)
        progress.show(
            lambda: (
                f"{sender.sent:,} sent, {sender.acknowledged:,} acknowledged, "
                f"{sender.acknowledged / progress.seconds:,.0f} a second"
            )
        )

    interrupted_seconds: float | None = None

    def show_end() -> None:
        nonlocal interrupted_seconds
        show()
        if interrupted_seconds is not None and progress.seconds > interrupted_seconds + INTERRUPTED_SECONDS:
            interrupted_seconds = None
            progress.clear()
            say("klamm produce: what was sent is waited for; once more Ctrl-C gives it up")

    meanwhile.act = lambda: sender.listen(show)
    code = 0
    try:
        if options.rate:
            records = sender.paced(records, options.rate, show)
        sender.send(records, show)
        sender.flush(show)
    except BadLine as problem:
        progress.clear()
        code = failed("produce", f"{problem}; nothing from there on was sent")
    except KeyboardInterrupt:
        code, interrupted_seconds = INTERRUPTED, progress.seconds
    finally:
        # Whatever has ended it: what was sent until then is on its way, and is accounted for.
        try:
            sender.flush(show_end)
        except KeyboardInterrupt:
            code = INTERRUPTED
            sender.give_up()
            sender.flush(show)
        progress.clear()
        _say_outcome(sender, silence, progress.seconds, options)
    return code or (0 if sender.acknowledged == sender.sent else FAILED)


def _say_outcome(sender: Sender, silence: Silence, seconds: float, options: argparse.Namespace) -> None:
    for problem, count in sender.problems.most_common(NAMED_PROBLEMS):
        obstacle = silence.cause() if problem == sender.timed_out else None
        how = "given up" if problem == sender.timed_out else "failed"
        say(f"klamm produce: {counted(count, 'record')} {how}: {problem}{f' ({obstacle})' if obstacle else ''}")
    if sender.gave_up:
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
        print(json.dumps(document, indent=2), flush=True)
        return
    # Nobody acknowledges with acks=0: it has left this machine, that is all.
    how = "handed to the network" if ACKS[options.acks] == 0 else "acknowledged"
    may_be = "may be there" if sender.open == 1 else "some may be there"
    more = f", {sender.open:,} not acknowledged ({may_be})" if sender.open else ""
    say(
        f"{sender.sent:,} sent to {options.topic}, {sender.acknowledged:,} {how}, {failed_for_sure:,} failed{more} "
        f"in {seconds:.2f} s ({sender.acknowledged / seconds:,.0f} a second)"
    )


# What the options mean.


def _shape(options: argparse.Namespace) -> Shape:
    if options.key is not None and options.key_separator is not None:
        raise Misused("--key is for all records, --key-separator finds one in each: say one of them")
    if options.key_separator == "":
        raise Misused("--key-separator: nothing separates nothing; say a character or a few, as : or \\t")
    if options.format == "json" and (options.key_separator is not None or options.null is not None):
        raise Misused("--key-separator and --null are for lines; JSON says itself what is the key and what is null")
    if options.tombstone and options.key is None:
        raise Misused("--tombstone needs --key: null is for the key that is to be forgotten")
    separator = options.key_separator
    return Shape(
        None if options.key is None else options.key.encode(errors="surrogateescape"),
        None if separator is None else separator.replace("\\t", "\t").encode(errors="surrogateescape"),
        None if options.null is None else options.null.encode(errors="surrogateescape"),
        _partition(options.partition),
        [_header(text) for text in options.header] or None,
    )


def _records(
    options: argparse.Namespace, shape: Shape, files: ExitStack, tally: Tally, meanwhile: Meanwhile
) -> tuple[Iterator[Record], bool]:
    """And whether they are few."""
    if sum([bool(options.value), options.tombstone, bool(options.file)]) > 1:
        raise Misused("--value, --tombstone and --file are three ways to say what is sent: say one of them")
    if options.whole and options.format == "json":
        raise Misused("--whole takes a file as it is; --format json reads its lines: say one of them")
    records: Iterator[Record]
    if options.value or options.tombstone:
        values = [text.encode(errors="surrogateescape") for text in options.value or ()]
        records = records_of_words(shape, values or [None])
        are_few = len(values) <= 1 and sum(map(len, values)) < FEW_BYTES
    else:
        inputs, are_few = _inputs(options.file or [STANDARD_INPUT], files, meanwhile)
        records = _records_of(options, shape, inputs, tally)
    return islice(records, options.count), are_few


def _inputs(names: Sequence[str], files: ExitStack, meanwhile: Meanwhile) -> tuple[list[Iterable[bytes]], bool]:
    """The lines of each, and whether they are few. Who cannot be read is refused before anything is sent."""
    if len(names) == 1:
        lines, are_few = lines_and_whether_few(_opened(names[0], files), meanwhile)
        return [lines], are_few
    for name in names:
        # Whoever writes into a pipe would be told that nobody reads any more.
        if name == STANDARD_INPUT or not Path(name).is_fifo():
            with ExitStack() as looked_at:
                _opened(name, looked_at)
    return [_lines_in_turn(name, meanwhile) for name in names], False


def _lines_in_turn(name: str, meanwhile: Meanwhile) -> Iterator[bytes]:
    """Opened when its turn comes, and closed after it: there may be more of them than a process may have open."""
    with ExitStack() as files:
        try:
            file = _opened(name, files)
        except Misused as problem:
            raise BadLine(str(problem)) from None
        yield from lines_and_whether_few(file, meanwhile)[0]


def _records_of(
    options: argparse.Namespace, shape: Shape, inputs: Sequence[Iterable[bytes]], tally: Tally
) -> Iterator[Record]:
    if options.whole:
        return (record_of_whole(shape, b"".join(lines)) for lines in inputs)
    if options.format == "json":
        names = options.file or ["standard input"]
        parts = (records_of_json(shape, lines, name) for lines, name in zip(inputs, names, strict=True))
    else:
        parts = (records_of_lines(shape, lines, tally) for lines in inputs)
    return chain.from_iterable(parts)


def _opened(name: str, files: ExitStack) -> BinaryIO:
    if name == STANDARD_INPUT:
        if sys.stdin is None:
            raise Misused("standard input is closed; say --file, --value or --tombstone")
        return sys.stdin.buffer
    try:
        return files.enter_context(Path(name).open("rb"))
    except OSError as problem:
        raise Misused(f"cannot read {name}: {problem.strerror}") from None


def _header(text: str) -> tuple[str, bytes]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise Misused(f"--header {text}: expected NAME=VALUE, as --header source=till-3")
    if not is_text(name):
        raise Misused(f"--header {text!r}: its name is no UTF-8; only values may be any bytes")
    return name, value.encode(errors="surrogateescape")


def _partition(text: str | None) -> int | None:
    if text is None:
        return None
    if text == "any":
        return ANY_PARTITION
    if not (text.isascii() and text.isdigit()):
        raise Misused(f"--partition {text}: expected the number of a partition, or any")
    return int(text)
