"""`klamm storage`: the data directory of a node that does not run, checked and repaired on purpose.

A node that cannot start without losing something says so and leaves everything as it is. What is to be done is for a
person to decide; this command says what it would be, and does it.
"""

import argparse
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from random import SystemRandom
from typing import TYPE_CHECKING, Any

from klamm.cli.options import add_json, add_verb, directory_of, id_of, parser_of
from klamm.cli.saying import FAILED, MISUSED, failed, print_json, say, say_result

if TYPE_CHECKING:
    from klamm.node.inspection import Finding, Inspection, Repair

DESCRIPTION = """\
Look at the data directory of a node that does not run, and mend what is damaged. A node that finds damage it cannot
mend without losing records does not start, or takes one partition offline, changes nothing, and names this command.
"""

EXAMPLES = """\
examples:
  klamm storage check data
  klamm storage repair data --dry-run       what would be done, and how many records it is about
  klamm storage repair data

exit code 0: nothing is damaged, or all of it is repaired; 1: something is; 2: asked for in a way that makes no sense
"""

CHECK = """\
Every batch of every log is read. Nothing is changed.

examples:
  klamm storage check klamm-data/node-0
  klamm storage check data --json | jq '.findings[] | select(.harmful)'
"""

REPAIR = """\
It says what it is going to do and does it, unless --dry-run is given. Nothing is removed: what is replaced is kept in
files that end in .cut and directories that end in -stray.

  metadata log       in a cluster it is set aside, and fetched again from the others; of a node alone, damaged
                     batches are left out, and with them what only they said
  partition.metadata written again as the metadata log has it
  records            of a partition that others have: its directory is set aside, and fetched again; of one that only
                     this node has: damaged batches are left out, all others keep their offsets
  quorum-state       in a cluster the node comes back as after a new disk; alone it is written again
  meta.properties    written again, with --id and --cluster-id

examples:
  klamm storage repair data --dry-run
  klamm storage repair data --id 1 --cluster-id 4L6g3nShT-eMCtK--X86sw
  klamm storage repair data --metadata fetch     others have the metadata, though the damage hides it
"""


def run(arguments: Sequence[str]) -> int:
    options = make_parser().parse_args(arguments)
    from klamm.log.files import DiskFailed
    from klamm.runtime.problems import CannotStart

    try:
        return int(options.run(options))
    except CannotStart as problem:
        # By its words somebody else has the directory.
        return failed(f"storage {options.verb}", problem)
    except (DiskFailed, OSError) as problem:
        return failed(f"storage {options.verb}", problem)


def make_parser() -> argparse.ArgumentParser:
    parser = parser_of("storage", DESCRIPTION, EXAMPLES)
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    for name, what, run_verb, epilog in (
        ("check", "read everything and say what is damaged", _check, CHECK),
        ("repair", "say what can be done about it, and do it", _repair, REPAIR),
    ):
        verb = add_verb(verbs, name, what, run_verb, epilog)
        verb.add_argument("dir", type=directory_of, metavar="DIR", help="the node's data directory (log.dirs, --dir)")
        add_json(verb)
        verb.add_argument("--id", type=id_of, metavar="N", help="the node's id, where meta.properties is lost")
        verb.add_argument("--cluster-id", metavar="ID", help="the cluster's id, where meta.properties is lost")
        verb.add_argument(
            "--metadata",
            choices=("fetch", "mend"),
            help="whether other nodes have the metadata, where the log cannot tell",
        )
        if name == "repair":
            verb.add_argument("--dry-run", action="store_true", help="say what would be done, and do nothing")
    return parser


def _check(options: argparse.Namespace) -> int:
    return _with(options, is_repair=False)


def _repair(options: argparse.Namespace) -> int:
    return _with(options, is_repair=True)


def _with(options: argparse.Namespace, *, is_repair: bool) -> int:
    from klamm.node.repairs import Wish, inspect
    from klamm.runtime.files import RealFiles
    from klamm.runtime.taking import TakenDirectory

    directory = Path(options.dir)
    if not directory.is_dir():
        return failed(f"storage {options.verb}", f"there is no directory {directory}", MISUSED)
    taken = TakenDirectory(directory)
    try:
        files = RealFiles(directory)
        is_alone = None if options.metadata is None else options.metadata == "mend"
        seen = inspect(files, SystemRandom(), Wish(options.id, options.cluster_id, is_alone))
        repairs = _repairs(seen.findings) if is_repair else []
        does = is_repair and not options.dry_run
        if not options.json:
            _print(directory, seen, repairs, is_repair=is_repair, does=does)
        if does:
            for repair in repairs:
                repair.do()
        if options.json:
            # Not before: it says that it is done.
            _print_document(seen, repairs, done=does)
        files.close()
    finally:
        with suppress(OSError):
            taken.give_back()
    left = [each for each in seen.findings if each.is_harmful and (each.repair is None or not does)]
    return FAILED if left else 0


def _repairs(findings: "Sequence[Finding]") -> "list[Repair]":
    """Each once: several findings may have the same."""
    found = {each.repair.what: each.repair for each in findings if each.is_harmful and each.repair is not None}
    # One that sets a directory aside has no name to write into afterwards.
    return sorted(found.values(), key=lambda repair: repair.what.startswith("set "))


def _print(directory: Path, seen: "Inspection", repairs: "list[Repair]", *, is_repair: bool, does: bool) -> None:
    for finding in seen.findings:
        mark = "DAMAGED" if finding.is_harmful else "note"
        where = "" if finding.offsets is None else f" (offsets {finding.offsets[0]} to {finding.offsets[1] - 1})"
        say_result(f"{mark:<8} {finding.path}{where}: {finding.what}")
        if finding.advice and (not finding.is_harmful or finding.repair is None):
            say_result(f"{'':<8}   {finding.advice}")
    harmful = [finding for finding in seen.findings if finding.is_harmful]
    if not harmful:
        say_result(f"{directory}: {seen.batches} batches read, nothing is damaged")
        return
    for repair in repairs:
        say_result(f"{'doing' if does else 'would':<8} {repair.what}")
    if is_repair and not does and repairs:
        say("nothing was changed: without --dry-run it is done")
    elif not is_repair and any(finding.repair for finding in harmful):
        say(f"`klamm storage repair {directory} --dry-run` says what can be done")


def _print_document(seen: "Inspection", repairs: "list[Repair]", *, done: bool) -> None:
    def entry(finding: "Finding") -> dict[str, Any]:
        return {
            "path": finding.path,
            "what": finding.what,
            "harmful": finding.is_harmful,
            "offsets": None if finding.offsets is None else {"first": finding.offsets[0], "end": finding.offsets[1]},
            "repair": None if finding.repair is None else finding.repair.what,
            "advice": finding.advice or None,
        }

    print_json(
        {
            "node": seen.node_id,
            "cluster": seen.identity.get("cluster.id"),
            "topics": len(seen.image.topics),
            "batches": seen.batches,
            "findings": [entry(finding) for finding in seen.findings],
            "repairs": [repair.what for repair in repairs],
            "repaired": done,
        }
    )
