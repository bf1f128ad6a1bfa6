"""`klamm pipeline generate`: invoices for the example pipeline, into a topic."""

import argparse
from collections.abc import Sequence

from klamm.cli.options import Misused, bootstrap_of, parser_of
from klamm.cli.saying import MISUSED, failed
from klamm.local.problems import LocalError


def run(arguments: Sequence[str]) -> int:
    from klamm.pipeline.invoice import generating

    parser = parser_of("pipeline generate", generating.DESCRIPTION, generating.EXAMPLES)
    _add_where(parser)
    generating.add_arguments(parser)
    options = parser.parse_args(arguments)
    try:
        options.bootstrap = bootstrap_of(options)
    except Misused as problem:
        return failed("pipeline generate", problem, MISUSED)
    except LocalError as problem:
        return failed("pipeline generate", problem)
    return generating.run(options)


def _add_where(parser: argparse.ArgumentParser) -> None:
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--bootstrap", metavar="HOST:PORT,…", help="brokers of the cluster to write to")
    where.add_argument("--dir", metavar="DIR", help="the directory of a cluster that `klamm up` started")
