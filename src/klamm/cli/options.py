"""Options that several commands share, and what is made of them."""

import argparse
import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from klamm.cli.parsing import Parser

if TYPE_CHECKING:
    from klamm.local.asking import Address

DEFAULT_DIRECTORY = "klamm-data"
DEFAULT_BOOTSTRAP = "127.0.0.1:9092"

GROUPED, THOUSANDS = re.compile(r"[+-]?\d{1,3}([,_]\d{3})+|[+-]?\d+(_\d+)+"), re.compile("[,_]")
"""How people write large numbers."""

MOST_REPLICAS, MOST_32, MOST_64 = (1 << 15) - 1, (1 << 31) - 1, (1 << 63) - 1
"""What the protocol and the client library have room for."""

EXAMPLES = {"--set": "num.partitions=6", "--kafka": "security.protocol=SSL", "--conf": "spark.driver.memory=2g"}
"""Of pairs that are no settings of a topic."""


class Misused(Exception):  # noqa: N818
    """An option that makes no sense, in a sentence."""


def parser_of(command: str, description: str, examples: str) -> argparse.ArgumentParser:
    return Parser(prog=f"klamm {command}", description=description, epilog=examples)


def add_verb(
    verbs: "argparse._SubParsersAction[argparse.ArgumentParser]",
    name: str,
    what: str,
    run_verb: Callable[[argparse.Namespace], int],
    epilog: str,
) -> argparse.ArgumentParser:
    """One verb of a command; `run` of its options carries it out."""
    parser = verbs.add_parser(
        name,
        help=what,
        description=f"{what[0].upper()}{what[1:]}{'' if what.endswith('?') else '.'}",
        epilog=epilog,
    )
    parser.set_defaults(run=run_verb)
    return parser


def add_asking_verb(
    verbs: "argparse._SubParsersAction[argparse.ArgumentParser]",
    name: str,
    what: str,
    run_verb: Callable[[argparse.Namespace], int],
    epilog: str,
) -> argparse.ArgumentParser:
    """One that asks a cluster, and can answer in JSON."""
    parser = add_verb(verbs, name, what, run_verb, epilog)
    add_where(parser)
    add_json(parser)
    return parser


def add_directory(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--dir",
        type=directory_of,
        default=DEFAULT_DIRECTORY,
        metavar="DIR",
        help=f"the cluster's directory, {DEFAULT_DIRECTORY} unless told otherwise",
    )


def directory_of(text: str) -> str:
    """A script whose variable is empty does not mean the directory it was called from."""
    if not text:
        raise argparse.ArgumentTypeError("an empty name is no directory; `--dir .` is the one you are in")
    return text


def add_where(parser: argparse.ArgumentParser) -> None:
    """Which cluster is meant: the other half of `bootstrap_of`."""
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--bootstrap",
        "--bootstrap-server",
        "-b",
        metavar="HOST:PORT,…",
        help=f"brokers to ask; {DEFAULT_BOOTSTRAP} where there is no cluster to be meant",
    )
    where.add_argument(
        "--dir",
        type=directory_of,
        metavar="DIR",
        help=f"the directory of a cluster that `klamm up` started; {DEFAULT_DIRECTORY} unless told otherwise",
    )


def add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="for programs: the result as JSON on standard output")


def pairs_of(option: str, texts: Sequence[str]) -> dict[str, str]:
    """The KEY=VALUE pairs of an option that may be repeated, or of words without one; the last one of a key counts."""
    pairs = {}
    before = f"{option} " if option else ""
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            example = EXAMPLES.get(option, "retention.ms=60000")
            raise Misused(f"{before}{text}: expected KEY=VALUE, as in {before}{example}")
        pairs[key.strip()] = value.strip()
    return pairs


def bootstrap_of(options: argparse.Namespace, *, tell: bool = True) -> str:
    """Where to ask: what --bootstrap says, or the brokers of the cluster in --dir, or of the one in the usual
    directory, or, and that is told, whoever has Kafka's usual port."""
    if options.bootstrap:
        return str(options.bootstrap)
    from klamm.local.record import read_record

    directory = Path(options.dir or DEFAULT_DIRECTORY)
    record = read_record(directory)
    if record is not None:
        from klamm.local.answering import check_nobody_else_answers

        check_nobody_else_answers(directory.absolute(), record)
        return record.bootstrap_servers
    if options.dir:
        from klamm.local.cluster import LocalCluster

        # Which says that there is none, and maybe where one is.
        return LocalCluster(directory).record().bootstrap_servers
    from klamm.cli.unnamed import unnamed_cluster

    return unnamed_cluster(directory.absolute(), deletes=getattr(options, "deletes", False), tell=tell)


def addresses_of(bootstrap: str) -> "list[Address]":
    from klamm.local.asking import Address

    found = []
    for text in filter(None, (part.strip() for part in bootstrap.split(","))):
        host, colon, port = text.rpartition(":")
        if not colon or not host or not port.isdigit() or int(port) > 65_535:
            raise Misused(f"{text} is no HOST:PORT, as in 127.0.0.1:9092")
        found.append(Address(host.strip("[]"), int(port)))
    return found


# Numbers, each within what there is room for.


def whole_of(least: int, most: int) -> Callable[[str], int]:
    """Also written with commas or underscores between thousands, and only there: `0,1` are two numbers."""

    def number_of(text: str) -> int:
        try:
            number = int(THOUSANDS.sub("", text) if GROUPED.fullmatch(text) else text)
        except ValueError:
            number = least - 1
        if not least <= number <= most:
            raise argparse.ArgumentTypeError(f"{text}: expected a number from {least} to {most}{_one_only(text)}")
        return number

    return number_of


def _one_only(text: str) -> str:
    several = text.split(",")
    return "; one, not several at once" if len(several) > 1 and all(map(str.isdecimal, several)) else ""


count_of = whole_of(0, MOST_64)
id_of = whole_of(0, MOST_32)
port_of = whole_of(0, 65_535)


def rate_of(text: str) -> float:
    return _above_zero(text, math.inf)


def seconds_of(text: str) -> float:
    """As long as librdkafka can count milliseconds."""
    return _above_zero(text, MOST_32 // 1_000)


def _above_zero(text: str, most: float) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 < number <= most:
        upto = "" if math.isinf(most) else f" and at most {most}"
        raise argparse.ArgumentTypeError(f"{text}: expected a number above 0{upto}")
    return number
