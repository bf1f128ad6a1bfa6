"""`klamm consume`: the records of a topic on standard output, from any offset or time, as text, JSON or a pattern."""

import argparse
import gc
import math
import sys
import time
from collections.abc import Sequence
from typing import Any

from klamm.cli.carried_out import carried_out
from klamm.cli.consume_bounds import BEGINNING, Bound, Extent, NoLeader, bound_of, extent_of, offsets_of
from klamm.cli.consume_entry import entry_obstacle
from klamm.cli.consume_formats import Format, format_of
from klamm.cli.consume_membership import Membership
from klamm.cli.consume_output import Output
from klamm.cli.consume_reading import Reading
from klamm.cli.consume_waiting import Waiting, once_led
from klamm.cli.group_asking import READ_COMMITTED, READ_UNCOMMITTED, Cluster, Refused
from klamm.cli.librdkafka import library, new_consumer
from klamm.cli.no_majority import undecided
from klamm.cli.options import (
    Misused,
    add_where,
    addresses_of,
    bootstrap_of,
    count_of,
    id_of,
    parser_of,
)
from klamm.cli.progress import Progress
from klamm.cli.saying import FAILED, counted, is_terminal, say
from klamm.cli.topic_asking import chosen, partitions_of

DESCRIPTION = """\
Print the records of a topic, one a line. It ends at the end that was there when it began; with --follow it waits for
more, until Ctrl-C.
"""

EXAMPLES = r"""
examples:
  klamm consume greetings
  klamm consume greetings --follow --from end          whatever comes from now on
  klamm consume invoice --from -10 --key               the last ten of each partition, with their keys
  klamm consume invoice --from '1h ago' --until '30m ago' --format json
  klamm consume invoice --partition 3 --from 42 --count 1
  klamm consume invoice --format '%d %p:%o %k -> %v\n'
  klamm consume invoice --group billing --follow       as a member of a group, whose offsets are committed
  klamm consume invoice --format json | jq -r .key | sort | uniq -c

--from and --until take: beginning, end, an offset, -N (the last N of each partition), a time as 2026-11-16T06:30
(UTC if no zone is given), or how long ago: '1h ago', 90s, 1d12h, PT30M. --until itself is not printed any more.

patterns: %t topic  %p partition  %o offset  %k key  %v value  %h headers  %T timestamp in ms  %d the same as a date
          %K %S sizes of key and value, -1 for null  %% percent  \n \t \r \0 \\ \x1f; nothing is added at the end
JSON: a string is UTF-8 text, {"base64": "AAECAw=="} is any bytes, null is null; `klamm produce --format json` takes it

exit code 0: read to the end, or as many as asked for; 1: the cluster refused it or does not answer, or what
was read could not be committed; 2: asked for in a way that makes no sense; 130: Ctrl-C; 141: whoever read our output
has gone
"""

ISOLATION = {"read_committed": READ_COMMITTED, "read_uncommitted": READ_UNCOMMITTED}
AGAIN_SECONDS = 1.0
"""Until it is asked once more where a time is in the logs, if somebody was away."""
NOBODY = "klamm-consume"
"""librdkafka wants the name of a group from whoever reads; without --group nothing is joined or committed."""


def make_parser() -> argparse.ArgumentParser:
    parser = parser_of("consume", DESCRIPTION, EXAMPLES)
    parser.add_argument("topic", metavar="TOPIC")
    what = parser.add_argument_group("what is read")
    what.add_argument("--from", dest="begin", metavar="WHERE", help="where to begin (beginning)")
    what.add_argument(
        "--from-beginning",
        action="store_const",
        const="beginning",
        dest="begin",
        help="the same as --from beginning, which it does anyway",
    )
    what.add_argument("--until", metavar="WHERE", help="where to end; else at the end that is there now")
    what.add_argument("--follow", action="store_true", help="wait for more")
    what.add_argument("--count", type=count_of, metavar="N", help="at most so many records")
    what.add_argument(
        "--partition",
        type=id_of,
        action="append",
        metavar="N",
        help="only this one; repeatable; else all of them",
    )
    what.add_argument(
        "--group", metavar="GROUP", help="go on where this group was, and commit; --from is for where it never was"
    )
    what.add_argument(
        "--isolation", choices=tuple(ISOLATION), default="read_committed", help="of transactions (read_committed)"
    )
    how = parser.add_argument_group("how it is shown")
    how.add_argument(
        "--format", default="value", metavar="FORMAT", help="value, json, or a pattern as '%%o %%k %%v\\n'"
    )
    how.add_argument("--json", action="store_const", const="json", dest="format", help="the same as --format json")
    how.add_argument("--key", action="store_true", help="the key before the value")
    how.add_argument("--headers", action="store_true", help="the headers before that")
    how.add_argument("--key-separator", default="\t", metavar="TEXT", help="between them (a tab)")
    how.add_argument("--null", default="", metavar="TEXT", help="what a null key or value is shown as (nothing)")
    add_where(parser)
    return parser


