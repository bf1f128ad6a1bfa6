"""`klamm group`: consumer groups listed, described with their lag, deleted, and sent to other offsets."""

import argparse
from collections.abc import Sequence

from klamm.cli import group_changes, group_resets, group_views
from klamm.cli.carried_out import carried_out
from klamm.cli.group_asking import Refused
from klamm.cli.group_seen import CLASSIC, CONSUMER
from klamm.cli.options import MOST_64, add_asking_verb, count_of, parser_of, whole_of

DESCRIPTION = """\
Consumer groups of a cluster: of the one that --bootstrap names, or the one `klamm up` keeps in --dir.
"""

EXAMPLES = """\
examples:
  klamm group list
  klamm group list --state stable --type consumer
  klamm group describe billing                     how far it has read, how far behind it is, who reads what
  klamm group describe billing --members
  klamm group describe --all --json
  klamm group reset-offsets billing --topic invoice --to-earliest            shows what would change
  klamm group reset-offsets billing --topic invoice --to-earliest --execute  and does it
  klamm group delete-offsets billing --topic invoice:3
  klamm group delete billing

exit code 0: done; 1: the cluster refused it or did not answer; 2: asked for in a way that makes no sense
"""

RESET_EXAMPLES = """\
Nothing changes without --execute. The group has to be empty: stop its members first.
An offset that its log does not reach is brought to the nearer end of the log, with a warning.

examples:
  klamm group reset-offsets billing --all-topics --to-latest                     skip everything
  klamm group reset-offsets billing --topic invoice:0,3 --shift-by -100          the last hundred of these again
  klamm group reset-offsets billing --topic invoice --to-datetime 2026-11-16T06:00   UTC if no zone is given
  klamm group reset-offsets billing --topic invoice --by-duration P1DT2H         a day and two hours back
  klamm group reset-offsets billing --all-topics --to-current --export > billing.csv   keep them …
  klamm group reset-offsets billing --from-file billing.csv --execute                  … and bring them back
"""

LIST_EXAMPLES = """\
examples:
  klamm group list
  klamm group list --state stable --state empty --type consumer
"""

DELETE_EXAMPLES = """\
A group with members is left alone.

examples:
  klamm group delete billing shipping
"""

DELETE_OFFSETS_EXAMPLES = """\
Offsets of topics that a member reads are left alone.

examples:
  klamm group delete-offsets billing --topic invoice
  klamm group delete-offsets billing --topic invoice:0,3
"""

DESCRIBE_EXAMPLES = """\
Lag is the end of the log less the committed offset: what is written and not read yet, as far as was committed.
A `-` is what nobody knows: nothing committed, no leader, no member that owns it. The total leaves such partitions out,
and says how many they are and how many records they hold.

examples:
  klamm group describe billing
  klamm group describe billing shipping --members
  klamm group describe --all --json
"""


def run(arguments: Sequence[str]) -> int:
    options = make_parser().parse_args(arguments)
    return carried_out(f"group {options.verb}", options, lambda: int(options.run(options)), Refused)


def make_parser() -> argparse.ArgumentParser:
    parser = parser_of("group", DESCRIPTION, EXAMPLES)
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    _add_list(verbs)
    _add_describe(verbs)
    delete = add_asking_verb(
        verbs, "delete", "forget groups with all their offsets", group_changes.delete, DELETE_EXAMPLES
    )
    delete.set_defaults(deletes=True)
    delete.add_argument("group", nargs="+", metavar="GROUP")
    _add_reset_offsets(verbs)
    delete_offsets = add_asking_verb(
        verbs,
        "delete-offsets",
        "forget offsets of some topics",
        group_changes.delete_offsets,
        DELETE_OFFSETS_EXAMPLES,
    )
    delete_offsets.set_defaults(deletes=True)
    delete_offsets.add_argument("group", metavar="GROUP")
    _add_topic(delete_offsets)
    return parser


def _add_list(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = add_asking_verb(verbs, "list", "all groups, with their state", group_views.list_all, LIST_EXAMPLES)
    parser.add_argument(
        "--state", action="append", default=[], metavar="STATE", help="only these, as stable or empty; repeatable"
    )
    parser.add_argument("--type", choices=(CLASSIC, CONSUMER), help="only groups of this protocol")


def _add_describe(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = add_asking_verb(
        verbs, "describe", "offsets, lag and who reads what", group_views.describe, DESCRIBE_EXAMPLES
    )
    parser.add_argument("group", nargs="*", metavar="GROUP")
    parser.add_argument("--all", action="store_true", help="every group")
    parser.add_argument("--members", action="store_true", help="also a table of members and what they own")


def _add_reset_offsets(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = add_asking_verb(
        verbs, "reset-offsets", "send a group to other offsets", group_resets.reset_offsets, RESET_EXAMPLES
    )
    parser.add_argument("group", metavar="GROUP")
    scope = parser.add_mutually_exclusive_group()
    _add_topic(scope)
    scope.add_argument("--all-topics", action="store_true", help="every partition the group has committed")
    target = parser.add_argument_group("where to, one of these").add_mutually_exclusive_group(required=True)
    target.add_argument("--to-earliest", action="store_true", help="the beginning of each log")
    target.add_argument("--to-latest", action="store_true", help="the end of each log")
    target.add_argument("--to-current", action="store_true", help="where it is; the end where nothing is committed")
    target.add_argument("--to-offset", type=count_of, metavar="N", help="this offset")
    target.add_argument(
        "--shift-by", type=whole_of(-MOST_64, MOST_64), metavar="N", help="so many on, or back if negative"
    )
    target.add_argument("--to-datetime", metavar="TIME", help="the first record at this time or later, ISO 8601")
    target.add_argument("--by-duration", metavar="DURATION", help="so long before now, ISO 8601 as P1DT2H")
    target.add_argument("--from-file", metavar="CSV", help="lines of topic,partition,offset")
    parser.add_argument("--execute", action="store_true", help="do it; else it is only shown")
    parser.add_argument("--export", action="store_true", help="print lines for --from-file instead of a table")


def _add_topic(parser: "argparse._ActionsContainer") -> None:
    parser.add_argument(
        "--topic",
        action="append",
        default=[],
        metavar="TOPIC[:PARTITION,…]",
        help="these partitions, or all of the topic; repeatable",
    )
