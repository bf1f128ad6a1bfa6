"""`klamm topic`: topics created, listed, described, altered, deleted; where their replicas stand, lead and move to."""

import argparse
from collections.abc import Sequence

from klamm.cli import topic_changes, topic_elections, topic_moves, topic_views
from klamm.cli.carried_out import carried_out
from klamm.cli.group_asking import Refused, cluster_of
from klamm.cli.options import (
    MOST_32,
    MOST_REPLICAS,
    add_asking_verb,
    id_of,
    parser_of,
    seconds_of,
    whole_of,
)
from klamm.cli.topic_asking import no_topic
from klamm.cli.topic_targets import brokers_of
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
  klamm topic elect                      preferred leaders lead again, at once
  klamm topic move invoice --to 1,2,3,4  these brokers hold it from now on
  klamm topic moves                      what is on its way
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

ELECT = """\
The first replica of a partition is preferred to lead it. After a restart somebody else does; the brokers give it back
by themselves after some seconds, as soon as it is in sync. This does it now.

--unclean is for a partition that has no leader, when none of its replicas in sync will ever come back: another one
leads, and what it has not copied is lost, acknowledged or not. It needs --force.

examples:
  klamm topic elect                                all partitions of all topics
  klamm topic elect invoice --partition 3
  klamm topic elect invoice --unclean --force      rather with losses than not at all
"""

MOVE = """\
--to: these brokers hold the topic. Its partitions are spread over them and their racks as those of a new topic are;
what stands well stays. --replicas: exactly these replicas, in this order; the first is preferred to lead.
The new ones copy first, then the others let go: clients go on. Until then --cancel takes it back.

examples:
  klamm topic move invoice --to 1,2,3,4            also on the new broker 4
  klamm topic move invoice --to 1,2,4              nothing on 3: it can be taken out
  klamm topic move invoice --to 1,2,3 --replication 2
  klamm topic move invoice --partition 0 --replicas 2,3,1
  klamm topic move invoice --to 1,2,3 --no-wait && klamm topic moves
  klamm topic move invoice --cancel
"""

MOVES = """\
`copying` are the brokers that are not in sync yet.

examples:
  klamm topic moves
  klamm topic moves invoice --json
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
        raise no_topic(cluster_of(options), str(problem)) from problem


def make_parser() -> argparse.ArgumentParser:
    parser = parser_of("topic", DESCRIPTION, EXAMPLES)
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    create = add_asking_verb(verbs, "create", "make a topic", topic_changes.create, CREATE)
    create.add_argument("name", metavar="NAME")
    create.add_argument(
        "--partitions", type=whole_of(1, MOST_32), metavar="N", help="how many; else the brokers' num.partitions"
    )
    create.add_argument(
        "--replication",
        "--replication-factor",
        "--replicas",
        type=whole_of(1, MOST_REPLICAS),
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
        "--partitions", type=whole_of(1, MOST_32), metavar="N", help="how many there shall be; never fewer than now"
    )
    _add_config(alter)
    alter.add_argument("--unset", action="append", default=[], metavar="KEY", help="back to the default; repeatable")
    delete = add_asking_verb(verbs, "delete", "delete topics with all their records", topic_changes.delete, DELETE)
    delete.set_defaults(deletes=True)
    delete.add_argument("name", nargs="+", metavar="TOPIC")
    delete.add_argument("--force", action="store_true", help="also what the brokers keep for themselves")
    _add_elect(verbs)
    _add_move(verbs)
    return parser


def _add_elect(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    elect = add_asking_verb(verbs, "elect", "preferred leaders lead again", topic_elections.elect, ELECT)
    elect.add_argument("name", nargs="*", metavar="TOPIC", help="all topics unless some are named")
    _add_partition(elect)
    elect.add_argument(
        "--unclean", action="store_true", help="elect one that is not in sync where nobody leads; records can be lost"
    )
    elect.add_argument("--force", action="store_true", help="with --unclean: yes, records can be lost")


def _add_move(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    move = add_asking_verb(verbs, "move", "other brokers hold a topic, or parts of it", topic_moves.move, MOVE)
    move.add_argument("name", metavar="TOPIC")
    _add_partition(move)
    where = move.add_mutually_exclusive_group(required=True)
    where.add_argument("--to", type=brokers_of, metavar="BROKER,…", help="spread over these brokers")
    where.add_argument("--replicas", type=brokers_of, metavar="BROKER,…", help="these, in this order")
    where.add_argument("--cancel", action="store_true", help="take back what is under way")
    move.add_argument(
        "--replication",
        "--replication-factor",
        type=whole_of(1, MOST_REPLICAS),
        metavar="N",
        help="with --to: replicas of each partition; else as many as now",
    )
    move.add_argument("--no-wait", action="store_true", help="return when the move has begun")
    move.add_argument(
        "--timeout",
        type=seconds_of,
        metavar="SECONDS",
        help="wait no longer than that, and say with exit code 1 that the move goes on; else until it is done",
    )
    moves = add_asking_verb(verbs, "moves", "partitions that are moving", topic_moves.moves, MOVES)
    moves.add_argument("name", nargs="*", metavar="TOPIC", help="all topics unless some are named")


def _add_partition(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--partition",
        type=id_of,
        action="append",
        metavar="N",
        help="only this one; repeatable; else all of them",
    )


def _add_config(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--config",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="one of Kafka's topic settings, as retention.ms=60000; repeatable",
    )
