"""A pipeline file that is not one: a paragraph and no stack trace."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from klamm.pipeline.loading import loaded
from klamm.pipeline.problems import PipelineError

GOOD = """
from klamm.pipeline import Pipeline, Source, Table
def rows(orders):
    return orders
{name} = Pipeline(name="shop", sources=[Source("orders")], outputs=[Table("orders", rows)])
"""


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    path, modules = list(sys.path), set(sys.modules)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if name.startswith(("pipeline_file_", "helping")):
            del sys.modules[name]


def complaint(tmp_path: Path, text: str, name: str = "shop.py") -> str:
    file = tmp_path / name
    file.write_text(text)
    with pytest.raises(PipelineError) as refused:
        loaded(file)
    said = str(refused.value)
    assert "\n" not in said and "Traceback" not in said and str(file) in said
    return said


def test_a_file(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(GOOD.format(name="pipeline"))
    found = loaded(tmp_path / "shop.py")
    assert found.pipeline.name == "shop"
    assert [module.__name__ for module in found.modules] == ["pipeline_file_shop"]


def test_what_lies_beside_it_goes_with_it(tmp_path: Path) -> None:
    (tmp_path / "helping.py").write_text("FACTOR = 2\n")
    (tmp_path / "shop.py").write_text("import json, helping\n" + GOOD.format(name="pipeline"))
    assert [module.__name__ for module in loaded(tmp_path / "shop.py").modules] == ["pipeline_file_shop", "helping"]


def test_not_python(tmp_path: Path) -> None:
    said = complaint(tmp_path, "def rows(orders:\n    return orders\n")
    assert "is not Python yet" in said and "line 1" in said and "def rows(orders:" in said


def test_a_module_that_is_not_there(tmp_path: Path) -> None:
    said = complaint(tmp_path, "import json\nimport pandas_of_tomorrow\n")
    assert "line 2" in said and "pandas_of_tomorrow" in said and "Install it" in said


def test_a_name_that_klamm_does_not_have(tmp_path: Path) -> None:
    said = complaint(tmp_path, "from klamm.pipeline import Pipelin\n")
    assert "Pipelin" in said and "Pipeline, Source, Table, Topic" in said


def test_spark_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("pyspark", "pyspark.sql"):
        monkeypatch.setitem(sys.modules, name, None)
    assert "pip install 'klamm[spark,java]'" in complaint(tmp_path, "from pyspark.sql import DataFrame\n")


def test_something_else_goes_wrong(tmp_path: Path) -> None:
    said = complaint(tmp_path, "rows = []\nfirst = rows[0]\n")
    assert "line 2: IndexError: list index out of range" in said


def test_a_file_that_ends_the_program(tmp_path: Path) -> None:
    assert "SystemExit" in complaint(tmp_path, "raise SystemExit(3)\n")


def test_no_pipeline_in_it(tmp_path: Path) -> None:
    assert "has no `pipeline` in it" in complaint(tmp_path, "x = 1\n")
    assert "called `shop` there. Call it `pipeline`" in complaint(tmp_path, GOOD.format(name="shop"))
    assert "`pipeline` is a dict" in complaint(tmp_path, "pipeline = {}\n")


def test_a_mistake_in_the_declaration_names_the_file(tmp_path: Path) -> None:
    said = complaint(tmp_path, GOOD.format(name="pipeline").replace("rows(orders)", "rows(order)"))
    assert "`rows` (shop.py, line 3)" in said and "Did you mean `orders`?" in said


def test_no_such_file(tmp_path: Path) -> None:
    (tmp_path / "invoice.py").write_text("")
    with pytest.raises(PipelineError, match=r"Did you mean `invoice\.py`\?"):
        loaded(tmp_path / "invoices.py")
    with pytest.raises(PipelineError, match="klamm pipeline example"):
        loaded(tmp_path / "nowhere" / "x.py")
    (tmp_path / "shop.txt").write_text("")
    with pytest.raises(PipelineError, match=r"ends with \.py"):
        loaded(tmp_path / "shop.txt")


def test_code_of_the_file_reaches_workers_that_do_not_have_it(tmp_path: Path) -> None:
    """`loaded(…).pipeline.apply(spark, …)` in a test ended in ModuleNotFoundError where a function ships Python."""
    from pyspark import cloudpickle

    (tmp_path / "sent.py").write_text(
        "from klamm.pipeline import Pipeline, Source, Table\n"
        "def taken(orders): return orders\n"
        'pipeline = Pipeline(name="sent", sources=[Source("orders")], outputs=[Table("taken", taken)])\n'
    )
    loaded(tmp_path / "sent.py")
    assert "pipeline_file_sent" in cloudpickle.list_registry_pickle_by_value()  # type: ignore[no-untyped-call]
