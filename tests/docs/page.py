"""Runs the blocks of one page, in order, in one directory, in a network of its own: `python -m tests.docs.page`.

Commands run in bash, which stops at the first that fails; what a block says goes to a file, because whoever it leaves
running would hold a pipe open. Blocks with a prompt (`$ klamm …`) are run a command at a time, and what is shown below
each is compared. The result is JSON on standard output, a line a block. Ends with 75 where neither a network of its own
nor the usual ports are to be had.
"""

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tools.docs import apart

from tests.docs import orphans
from tests.docs.blocks import PYTHON, ROOT, Block, blocks_of
from tests.docs.outputs import missing_line, missing_words

NOT_HERE = 75
MARK = "KLAMM_DOCS_PAGE"
"""In the environment of everything that a page starts, so that it can be found and ended."""
END_SECONDS = 30.0
LEFT = "left for longer runs"
PYTEST = "python -m pytest -q -p no:cacheprovider"
PROLOGUE = "set -e -o pipefail; trap 'echo \"this failed: $BASH_COMMAND\" >&2' ERR\n"


def _changed(text: str) -> object:
    """Python after a change that is shown line by line has to be Python."""
    lines = [line[1:] for line in text.splitlines() if not line.startswith("-")]
    return compile("\n".join(lines), "<a change>", "exec")


def _outline(text: str) -> object:
    """YAML as people write it for tools: names with a colon, lists, comments. No tabs."""
    strange = [line for line in text.splitlines() if not re.fullmatch(r" *(#.*|- .*|[\w.'\"/-]+:( .*)?)?", line)]
    if strange:
        raise ValueError(f"line {strange[0]!r}")
    return text


PARSERS: dict[str, Callable[[str], object]] = {
    "json": json.loads,
    "toml": tomllib.loads,
    "diff": _changed,
    "yaml": _outline,
    "yml": _outline,
}
"""Blocks that are data, of which at least the form is looked at."""


class Wrong(Exception):  # noqa: N818
    """A block that does not do what the page says."""


