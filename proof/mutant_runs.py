"""Runs of the simulator on one copy of the source, for `proof mutants`: what they execute, and what breaks.

`python -m proof.mutant_runs COPY MS lines SEED...` tells which lines of the core run; `reach` which places made a
difference, where the copy asks for it (`klamm_probe`); `break` stops at the first seed that breaks a promise. A line of
JSON for each.
"""

import builtins
import gc
import json
import resource
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import klamm
from klamm.sim.many import outcome_of
from klamm.sim.plan import drawn_plan
from klamm.sim.run import Outcome
from proof.mutant_places import PACKAGES

LONGEST_S = 120.0
"""Of the processor's time. The longest runs take a tenth of it."""
MEMORY_BYTES = 3 * 2**30


class TooLong(BaseException):
    """Not to be caught by what is run."""


class Lines:
    """Which lines of the core are executed. A function all of whose lines were seen costs nothing more."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._missing: dict[CodeType, set[int]] = {}
        self.seen: dict[str, set[int]] = {}

    def trace(self, frame: FrameType, event: str, argument: Any) -> Callable[..., Any] | None:
        code = frame.f_code
        missing = self._missing.get(code)
        if missing is None:
            missing = self._missing[code] = self._lines_of(code)
        return self._line if missing else None

    def _lines_of(self, code: CodeType) -> set[int]:
        path = Path(code.co_filename)
        if not path.is_relative_to(self._root) or path.relative_to(self._root).parts[0] not in PACKAGES:
            return set()
        return {line for _, _, line in code.co_lines() if line is not None}

    def _line(self, frame: FrameType, event: str, argument: Any) -> Callable[..., Any]:
        missing = self._missing[frame.f_code]
        if frame.f_lineno in missing:
            missing.discard(frame.f_lineno)
            path = str(Path(frame.f_code.co_filename).relative_to(self._root))
            self.seen.setdefault(path, set()).add(frame.f_lineno)
        return self._line


class Probe:
    """Which places were reached, and would have come to something else."""

    def __init__(self) -> None:
        self.reached: set[int] = set()

    def __call__(self, number: int, otherwise: Callable[[], Any] | None, value: Any) -> Any:
        if number not in self.reached:
            if otherwise is None:
                self.reached.add(number)
            else:
                try:
                    other = otherwise()
                    is_same = type(other) is type(value) and bool(other == value)
                except Exception:
                    is_same = False
                if not is_same:
                    self.reached.add(number)
        return value


def main() -> None:
    copy, duration_ms, what, seeds = Path(sys.argv[1]), float(sys.argv[2]), sys.argv[3], list(map(int, sys.argv[4:]))
    root = Path(klamm.__file__).parent
    assert root.is_relative_to(copy), f"this is not the copy: {root}"
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    signal.signal(signal.SIGPROF, _too_long)
    probe, lines = Probe(), Lines(root)
    builtins.klamm_probe = probe  # type: ignore[attr-defined]
    gc.disable()
    for number, seed in enumerate(seeds):
        probe.reached.clear()
        if what == "lines":
            sys.settrace(lines.trace)
        failure, digest = _run(seed, duration_ms)
        sys.settrace(None)
        line: dict[str, Any] = {"seed": seed, "failure": failure, "digest": digest}
        if what == "reach":
            line["reached"] = sorted(probe.reached)
        if what == "lines" and number + 1 == len(seeds):
            line["lines"] = {path: sorted(numbers) for path, numbers in sorted(lines.seen.items())}
        print(json.dumps(line), flush=True)
        if failure is not None and what == "break":
            return
        if number % 10 == 9:
            gc.collect()


def _run(seed: int, duration_ms: float) -> tuple[str | None, str]:
    plan = drawn_plan(seed)
    signal.setitimer(signal.ITIMER_PROF, LONGEST_S)
    try:
        outcome: Outcome = outcome_of(plan.lasting(duration_ms) if duration_ms else plan)
    except TooLong:
        return f"I30: {LONGEST_S:.0f} s, and no end", ""
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
    return (None if outcome.failure is None else str(outcome.failure)), outcome.digest


def _too_long(number: int, frame: FrameType | None) -> None:
    raise TooLong


if __name__ == "__main__":
    main()
