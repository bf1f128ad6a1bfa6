"""Wrong lines in the core, drawn and not chosen, and whether the simulator notices.

Forty mutations of one line each are drawn from a seed, among the lines that a few runs execute. Each is put into a copy
of the source, and the simulator runs seeds on it until one breaks a promise. A run is its seed, event by event: so it
is enough to run those seeds in which a mutation would have made a difference. Which these are is found first, once for
all mutations, on a copy that computes both the right and the wrong value in each place and goes on with the right one.

First a few seeds for all, then more for those who survived. A change of the source makes it necessary to look again at
who survived, and at which seeds matter; who was caught stays caught.
"""

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from queue import Queue
from typing import Any

from proof.mutant_places import Place, drawn, places, places_in, replaced
from proof.store import ROOT, Line, Store, table

SOURCE = ROOT / "src"
LOOKED_AT = 8
"""So many of the first seeds tell which lines may be made wrong."""
CHUNK = 20
SHOWN = 110


def add_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("--draw", type=int, default=18, metavar="SEED", help="what the mutations are drawn from (18)")
    command.add_argument("--count", type=int, default=40, help="how many (40)")
    command.add_argument("--first", type=int, default=71_000_000, help="the first seed that is run (71000000)")
    command.add_argument("--seeds", default="40,300", help="so many for all, then so many for survivors (40,300)")
    command.add_argument(
        "--seconds", type=float, default=0.0, help="trouble for so long, and not as drawn (for trials)"
    )
    command.add_argument("--jobs", type=int, default=1, help="so many at a time (1)")
    command.add_argument("--only", default="", metavar="NUMBERS", help="these of the mutations")
    command.add_argument("--table", action="store_true", help="only write the table of what is known")


def run(options: argparse.Namespace) -> int:
    campaign = Campaign(options)
    if not options.table:
        campaign.draw()
        for until in [int(each) for each in options.seeds.split(",")]:
            campaign.find_what_matters(until)
            campaign.try_all(until)
    text = campaign.summary()
    print(text)
    campaign.store.write_summary(text)
    return 0


