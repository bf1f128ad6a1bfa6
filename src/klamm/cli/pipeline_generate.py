"""`klamm pipeline generate`: invoices for the example pipeline, into a topic."""

from argparse import ArgumentParser
from collections.abc import Sequence

from klamm.cli.options import Misused, add_where, bootstrap_of, parser_of
from klamm.cli.saying import MISUSED, failed
from klamm.local.problems import LocalError


def make_parser() -> ArgumentParser:
    from klamm.pipeline.invoice import generating

    parser = parser_of("pipeline generate", generating.DESCRIPTION, generating.EXAMPLES)
    add_where(parser)
    generating.add_arguments(parser)
    return parser


def run(arguments: Sequence[str]) -> int:
    from klamm.pipeline.invoice import generating

    options = make_parser().parse_args(arguments)
    try:
        options.bootstrap = bootstrap_of(options)
    except Misused as problem:
        return failed("pipeline generate", problem, MISUSED)
    except LocalError as problem:
        return failed("pipeline generate", problem)
    from klamm.cli.tips import way_back

    why = way_back(options.dir, options.bootstrap)
    if why is not None:
        return failed("pipeline generate", f"no broker answers: {why}")
    return generating.run(options)