@dataclass(slots=True)
class Reader:
    """Somebody who follows a page: a directory to work in, and what was said last."""

    home: Path
    directory: Path
    said: str = ""
    staying: list[tuple[Block, subprocess.Popen[bytes]]] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)

    def follow(self, block: Block) -> str:
        """Do what the block says: `ran` or `kept`. `Wrong` if it does not go as shown."""
        if "setup" in block.marks:
            code = self._run(f"python -m tests.docs.setups.{block.marks['setup']}", block)
            if code != 0:
                raise Wrong(f"its setup ended with {code}:\n{self.said}")
        if block.marks.get("output") == "above":
            self._compare(block.text, self.said, block)
            return "compared"
        if block.label == "text":
            return self._illustrate(block)
        name = block.file
        if name is not None:
            (self.directory / name).parent.mkdir(parents=True, exist_ok=True)
            (self.directory / name).write_text(block.text + "\n", encoding="utf-8")
            self.files[name] = block.text
            if not block.has_tests:
                return "kept"
            self._check_codes([self._run(f"{PYTEST} {name}", block)], block)
            return "ran"
        if block.label in PYTHON:
            self._python(block)
        elif block.label in PARSERS:
            self._parse(block)
            return "parsed"
        elif not block.is_shell:
            raise Wrong(f"a block of {block.label!r} is a file (its name in a first line `# name`), or has a marker")
        elif "stays" in block.marks:
            self._stay(block)
        elif block.text.startswith("$ "):
            self._prompts(block)
        else:
            code = self._run(block.text, block)
            self._check_codes([code], block)
        if "expect" in block.marks and block.marks["expect"] not in self.said:
            raise Wrong(f"it did not say {block.marks['expect']!r}:\n{self.said}")
        return "ran"

    def leave(self) -> None:
        """Ctrl-C to what stays in the foreground, which has to end well."""
        for block, process in reversed(self.staying):
            process.send_signal(signal.SIGINT)
            try:
                code = process.wait(END_SECONDS)
            except subprocess.TimeoutExpired:
                raise Wrong(f"{block}: Ctrl-C did not end it within {END_SECONDS:.0f} s") from None
            if code != 0:
                raise Wrong(f"{block}: after Ctrl-C it ended with {code}")

    def _python(self, block: Block) -> None:
        source = "\n\n".join([*(self.files[name] for name in _names(block, "after")), block.text])
        name = f"test_block_{block.line}.py" if block.has_tests else f"block_{block.line}.py"
        (self.directory / name).write_text(source + "\n", encoding="utf-8")
        how = PYTEST if block.has_tests else "python"
        self._check_codes([self._run(f"{how} {name}", block)], block)

    def _illustrate(self, block: Block) -> str:
        """Text below a command is an example of what it says: other numbers, the same words."""
        if not self.said:
            return LEFT
        strange = missing_words(block.text, self.said)
        if strange:
            raise Wrong(f"these words were not said: {', '.join(strange)}; it said\n{self.said}")
        return "compared"

    def _parse(self, block: Block) -> None:
        try:
            PARSERS[block.label](block.text)
        except (ValueError, SyntaxError) as problem:
            raise Wrong(f"this is no {block.label}: {problem}") from problem

    def _prompts(self, block: Block) -> None:
        codes, everything = [], ""
        for part in ("\n" + block.text).split("\n$ ")[1:]:
            command, _, shown = part.partition("\n")
            while command.endswith("\\") and shown:
                more, _, shown = shown.partition("\n")
                command = f"{command[:-1]} {more.removeprefix('> ')}"
            codes.append(self._settled(command, shown, block))
            everything += self.said
            self._compare(shown, self.said, block)
        self.said = everything
        self._check_codes(codes, block)

    def _settled(self, command: str, shown: str, block: Block) -> int:
        """The command's exit code; asked again for a while where what is shown comes a moment later."""
        deadline = time.monotonic() + float(block.marks.get("settles", "0"))
        while True:
            code = self._run(command, block)
            is_as_shown = missing_line(shown, self.said, block.marks.get("vary", "")) is None
            if is_as_shown or time.monotonic() > deadline:
                return code

    def _compare(self, shown: str, said: str, block: Block) -> None:
        line = missing_line(shown, said, block.marks.get("vary", ""))
        if line is not None:
            raise Wrong(f"the page shows\n  {line}\nand it said\n{said}")

    def _check_codes(self, codes: list[int], block: Block) -> None:
        wanted = int(block.marks.get("exit", "0"))
        if wanted not in codes or set(codes) - {0, wanted}:
            raise Wrong(f"exit code {', '.join(map(str, codes))}, not {wanted}; it said\n{self.said}")

    def _run(self, script: str, block: Block) -> int:
        process, said = self._started(script)
        try:
            code = process.wait(block.limit_seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            text = said.read_text(errors="replace")
            raise Wrong(f"not done after {block.limit_seconds:.0f} s: {script}\n{text}") from None
        self.said = said.read_text(errors="replace")
        where = self.home / "where"
        if where.exists():
            self.directory = Path(where.read_text().strip())
        if "Traceback (most recent call last)" in self.said and script.startswith("klamm"):
            raise Wrong(f"a stack trace is no answer:\n{self.said}")
        return code

    def _stay(self, block: Block) -> None:
        before, _, command = block.text.strip().rpartition("\n")
        if self._run(before, block) != 0:
            raise Wrong(f"it said\n{self.said}")
        process, said = self._started(f"exec {command}")
        self.staying.append((block, process))
        deadline = time.monotonic() + block.limit_seconds
        while block.marks["stays"] not in (text := said.read_text(errors="replace")):
            if process.poll() is not None or time.monotonic() > deadline:
                raise Wrong(f"it did not say {block.marks['stays']!r} and stay:\n{text}")
            time.sleep(0.05)
        self.said = text

    def _started(self, script: str) -> tuple[subprocess.Popen[bytes], Path]:
        said = self.home / f"said-{time.monotonic_ns()}"
        kept = f'"{self.home}/exports"'
        beginning = f"{PROLOGUE}[ ! -f {kept} ] || . {kept}\n"
        # A terminal remembers where it is and what was exported.
        ending = "" if script.startswith("exec ") else f'\npwd > "{self.home}/where"; export -p > {kept}'
        # Ctrl-C is heard also if whoever runs the tests was told not to hear it.
        heard = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            with said.open("wb") as output:
                process = subprocess.Popen(
                    ["bash", "-c", f"{beginning}{script}{ending}"],
                    cwd=self.directory,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
        finally:
            signal.signal(signal.SIGINT, heard)
        return process, said


def _names(block: Block, key: str) -> list[str]:
    return [name.strip() for name in block.marks.get(key, "").split(",") if name.strip()]


def run_page(page: Path, home: Path, available: set[str]) -> bool:
    """Whether all went well. A line of JSON for each block, until the first that did not."""
    (home / "work").mkdir()
    reader = Reader(home, home / "work")
    for block in blocks_of(page):
        began = time.monotonic()
        problem = ""
        if "skip" in block.marks or not block.needs <= available:
            how = "skipped" if "skip" in block.marks else LEFT
            reader.said = ""
        else:
            try:
                how = reader.follow(block)
            except Wrong as wrong:
                how, problem = "wrong", str(wrong)
        _tell(block.line, how, problem, time.monotonic() - began)
        if problem:
            return False
    try:
        reader.leave()
    except Wrong as wrong:
        _tell(0, "wrong", str(wrong), 0)
        return False
    return True


def _tell(line: int, how: str, problem: str, seconds: float) -> None:
    print(json.dumps({"line": line, "how": how, "problem": problem, "seconds": round(seconds, 2)}), flush=True)


def environment_for(home: Path) -> None:
    """The shell of somebody who has just installed klamm: `klamm` and `python` on the path, nothing configured."""
    tools = home / "bin"
    tools.mkdir()
    (home / "tmp").mkdir()
    stand_ins = [("pip", "installing"), ("make", "making")]
    if shutil.which("curl") is None:
        # `make test` needs nothing but PyPI, and readers have it.
        stand_ins.append(("curl", "fetching"))
    for name, module in stand_ins:
        path = f'PATH="{os.environ["PATH"]}" ' if name == "make" else ""
        (tools / name).write_text(f'#!/bin/sh\n{path}exec "{sys.executable}" -m tests.docs.{module} "$@"\n')
        (tools / name).chmod(0o755)
    strange = ("KLAMM_", "XDG_", "SPARK_", "PYTHONDONT")
    for name in [name for name in os.environ if name.startswith(strange) and name != MARK]:
        del os.environ[name]
    os.environ |= {
        "HOME": str(home),
        "TMPDIR": str(home / "tmp"),
        "PATH": f"{tools}:{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}",
        "PYTHONUNBUFFERED": "1",
        "COLUMNS": "200",
        "NO_COLOR": "1",
        "TERM": "dumb",
    }


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.docs.page", description=__doc__)
    parser.add_argument("page", type=Path)
    parser.add_argument("home", type=Path, help="an empty directory")
    parser.add_argument("--available", default="", help="what there is besides PyPI: spark,java,kafka,root")
    options = parser.parse_args()
    page = options.page.absolute()
    if not apart.enter():
        taken = apart.taken_ports()
        if taken:
            print(f"no network namespaces here, and ports {', '.join(map(str, taken))} are taken", file=sys.stderr)
            return NOT_HERE
    orphans.adopt()
    environment_for(options.home)
    available = set(filter(None, options.available.split(",")))
    return 0 if run_page(page, options.home, available) else 1


if __name__ == "__main__":
    sys.exit(main())