class Campaign:
    def __init__(self, options: argparse.Namespace) -> None:
        self.store = Store(options.results, "mutants", options.fresh)
        self._options = options
        self._source = _digest()
        self._copies: Queue[Path] = Queue()
        self._directory = tempfile.TemporaryDirectory(prefix="klamm-mutants-")
        for number in range(0 if options.table else options.jobs):
            self._copies.put(_copied(Path(self._directory.name) / str(number)))
        self.mutants = self._known()

    def _known(self) -> dict[int, Place]:
        """Where the mutations stand now: lines may have moved. One that is not found any more is not run."""
        found = {}
        for line in self.store.of("mutant"):
            place = _place_of(line)
            path = SOURCE / "klamm" / place.path
            now = places_in(place.path, path.read_text()) if path.exists() else []
            same = [each for each in now if _name(each) == _name(place)]
            if same:
                found[line["number"]] = min(same, key=lambda each: abs(each.line - place.line))
        return found

    def draw(self) -> None:
        """Once."""
        if self.store.of("mutant"):
            return
        executed: dict[str, list[int]] = {}
        with self._copy() as copy:
            for line in self._runs(copy, "lines", self._seeds(LOOKED_AT)):
                assert line["failure"] is None, f"the source as it is breaks a promise: {line}"
                self.store.append("looked", source=self._source, seed=line["seed"], digest=line["digest"])
                executed |= line.get("lines", {})
        for number, place in enumerate(
            drawn(places(SOURCE / "klamm", executed), self._options.draw, self._options.count)
        ):
            self.store.append("mutant", number=number, drawn_from=self._options.draw, place=asdict(place))
        self.mutants = self._known()

    # Which seeds matter.

    def find_what_matters(self, until: int) -> None:
        known = {line["seed"] for line in self.store.of("reach", source=self._source)}
        seeds = [seed for seed in self._seeds(until) if seed not in known]
        if not seeds:
            return
        texts: dict[str, list[tuple[Place, str]]] = {}
        for number, place in self.mutants.items():
            texts.setdefault(place.path, []).append((place, _asking(number, place)))
        chunks = [seeds[begin : begin + CHUNK] for begin in range(0, len(seeds), CHUNK)]
        with ThreadPoolExecutor(self._options.jobs) as pool:
            list(pool.map(lambda chunk: self._reach(texts, chunk), chunks))

    def _reach(self, texts: dict[str, list[tuple[Place, str]]], seeds: Sequence[int]) -> None:
        untouched = {line["seed"]: line["digest"] for line in self.store.of("looked", source=self._source)}
        with self._copy() as copy:
            for path, changes in texts.items():
                copy.change(path, changes)
            for line in self._runs(copy, "reach", seeds):
                assert "failure" in line and line["failure"] is None, f"the source as it is breaks a promise: {line}"
                same = line["digest"] == untouched.get(line["seed"], line["digest"])
                assert same, f"to ask changes what happens, in seed {line['seed']}"
                self.store.append("reach", source=self._source, seed=line["seed"], mutants=line["reached"])

    # Whether it is noticed.

    def try_all(self, until: int) -> None:
        matters = self._matters(until)
        wanted = [int(each) for each in self._options.only.split(",") if each] or list(self.mutants)
        # The cheapest first.
        numbers = sorted(
            (number for number in wanted if number in self.mutants and not self.store.of("caught", number=number)),
            key=lambda number: len(matters[number]),
        )
        with ThreadPoolExecutor(self._options.jobs) as pool:
            list(pool.map(lambda number: self._try(number, matters[number]), numbers))

    def _try(self, number: int, seeds: Sequence[int]) -> None:
        place = self.mutants[number]
        passed = {
            seed for line in self.store.of("passed", number=number, source=self._source) for seed in line["seeds"]
        }
        left = [seed for seed in seeds if seed not in passed]
        print(f"{number}: {place.described()}: {len(left)} runs", flush=True)
        with self._copy() as copy:
            copy.change(place.path, [(place, place.after)])
            for begin in range(0, len(left), CHUNK):
                chunk = left[begin : begin + CHUNK]
                lines = list(self._runs(copy, "break", chunk))
                last = lines[-1]
                if last["failure"] is not None:
                    nth = [*seeds].index(last["seed"]) + 1
                    failure = last["failure"][: 2 * SHOWN]
                    self.store.append("caught", number=number, seed=last["seed"], runs=nth, failure=failure)
                    print(f"{number}: caught by {last['seed']}: {failure}", flush=True)
                    return
                self.store.append("passed", number=number, source=self._source, seeds=chunk)

    # What came of it.

    def summary(self) -> str:
        matters = self._matters(10**9)
        rows = []
        for line in self.store.of("mutant"):
            number, place = line["number"], _place_of(line)
            rows.append(
                [number, place.path, place.function, *_shown(place), *self._fate(number, matters.get(number, []))]
            )
        caught = sum(bool(self.store.of("caught", number=line["number"])) for line in self.store.of("mutant"))
        text = f"{caught} of {len(rows)} were caught; drawn from {self._options.draw}.\n\n"
        return text + table(("number", "file", "function", "right", "wrong", "seed", "seen as"), rows)

    def _fate(self, number: int, matters: Sequence[int]) -> tuple[str, str]:
        caught = self.store.of("caught", number=number)
        if caught:
            return str(caught[-1]["seed"]), str(caught[-1]["failure"]).split(":")[0]
        if number not in self.mutants:
            return "-", "the line is not there any more"
        passed = {
            seed for line in self.store.of("passed", number=number, source=self._source) for seed in line["seeds"]
        }
        looked_at = len(self.store.of("reach", source=self._source))
        return "-", f"survived: made a difference in {len(matters)} of {looked_at}, {len(passed)} were run"

    def _matters(self, until: int) -> dict[int, list[int]]:
        seeds: dict[int, list[int]] = {number: [] for number in self.mutants}
        lines = self.store.of("reach", source=self._source)
        for line in sorted(lines, key=lambda line: int(line["seed"])):
            if line["seed"] < self._options.first + until:
                for number in line["mutants"]:
                    if number in seeds:
                        seeds[number].append(line["seed"])
        return seeds

    def _seeds(self, until: int) -> range:
        return range(self._options.first, self._options.first + until)

    def _runs(self, copy: "Copy", what: str, seeds: Sequence[int]) -> Iterator[Line]:
        return _runs(copy, 1_000 * self._options.seconds, what, seeds)

    def _copy(self) -> "Copy":
        return Copy(self._copies)


