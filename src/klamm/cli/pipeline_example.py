"""`klamm pipeline example`: a file to start from. It takes no Spark: one may want to read it first."""

import argparse
from importlib import resources
from pathlib import Path

from klamm.cli.saying import failed, say, say_result


def example(options: argparse.Namespace) -> int:
    text = resources.files("klamm.pipeline.invoice").joinpath("example.py").read_text(encoding="utf-8")
    if options.file is None:
        say_result(text, end="")
        return 0
    path = Path(options.file)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        return failed("pipeline example", f"{path} is there already; name another file, or remove it")
    except OSError as problem:
        return failed("pipeline example", f"{path} cannot be written: {problem.strerror}")
    say(f"wrote {path}; `klamm pipeline check {path}` looks at it, `klamm pipeline run {path} --once` runs it")
    return 0