def run(arguments: Sequence[str]) -> int:
    options = make_parser().parse_args(arguments)
    return carried_out("consume", options, lambda: _run(options), Refused)


def _run(options: argparse.Namespace) -> int:
    prefix = [sign for sign, wanted in (("%h", options.headers), ("%k", options.key)) if wanted]
    null = options.null.encode(errors="surrogateescape")
    on_terminal = is_terminal(sys.stdout)
    shown = format_of(options.format, options.topic, null, prefix, options.key_separator, for_terminal=on_terminal)
    if sys.stdout is None:
        # A group would have read what nobody has seen.
        raise Misused("standard output is closed; `>/dev/null` reads all the same")
    if options.group and options.partition:
        raise Misused("--group shares partitions out among its members; --partition chooses: say one of them")
    now_ms = int(time.time() * 1_000)
    begin = BEGINNING if options.begin is None else bound_of("--from", options.begin, now_ms)
    until = None if options.until is None else bound_of("--until", options.until, now_ms)
    bootstrap = bootstrap_of(options)
    library()
    cluster = Cluster(addresses_of(bootstrap))

    def ask() -> Extent:
        # Asked again: a topic that was deleted has no leaders either.
        there = chosen(options.topic, partitions_of(cluster, options.topic), options.partition)
        return extent_of(cluster, options.topic, there, ISOLATION[options.isolation])

    extent = once_led(ask, lambda text: say(f"klamm consume: {text}")) if options.follow else ask()
    if begin.offset is not None and begin.offset > max(extent.ends.values()):
        where = f"{options.topic} ends at {max(extent.ends.values())}"
        say(f"klamm consume: offset {begin.offset} is beyond the end of the log, {where}; that is taken instead")
    consumption = Consumption(options, cluster, extent, begin, until)
    return _print_all(consumption, bootstrap, shown)


class Consumption:
    """What was asked for: where each partition begins and stops.

    It follows while more is waited for. When the time has come up to which it did, it ends like what nobody follows.
    """

    def __init__(
        self, options: argparse.Namespace, cluster: Cluster, extent: Extent, begin: Bound, until: Bound | None
    ) -> None:
        self.options = options
        self._cluster = cluster
        self._until = until
        self.partitions = sorted(extent.ends)
        self.ends_at_ms = _time_to_come(until) if options.follow else None
        """A time that is yet to come, up to which is read."""
        has_to_come = until is None or until.offset is not None or self.ends_at_ms is not None
        self.follows = bool(options.follow) and has_to_come
        self.starts = self._offsets(begin, extent)
        self.stops = self._stops(extent)

    def stops_now(self) -> dict[int, int]:
        """Asked again: after a failure the end of a log may be before where it was."""
        return self._stops(self._extent())

    def _stops(self, extent: Extent) -> dict[int, int]:
        """None yet of what is followed, but where an offset is to come."""
        if self.follows and (self._until is None or self._until.offset is None):
            return {}
        if self._until is None:
            return dict(extent.ends)
        return self._offsets(self._until, extent, beyond_end=self.follows)

    def _offsets(self, bound: Bound, extent: Extent, *, beyond_end: bool = False) -> dict[int, int]:
        return offsets_of(bound, self._cluster, self.options.topic, extent, beyond_end=beyond_end)

    def _extent(self) -> Extent:
        try:
            return extent_of(self._cluster, self.options.topic, self.partitions, ISOLATION[self.options.isolation])
        except NoLeader:
            # Nor has any partition of a topic that was deleted: that is Refused, in other words.
            partitions_of(self._cluster, self.options.topic)
            raise


def _time_to_come(until: Bound | None) -> int | None:
    time_ms = 0 if until is None or until.time_ms is None else until.time_ms
    return time_ms if time_ms > time.time() * 1_000 else None


