"""`klamm pipeline`: a file of functions on data frames, run on Spark against a cluster, or looked at without one."""

import argparse
from collections.abc import Callable, Sequence
from importlib import import_module

from klamm.cli.options import Misused, add_json, add_verb, add_where, parser_of
from klamm.cli.saying import MISUSED, failed

DESCRIPTION = """\
Pipelines as files: a Python module of functions from data frames to data frames, and a short declaration of the topics
they read and the tables and topics they write. Spark runs it: on this machine, or on a cluster of its own.
"""

EXAMPLES = """\
examples:
  klamm pipeline example invoice.py          writes a pipeline to start from
  klamm pipeline check invoice.py            do the functions fit together? nothing is read, no cluster is needed
  klamm pipeline test invoice.py             what do they make of the examples in the file?
  klamm pipeline generate --count 100000     invoices into the topic `invoice`, to have something to read
  klamm pipeline run invoice.py --once       everything there is, then a summary
  klamm pipeline run invoice.py              and everything that comes, until Ctrl-C

klamm pipeline VERB --help says more of each. It takes Spark and Java 17 or later:
`pip install 'klamm[spark,java]'` brings both, in a checkout `pip install '.[spark,java]'`.
"""

RUN = """\
Every record of the topics ends up in the tables exactly once, whatever dies in between: run it again, and it goes on
from where it was. Ctrl-C, or SIGTERM, stops it after the batch that it is at; a second one at once. While Spark starts,
the first one does.

Tables are in DATA/tables, and how far it has read in DATA/checkpoints; DATA is pipeline-data/NAME unless --data says
otherwise. Where there is nothing yet, but the cluster knows that this pipeline has read there before, it does not begin
to write to the topics of its outputs again: --data names the directory to go on with, --reset begins anew.

Topics that it writes to are made if they are missing. What cannot be read, or fails a check, is quarantined:
table SOURCE_quarantine and topic TOPIC.quarantine, with the reason.

With --json every line of standard output is a document: one whenever a query has written a batch, with what that query
has to say, and in the end one of them all, with `ended`: "done", "stopped" or "failed".

examples:
  klamm pipeline run invoice.py --once
  klamm pipeline run invoice.py --bootstrap 10.0.0.7:9092 --data /srv/invoice --metrics-port 9400
  klamm pipeline run invoice.py --master spark://10.0.0.9:7077 --data /mnt/shared/invoice
  klamm pipeline run invoice.py --json | jq .recordsPerSecond
  klamm pipeline run invoice.py --reset --drop-tables      from the beginning, into empty tables

exit code 0: --once has read everything, or a run without it was stopped; 1: it failed; 2: asked for in a way that makes
no sense; 130: --once was stopped before it had read everything, or any run while Spark was starting, or at once
"""

CHECK = """\
The functions are run on streams without rows: columns that are not there, keys that are none, and what Spark cannot do
on a stream come to light. It shows the columns of every output and the query that it belongs to.

examples:
  klamm pipeline check invoice.py
  klamm pipeline check invoice.py --json

exit code 0: it fits; 1: it does not
"""

TEST = """\
The examples of the sources, Source(…, examples=[{"id": "a"}, "not JSON"]), go through the functions, and each output is
shown. Where an output says what it expects, Table(…, expect=[{"id": "a"}]), that is compared: in any order, and only
the columns that are named. From pytest: klamm.pipeline.loaded("invoice.py").pipeline.apply(spark, {"invoice": rows}).

examples:
  klamm pipeline test invoice.py
  klamm pipeline test invoice.py --json

exit code 0: as expected, or nothing was expected; 1: not so
"""

EXAMPLE = """\
The file has everything in it: a schema, checks, tables, a windowed sum, state by customer. Change it to be yours.

examples:
  klamm pipeline example                     to standard output
  klamm pipeline example invoice.py
"""

BROUGHT_BY_SPARK = frozenset({"pyspark", "pyarrow", "pandas", "numpy", "deltalake", "google", "py4j"})
"""Modules of the extra `klamm[spark]`."""


