"""`klamm pipeline check` and `test`: a pipeline looked at, without a cluster."""

import argparse
from pathlib import Path
from typing import Any

from klamm.cli.options import pairs_of
from klamm.cli.saying import FAILED, failed, print_json, say, say_result, table
from klamm.pipeline import Pipeline, checking
from klamm.pipeline.loading import loaded
from klamm.pipeline.planning import planned
from klamm.pipeline.problems import listed
from klamm.pipeline.running import SETTINGS
from klamm.pipeline.spark import session
from klamm.pipeline.stopping import StopSignals
from klamm.pipeline.trying import Tried, tried

WIDEST = 48
MOST_ROWS = 20
STARTING = "starting Spark ..."


def check(options: argparse.Namespace) -> int:
    file = loaded(options.file)
    say(STARTING)
    with StopSignals(say), session(file, options.master, _settings(options), _log(options)) as spark:
        plan = planned(spark, file.pipeline)
    if options.json:
        print_json(checking.document(plan))
    else:
        say_result(checking.told(plan))
    return 0


def test(options: argparse.Namespace) -> int:
    file = loaded(options.file)
    say(STARTING)
    with StopSignals(say), session(file, options.master, _settings(options), _log(options)) as spark:
        planned(spark, file.pipeline)
        results = tried(file.pipeline, spark)
    if options.json:
        print_json([_document(result) for result in results])
    else:
        say_result("\n\n".join(_text(result) for result in results))
    wrong = [result for result in results if result.complaint]
    for result in wrong:
        failed("pipeline test", f"{result.label}: {result.complaint}")
    if not wrong:
        say(verdict(file.pipeline))
    return FAILED if wrong else 0


def verdict(pipeline: Pipeline) -> str:
    """Of a test without complaints."""
    silent = [output.label for output in pipeline.outputs if output.expect is None]
    if len(silent) == len(pipeline.outputs):
        return "nothing was expected, so nothing was compared: Table(…, expect=[…]) says what should come out"
    return "as expected" + (f"; nothing was expected of {listed(silent)}" if silent else "")


def _settings(options: argparse.Namespace) -> dict[str, str]:
    return {**SETTINGS, **pairs_of("--conf", options.conf)}


def _log(options: argparse.Namespace) -> Path | None:
    return None if options.verbose else Path("/dev/null")


def _text(result: Tried) -> str:
    head = f"{result.label}: {len(result.rows)} row{'' if len(result.rows) == 1 else 's'}"
    if not result.rows:
        return head
    rows = [[_cell(row[name]) for name in result.columns] for row in result.rows[:MOST_ROWS]]
    more = len(result.rows) - MOST_ROWS
    return "\n".join([head, table(result.columns, rows), *([f"and {more} more"] if more > 0 else [])])


def _cell(value: Any) -> str | None:
    if value is None:
        return None
    text = bytes(value).decode("utf-8", "replace") if isinstance(value, bytes | bytearray) else str(value)
    text = text.replace("\n", " ")
    return text if len(text) <= WIDEST else f"{text[: WIDEST - 1]}…"


def _document(result: Tried) -> dict[str, Any]:
    return {
        "output": result.label,
        "rows": [{name: _value(value) for name, value in row.items()} for row in result.rows],
        "complaint": result.complaint or None,
    }


def _value(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _value(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_value(each) for each in value]
    if value is None or isinstance(value, str | int | float | bool):
        return value
    return bytes(value).decode("utf-8", "replace") if isinstance(value, bytes | bytearray) else str(value)