class Copy:
    """A copy of the source, for one at a time. What was changed in it is put right afterwards."""

    def __init__(self, copies: "Queue[Path]") -> None:
        self._copies = copies
        self._right: dict[Path, str] = {}
        self.directory: Path

    def __enter__(self) -> "Copy":
        self.directory = self._copies.get()
        return self

    def __exit__(self, *_: object) -> None:
        for file, text in self._right.items():
            file.write_text(text)
        self._copies.put(self.directory)

    def change(self, path: str, changes: Sequence[tuple[Place, str]]) -> None:
        file = self.directory / "src" / "klamm" / path
        self._right[file] = file.read_text()
        file.write_text(replaced(self._right[file], changes))


def _runs(copy: Copy, duration_ms: float, what: str, seeds: Sequence[int]) -> Iterator[Line]:
    """What each run came to. A process that ends without having run them all has been broken as well."""
    paths = os.pathsep.join((str(copy.directory / "src"), str(ROOT)))
    environment = {**os.environ, "PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "proof.mutant_runs", str(copy.directory), str(duration_ms), what, *map(str, seeds)]
    process = subprocess.Popen(
        command, cwd=copy.directory, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None and process.stderr is not None
    told = 0
    with closing(process.stdout), closing(process.stderr):
        try:
            for text in process.stdout:
                line: dict[str, Any] = json.loads(text)
                told += 1
                yield line
                if what == "break" and line["failure"] is not None:
                    return
            if process.wait() or told < len(seeds):
                last = process.stderr.read().strip().splitlines()[-1:]
                yield {"seed": seeds[min(told, len(seeds) - 1)], "failure": f"I30: the process ended: {''.join(last)}"}
        finally:
            process.kill()
            process.wait()


def _asking(number: int, place: Place) -> str:
    if place.is_statement:
        return f"klamm_probe({number}, None, None); {place.before}"
    otherwise = f"lambda: ({place.after})" if place.is_harmless else "None"
    return f"klamm_probe({number}, {otherwise}, ({place.before}))"


def _copied(directory: Path) -> Path:
    shutil.copytree(SOURCE, directory / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    # By what they hold, not by their times: what is changed and put right within one second is seen.
    compile_all = ["-m", "compileall", "-q", "--invalidation-mode", "checked-hash", str(directory / "src")]
    subprocess.run([sys.executable, *compile_all], check=True)
    return directory


def _digest() -> str:
    known = hashlib.blake2b(digest_size=6)
    for file in sorted((SOURCE / "klamm").rglob("*.py")):
        known.update(str(file.relative_to(SOURCE)).encode() + b"\0" + file.read_bytes())
    return known.hexdigest()


def _place_of(line: Line) -> Place:
    return Place(**line["place"])


def _name(place: Place) -> tuple[str, ...]:
    return (place.path, place.function, place.kind, place.before, place.after)


def _shown(place: Place) -> tuple[str, str]:
    return tuple(f"`{text.replace('|', '¦')}`" for text in (place.before, place.after))  # type: ignore[return-value]
