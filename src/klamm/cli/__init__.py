"""The command line. Each command is a file; it is imported when it is called, so that none pays for the others."""

import errno
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module

from klamm import __version__
from klamm.cli.saying import INTERRUPTED, MISUSED, NOBODY_READS, is_terminal, say, say_result

COMMANDS = {
    "demo": "two minutes: brokers, Spark, one killed in the middle, everything counted",
    "up": "start a cluster on this machine, and watch it",
    "down": "stop it",
    "status": "who runs, who decides, what is out of sync",
    "node": "kill, stop, start, pause or resume single nodes",
    "topic": "create, list, describe, alter, delete and move topics; see their placement",
    "produce": "send records to a topic: lines, JSON, files",
    "consume": "read a topic: from any offset or time, as text or JSON",
    "config": "settings of topics and brokers: shown, set, unset",
    "group": "consumer groups: lag, members, offsets reset and deleted",
    "pipeline": "a file of functions on data frames, run on Spark over topics",
    "lab": "experiments on a real cluster: what acks, in-sync replicas, racks and groups are worth",
    "bench": "how quick is this cluster? records a second, and latency",
    "broker": "run one broker in the foreground",
    "storage": "a broker's data directory: what is damaged in it, and what can be done",
    "sim": "whole clusters in a simulator, from seeds, and every promise checked",
    "chaos": "a cluster of real processes under faults, and what clients saw checked",
    "completion": "completion for bash, zsh and fish",
}

FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}
"""What somebody's disk says who wants to keep our output: it is no mistake of ours."""

HELP = """\
Klamm: Kafka in Python. Every Kafka client and tool can use it.

usage: klamm COMMAND [OPTIONS]

commands:
{commands}

  klamm COMMAND --help   what a command does, with examples
  klamm --version        the version

first steps:
  klamm demo                         all of it in two minutes, counted in the end
  klamm up --detach                  three brokers on 127.0.0.1:9092 to 9094, data in ./klamm-data
  klamm topic create invoice --partitions 10 --replication 3
  klamm topic placement invoice      who leads what, and who follows
  echo hello | klamm produce invoice
  klamm consume invoice --follow     what is there, and what comes
  klamm down                         stop it; the data stays
  klamm broker --dir data            or a single broker, in the foreground
"""


def main(arguments: Sequence[str] | None = None) -> int:
    words = list(sys.argv[1:] if arguments is None else arguments)
    name = "klamm" if not words or words[0].startswith("-") else f"klamm {words[0]}"
    try:
        return _written(name, lambda: _run(words))
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # `| head` has read what it wanted.
        _drop_output()
        return NOBODY_READS


def _run(words: Sequence[str]) -> int:
    if not words or words[0] in ("-h", "--help", "help"):
        say_result(help_text())
        return 0
    if words[0] == "--version":
        say_result(f"klamm {__version__}")
        return 0
    if words[0] not in COMMANDS:
        say(unknown(words[0]))
        return MISUSED
    return int(import_module(f"klamm.cli.{words[0]}").run(words[1:]))


def _written(name: str, action: Callable[[], int]) -> int:
    """The exit code, when all that was printed is where it belongs: a disk may be full."""
    code, ended = 0, None
    try:
        try:
            code = action()
        except SystemExit as ending:
            # argparse has printed a help, or what is wrong.
            ended = ending
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError as problem:
        if problem.errno not in FULL:
            raise
        _drop_output()
        if not code:
            with suppress(OSError):
                where = "" if problem.filename is None else f"{problem.filename}: "
                say(f"{name}: {where}{problem.strerror}")
        return code or 1
    if ended is not None:
        raise ended
    return code


def _drop_output() -> None:
    """Python would complain once more when it flushes at the end."""
    if sys.stdout is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def help_text() -> str:
    width = max(map(len, COMMANDS))
    text = HELP.format(commands="\n".join(f"  {name:<{width}}   {what}" for name, what in COMMANDS.items()))
    if not is_terminal(sys.stdout):
        return text
    from shutil import get_terminal_size

    from klamm.cli.wrapping import wrapped

    return wrapped(text, get_terminal_size().columns)


def unknown(word: str) -> str:
    from difflib import get_close_matches

    near = get_close_matches(word, COMMANDS, n=1)
    hint = f" Did you mean `klamm {near[0]}`?" if near else " `klamm --help` lists the commands."
    return f"klamm: there is no command {word!r}.{hint}"
