"""The root of a failure, from what Spark makes of it."""

from pathlib import Path

from klamm.pipeline.causes import paragraph
from klamm.pipeline.problems import PipelineError


class StreamingQueryException(Exception):  # noqa: N818
    """Named as Spark's."""


class AnalysisException(Exception):  # noqa: N818
    """Named as Spark's."""


WORKER = """[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: Job aborted due to stage failure: \
Task 0 in stage 3.0 failed 1 times: org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "/usr/lib/python3/site-packages/pyspark/worker.py", line 1234, in main
    process()
  File "{file}", line 17, in doubled
    return value / 0
           ~~~~~~^~~
ZeroDivisionError: division by zero

\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handlePythonException(PythonRunner.scala:5)
\tat java.base/java.lang.Thread.run(Thread.java:840)
Caused by: org.apache.spark.SparkException: Job aborted
\t... 34 more
"""


def test_a_python_worker_s(tmp_path: Path) -> None:
    file = tmp_path / "shop.py"
    said = paragraph(StreamingQueryException(WORKER.format(file=file)), file)
    assert said == "ZeroDivisionError: division by zero (shop.py, line 17, in doubled)"


def test_an_error_without_words_and_one_with_many() -> None:
    text = 'x\nTraceback (most recent call last):\n  File "a.py", line 1, in f\n    assert x\nAssertionError\n\n\tat x'
    assert paragraph(StreamingQueryException(text)) == "AssertionError"
    text = (
        'Traceback (most recent call last):\n  File "a", line 1, in f\npkg.deep.Wrong: first\nsecond\n\nJVM stacktrace:'
    )
    assert paragraph(StreamingQueryException(text)) == "Wrong: first second"


def test_the_last_of_several_tracebacks() -> None:
    text = (
        "Traceback (most recent call last):\n  File \"a\", line 1, in f\nKeyError: 'a'\n\n"
        "During handling of the above exception, another exception occurred:\n\n"
        'Traceback (most recent call last):\n  File "a", line 2, in f\nValueError: no such store\n'
    )
    assert paragraph(StreamingQueryException(text)) == "ValueError: no such store"


def test_java_s() -> None:
    text = (
        "Job aborted\n\tat x\nCaused by: java.io.IOException: outer\n\tat y\nCaused by: a.b.NoSpace: disk full\n\tat z"
    )
    assert paragraph(StreamingQueryException(text)) == "NoSpace: disk full"


def test_a_column_that_is_not_there_without_spark_s_plan() -> None:
    text = (
        "[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column `totl` cannot be resolved. Did you mean one of the following? "
        "[`total`]. SQLSTATE: 42703;\n'Project ['totl]\n+- LocalRelation <empty>, [total#1]\n"
    )
    said = paragraph(AnalysisException(text))
    assert "Did you mean one of the following? [`total`]" in said
    assert "Project" not in said and "SQLSTATE" not in said and not said.endswith(";")


def test_a_place_in_an_expression_is_not_taken_for_a_line_of_the_file() -> None:
    """`where("totl > 1")` is line 1 of itself."""
    text = "[UNRESOLVED_COLUMN] `totl` cannot be resolved. SQLSTATE: 42703; line 1 pos 0;\n'Filter ('totl > 1)\n+- X\n"
    assert paragraph(AnalysisException(text)) == "[UNRESOLVED_COLUMN] `totl` cannot be resolved."


def test_a_type_that_does_not_exist_without_the_arrow_below_it() -> None:
    text = "\n[PARSE_SYNTAX_ERROR] Syntax error at 'strin'. SQLSTATE: 42601\n\n== SQL ==\nid strin\n---^^^\n"
    assert paragraph(AnalysisException(text)) == "[PARSE_SYNTAX_ERROR] Syntax error at 'strin'."


def test_raised_on_this_side(tmp_path: Path) -> None:
    file = tmp_path / "shop.py"
    code = compile("def f(x):\n    return x['a']\n", str(file), "exec")
    scope: dict[str, object] = {}
    exec(code, scope)
    try:
        scope["f"]({})  # type: ignore[operator]
    except KeyError as problem:
        assert paragraph(problem, file) == "KeyError: 'a' (shop.py, line 2, in f)"


def test_a_sentence_of_ours_from_a_worker() -> None:
    text = (
        'Traceback (most recent call last):\n  File "a", line 1, in f\nklamm.pipeline.x.Lost: Records are gone.\n\n\tat'
    )
    assert paragraph(StreamingQueryException(text)) == "Records are gone."


def test_ours_is_said_as_it_is_and_none_is_endless() -> None:
    assert paragraph(PipelineError("do this.")) == "do this."
    assert len(paragraph(ValueError("x" * 5000))) <= 600
