"""A pipeline file, loaded: its module, and the pipeline in it. A mistake in the file is told in a paragraph.

The module goes to Spark's workers by value, together with the modules beside it that it imports: they need not have
the file, and it may lie anywhere.
"""

import importlib.util
import linecache
import sys
import traceback
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from klamm.pipeline.declaration import Pipeline
from klamm.pipeline.problems import INSTALL, BadPipeline, PipelineError, listed, meant

VARIABLE = "pipeline"
MOST_NAMED = 5


@dataclass(frozen=True, slots=True)
class Loaded:
    path: Path
    pipeline: Pipeline
    modules: tuple[ModuleType, ...]
    """The file's own, and those from beside it."""

    def send_by_value(self) -> None:
        from pyspark import cloudpickle

        for module in self.modules:
            cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]


def loaded(path: str | Path) -> Loaded:
    path = Path(path)
    module, others = _executed(path)
    found = getattr(module, VARIABLE, None)
    if isinstance(found, Pipeline):
        file = Loaded(path, found, (module, *others))
        if "pyspark" in sys.modules:
            # Here and now, for tests that never see `spark.py`.
            file.send_by_value()
        return file
    elsewhere = [name for name, value in vars(module).items() if isinstance(value, Pipeline)]
    if elsewhere:
        raise BadPipeline(f"{path}: the pipeline is called `{elsewhere[0]}` there. Call it `{VARIABLE}`.")
    if found is not None:
        raise BadPipeline(
            f"{path}: `{VARIABLE}` is a {type(found).__name__} there. Make it a Pipeline: "
            f'{VARIABLE} = Pipeline(name="{path.stem}", sources=[…], outputs=[…]).'
        )
    names = [name for name in vars(module) if not name.startswith("_")]
    near = meant(VARIABLE, names) if names and "mean" in meant(VARIABLE, names) else ""
    raise BadPipeline(
        f"{path} has no `{VARIABLE}` in it.{near} Its last statement is usually "
        f"{VARIABLE} = Pipeline(name=…, sources=[…], outputs=[…]); `klamm pipeline example` writes a file that has one."
    )


def _executed(path: Path) -> tuple[ModuleType, list[ModuleType]]:
    if path.is_dir():
        raise PipelineError(f"{path} is a directory, and a pipeline is a file.{_files_of(path)}")
    if not path.is_file():
        near = [each.name for each in path.parent.glob("*.py")] if path.parent.is_dir() else []
        hint = meant(path.name, near) if near else " `klamm pipeline example` writes one to start from."
        raise PipelineError(f"there is no file {path}.{hint}")
    if path.suffix != ".py":
        raise PipelineError(f"{path} is no Python file: a pipeline is a module, its name ends with .py.")
    beside = path.resolve().parent
    # As with a script: what lies beside it can be imported.
    if str(beside) not in sys.path:
        sys.path.insert(0, str(beside))
    before = set(sys.modules)
    name = f"pipeline_file_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path.resolve())
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    linecache.checkcache()
    try:
        spec.loader.exec_module(module)
    except BadPipeline as problem:
        raise BadPipeline(f"{path}: {problem}") from problem
    except SyntaxError as problem:
        where = Path(problem.filename or path).name
        line = f" There it says: {problem.text.strip()}" if problem.text and problem.text.strip() else ""
        raise BadPipeline(
            f"{path} is not Python yet: {problem.msg} ({where}, line {problem.lineno}).{line}"
        ) from problem
    except ImportError as problem:
        raise BadPipeline(f"{path}{_at(problem, path)}: {problem}.{_advice(problem)}") from problem
    except (Exception, SystemExit) as problem:
        raise BadPipeline(
            f"{path}{_at(problem, path)}: {type(problem).__name__}: {problem}. The file was being "
            "loaded; nothing ran yet."
        ) from problem
    return module, _beside(beside, set(sys.modules) - before - {name})


def _files_of(directory: Path) -> str:
    names = sorted(str(each) for each in directory.glob("*.py"))
    return f" In it {'is' if len(names) == 1 else 'are'} {listed(names)}." if 0 < len(names) <= MOST_NAMED else ""


def _beside(directory: Path, names: set[str]) -> list[ModuleType]:
    found = []
    for name in sorted(names):
        file = getattr(sys.modules.get(name), "__file__", None)
        if file and Path(file).resolve().is_relative_to(directory) and "site-packages" not in Path(file).parts:
            found.append(sys.modules[name])
    return found


def _at(problem: BaseException, path: Path) -> str:
    lines = [
        each.lineno for each in traceback.extract_tb(problem.__traceback__) if each.filename == str(path.resolve())
    ]
    return f", line {lines[-1]}" if lines else ""


def _advice(problem: ImportError) -> str:
    missing = (problem.name or "").partition(".")[0]
    if missing in ("pyspark", "pyarrow", "deltalake", "pandas") and isinstance(problem, ModuleNotFoundError):
        return f" Pipelines need Spark: {INSTALL}."
    if missing == "klamm" and problem.name is not None and hasattr(sys.modules.get(problem.name), "__all__"):
        return f" `{problem.name}` has {', '.join(sys.modules[problem.name].__all__)}."
    return " Install it where `klamm` is installed, or put the module beside the file."