def run(arguments: Sequence[str]) -> int:
    if arguments and arguments[0] == "generate":
        return int(import_module("klamm.cli.pipeline_generate").run(arguments[1:]))
    options = make_parser().parse_args(arguments)
    command = f"pipeline {options.verb}"
    from klamm.local.problems import LocalError
    from klamm.pipeline.causes import paragraph
    from klamm.pipeline.problems import INSTALL, PipelineError

    try:
        return int(options.run(options))
    except Misused as problem:
        return failed(command, problem, MISUSED)
    except (PipelineError, LocalError) as problem:
        return failed(command, problem)
    except ModuleNotFoundError as problem:
        if (problem.name or "").split(".")[0] not in BROUGHT_BY_SPARK:
            raise
        return failed(command, f"this takes Spark ({problem}). To have it: {INSTALL}")
    except Exception as problem:
        # Whatever else Spark may raise: a stack trace is for those who ask for it.
        if getattr(options, "verbose", False):
            raise
        return failed(command, f"{paragraph(problem).rstrip('.')}. --verbose shows where that comes from.")


def make_parser() -> argparse.ArgumentParser:
    parser = parser_of("pipeline", DESCRIPTION, EXAMPLES)
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    _add_run(verbs)
    for name, what, epilog in (
        ("check", "do the functions fit together?", CHECK),
        ("test", "the functions on a few rows", TEST),
    ):
        verb = add_verb(verbs, name, what, _later("klamm.cli.pipeline_looking", name), epilog)
        verb.add_argument("file", metavar="FILE.py")
        _add_spark(verb)
        add_json(verb)
    example = add_verb(
        verbs,
        "example",
        "write a pipeline file to start from",
        _later("klamm.cli.pipeline_example", "example"),
        EXAMPLE,
    )
    example.add_argument("file", nargs="?", metavar="FILE.py", help="where to; else to standard output")
    verbs.add_parser("generate", help="invoices for the example, into a topic", add_help=False)
    return parser


def _add_run(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = add_verb(verbs, "run", "run it", _later("klamm.cli.pipeline_run", "run_pipeline"), RUN)
    parser.add_argument("file", metavar="FILE.py")
    add_where(parser)
    parser.add_argument("--once", action="store_true", help="what there is now, then end; else whatever comes")
    parser.add_argument(
        "--data", metavar="DIR", help="tables and checkpoints (pipeline-data/NAME); shared by all workers"
    )
    _add_spark(parser)
    parser.add_argument("--batch-records", type=int, default=200_000, metavar="N", help="at most in a batch (200000)")
    parser.add_argument(
        "--every", type=float, default=1.0, metavar="SECONDS", help="a batch, if there is something (1)"
    )
    parser.add_argument(
        "--kafka",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a client's setting, as security.protocol=SSL; repeatable",
    )
    parser.add_argument("--no-create-topics", action="store_true", help="complain about missing topics instead")
    parser.add_argument(
        "--reset", action="store_true", help="forget what was read, also elsewhere, and begin again; tables stay"
    )
    parser.add_argument("--drop-tables", action="store_true", help="with --reset: remove the pipeline's tables as well")
    parser.add_argument("--yes", action="store_true", help="with --reset: do not ask")
    parser.add_argument(
        "--metrics-port", metavar="[HOST:]PORT", help="metrics for Prometheus over http; on 127.0.0.1 unless told"
    )
    add_json(parser)


def _add_spark(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--master",
        default="local[*]",
        metavar="URL",
        help="local[*] (as many threads as cores), spark://…, yarn, k8s://…",
    )
    parser.add_argument(
        "--conf", action="append", default=[], metavar="KEY=VALUE", help="a setting of Spark's; repeatable"
    )
    parser.add_argument("--verbose", action="store_true", help="Spark's own log, and whole stack traces")


def _later(module: str, name: str) -> Callable[[argparse.Namespace], int]:
    """The function, imported when it is called: help is for nothing."""

    def call(options: argparse.Namespace) -> int:
        return int(getattr(import_module(module), name)(options))

    return call
