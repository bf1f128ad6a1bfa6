"""`klamm topic`: create, list, describe, alter and delete topics, and show where their replicas stand."""

import argparse
from collections.abc import Sequence

from klamm.cli import topic_changes, topic_views
from klamm.cli.carried_out import carried_out
from klamm.cli.group_asking import Cluster, Refused
from klamm.cli.options import (
    MOST_32,
    MOST_REPLICAS,
    add_asking_verb,
    addresses_of,
    bootstrap_of,
    parser_of,
    whole_of,
)
from klamm.cli.topic_asking import no_topic
from klamm.local.view import UnknownTopic

DESCRIPTION = """\
Topics of a cluster: of the one that --bootstrap names, or the one `klamm up` keeps in --dir.
"""

EXAMPLES = """\
examples:
  klamm topic create invoice --partitions 10 --replication 3 --config min.insync.replicas=2
  klamm topic list
  klamm topic describe invoice
  klamm topic placement invoice          which broker leads and follows what, rack by rack
  klamm topic alter invoice --partitions 12 --config retention.ms=86400000
  klamm topic alter invoice --unset retention.ms
  klamm topic delete invoice
  klamm topic list --bootstrap 127.0.0.1:19092 --json

exit code 0: done; 1: the cluster refused it or did not answer; 2: asked for in a way that makes no sense
"""

CREATE = """\
examples:
  klamm topic create invoice
  klamm topic create invoice --partitions 10 --replication 3 --config min.insync.replicas=2
"""

LIST = """\
Records are the end of each log less its beginning: what was compacted away, and marks of transactions, count as well.
A `-` is what its leader does not tell.

examples:
  klamm topic list
  klamm topic list --json | jq -r '.[].topic'
"""

DESCRIBE = """\
examples:
  klamm topic describe invoice
  klamm topic describe invoice payment --json
"""

PLACEMENT = """\
examples:
  klamm topic placement invoice
"""

ALTER = """\
examples:
  klamm topic alter invoice --partitions 12
  klamm topic alter invoice --config retention.ms=86400000 --unset cleanup.policy
"""

DELETE = """\
examples:
  klamm topic delete invoice
"""


def run(arguments: Sequence[str]) -> int:
    options = make_parser().parse_args(arguments)
    return carried_out(f"topic {options.verb}", options, lambda: _run(options), Refused)


def _run(options: argparse.Namespace) -> int:
    try:
        return int(options.run(options))
    except UnknownTopic as problem:
        raise no_topic(Cluster(addresses_of(bootstrap_of(options))), str(problem)) from problem


def make_parser() -> argparse.ArgumentParser:
    parser = parser_of("topic", DESCRIPTION, EXAMPLES)
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    create = add_asking_verb(verbs, "create", "make a topic", topic_changes.create, CREATE)
    create.add_argument("name", metavar="NAME")
    create.add_argument(
        "--partitions", type=whole_of(0, MOST_32), metavar="N", help="how many; else the brokers' num.partitions"
    )
    create.add_argument(
        "--replication",
        "--replication-factor",
        "--replicas",
        type=whole_of(0, MOST_REPLICAS),
        metavar="N",
        help="replicas of each; else the brokers' default.replication.factor",
    )
    _add_config(create)
    add_asking_verb(verbs, "list", "all topics", topic_views.list_all, LIST)
    describe = add_asking_verb(
        verbs, "describe", "settings, leaders, replicas, who is in sync, offsets", topic_views.describe, DESCRIBE
    )
    describe.add_argument("name", nargs="+", metavar="TOPIC")
    placement = add_asking_verb(
        verbs, "placement", "a table: what each broker leads and follows", topic_views.placement, PLACEMENT
    )
    placement.add_argument("name", metavar="TOPIC")
    alter = add_asking_verb(verbs, "alter", "more partitions, other settings", topic_changes.alter, ALTER)
    alter.add_argument("name", metavar="TOPIC")
    alter.add_argument(
        "--partitions", type=whole_of(0, MOST_32), metavar="N", help="how many there shall be; never fewer than now"
    )
    _add_config(alter)
    alter.add_argument("--unset", action="append", default=[], metavar="KEY", help="back to the default; repeatable")
    delete = add_asking_verb(verbs, "delete", "delete topics with all their records", topic_changes.delete, DELETE)
    delete.add_argument("name", nargs="+", metavar="TOPIC")
    delete.add_argument("--force", action="store_true", help="also what the brokers keep for themselves")
    return parser


def _add_config(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--config",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="one of Kafka's topic settings, as retention.ms=60000; repeatable",
    )
