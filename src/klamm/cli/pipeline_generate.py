"""`klamm pipeline generate`: invoices for the example pipeline, into a topic."""

from argparse import ArgumentParser
from collections.abc import Sequence

from klamm.cli.carried_out import carried_out
from klamm.cli.options import add_where, bootstrap_of, parser_of


def make_parser() -> ArgumentParser:
    from klamm.pipeline.invoice import generating

    parser = parser_of("pipeline generate", generating.DESCRIPTION, generating.EXAMPLES)
    add_where(parser)
    generating.add_arguments(parser)
    return parser


def run(arguments: Sequence[str]) -> int:
    from klamm.cli.changing import refuse_if_undecided
    from klamm.cli.group_asking import Refused, cluster_of
    from klamm.cli.produce_obstacles import Silence, obstacle_to
    from klamm.pipeline.invoice import generating
    from klamm.pipeline.invoice.sending import Sent

    options = make_parser().parse_args(arguments)

    def generate() -> int:
        options.bootstrap = bootstrap_of(options)
        cluster, found = cluster_of(options), list[str]()
        # Where nobody answers, the client library would be silent for half a minute.
        cluster.brokers()
        if options.topic not in cluster.topics():
            refuse_if_undecided(options)

        def ask() -> str | None:
            return obstacle_to(cluster, options.topic, None, needs_all=True)

        silence = Silence(ask, found.append)

        def obstacle(sent: Sent) -> str | None:
            waiting = sent.records - sent.acknowledged - len(sent.errors)
            silence.maybe_ask(sent.acknowledged, waiting, sent.silent_seconds)
            return found.pop() if found else None

        return generating.run(options, obstacle, ask)

    return carried_out("pipeline generate", options, generate, Refused)