def _print_all(consumption: Consumption, bootstrap: str, shown: Format) -> int:
    options = consumption.options

    def answered(problem: Any, partitions: Sequence[Any]) -> None:
        if member is not None:
            member.answered(problem, partitions)

    settings: dict[str, object] = {
        "isolation.level": options.isolation,
        "partition.assignment.strategy": "range,roundrobin",
        "on_commit": answered,
    }
    consumer: Any = new_consumer(bootstrap, options.group or NOBODY, settings)

    progress = Progress(wanted=not is_terminal(sys.stdout))

    def tell(text: str) -> None:
        progress.clear()
        say(f"klamm consume: {text}")

    def why_not_in() -> str:
        impatient = Cluster(addresses_of(bootstrap), patience_seconds=0.0)
        return undecided(options.dir, bootstrap) or entry_obstacle(impatient, options.group, consumer.memberid() or "")

    waiting = Waiting(consumption.stops_now, tell, lambda: reading.has_begun, follows=options.follow)

    def look_again(quiet_seconds: float) -> None:
        _maybe_stop(reading, consumption, waiting, quiet_seconds)
        if options.group and not reading.has_begun:
            waiting.tell_of_group(options.group, why_not_in)
        waiting.maybe_tell_of_entry()

    reading = Reading(consumer, options.topic, consumption.stops, look_again, follows=consumption.follows)
    # Messages come and go in tens of thousands, none in a circle: looking for one would take a quarter of the time.
    gc.disable()
    member = Membership(consumer, reading, consumption.starts) if options.group else None
    is_committed = True
    try:
        try:
            if member is not None:
                member.join(options.topic)
            else:
                reading.begin(consumption.starts)
            _print_batches(reading, consumption, shown, member, waiting, progress)
        finally:
            progress.clear()
            gc.enable()
            is_committed = member is None or member.leave()
            consumer.close()
    except KeyboardInterrupt:
        # Whoever follows is ended like this: a script wants to know what will be read twice.
        if is_committed:
            raise
    return 0 if is_committed else FAILED


def _print_batches(
    reading: Reading,
    consumption: Consumption,
    shown: Format,
    member: Membership | None,
    waiting: Waiting,
    progress: Progress,
) -> None:
    options, output = consumption.options, Output(sys.stdout.fileno())
    printed, ends_at_ms = 0, consumption.ends_at_ms or math.inf

    has_to_tell = member is not None and options.begin is not None

    def maybe_tell() -> None:
        """Whoever said --from wonders where it is, also in a script."""
        nonlocal has_to_tell
        if has_to_tell and member is not None and member.goes_on:
            has_to_tell = False
            progress.clear()
            say(f"group {options.group} goes on where it was: --from is for partitions in which it has never been")

    def so_far() -> str:
        return f"{printed:,} records, {printed / progress.seconds:,.0f} a second"

    for messages in reading.batches(options.count):
        if not messages and output.has_nobody_to_read_it():
            raise BrokenPipeError
        maybe_tell()
        if messages and member is None:
            output.write(shown(messages))
        elif messages and member is not None:
            output.write_and_note(shown(messages), member.noting())
        if member is not None:
            # By the clock, also while nothing comes: whoever asks where the group is wants to know it then.
            member.maybe_commit()
        printed += len(messages)
        waiting.heard(messages)
        if time.time() * 1_000 >= ends_at_ms:
            consumption.follows = False
            is_over = _maybe_stop(reading, consumption, waiting, reading.quiet_seconds)
            # Records of others may come all the time: then nobody else would ask again.
            ends_at_ms = math.inf if is_over else (time.time() + AGAIN_SECONDS) * 1_000
        progress.show(so_far)
    progress.clear()
    if not printed and options.count != 0:
        say(_nothing_printed(consumption))
        maybe_tell()


def _maybe_stop(reading: Reading, consumption: Consumption, waiting: Waiting, quiet_seconds: float) -> bool:
    """At the ends as they are now, unless somebody is away who knows one of them, or more is waited for."""
    stops = waiting.look(quiet_seconds)
    if stops is None or consumption.follows:
        return False
    reading.stop_at(stops)
    return True


def _nothing_printed(consumption: Consumption) -> str:
    options = consumption.options
    if options.group:
        return f"nothing new for group {options.group} in {options.topic}; --follow waits"
    return f"nothing there in {counted(len(consumption.partitions), 'partition')} of {options.topic}; --follow waits"
