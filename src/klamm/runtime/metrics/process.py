"""The process: processor time, memory and descriptors under Prometheus' own names, and what its log told of."""

import os
import resource
from collections.abc import Iterator
from functools import cache, lru_cache
from pathlib import Path
from time import monotonic

from klamm.runtime.metrics.family import COUNTER, GAUGE, Sample, Seen, family, labelled, one

PROC = Path("/proc/self")

LISTED_FOR_S = 60
"""So long a count holds that was got by listing."""


@one("process_cpu_seconds_total", COUNTER, "Processor time of this process, its own and the system's for it.")
def cpu(seen: Seen) -> float:
    times = os.times()
    return times.user + times.system


@one("process_start_time_seconds", GAUGE, "When it started, in seconds since 1970.")
def started(seen: Seen) -> float:
    return _started()


@one("process_resident_memory_bytes", GAUGE, "Memory that it has in use.")
def resident(seen: Seen) -> float:
    return int(_stat()[21]) * resource.getpagesize()


@one("process_virtual_memory_bytes", GAUGE, "Address space that it has.")
def virtual(seen: Seen) -> float:
    return int(_stat()[20])


@one("process_open_fds", GAUGE, "Descriptors that are open: connections and files.")
def descriptors(seen: Seen) -> float:
    return entry_count(PROC / "fd")


@one("process_max_fds", GAUGE, "Descriptors that it may have open.")
def most_descriptors(seen: Seen) -> float:
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


@family("klamm_facts_total", COUNTER, "What was told to the log, by kind and by how serious it is.", "fact", "level")
def facts(seen: Seen) -> Iterator[Sample]:
    for kind, count in sorted(seen.facts.by_kind.items(), key=lambda each: each[0].__name__):
        yield labelled({"fact": kind.__name__, "level": kind.level}, count)


def entry_count(directory: Path) -> int:
    """Of a directory of /proc. Linux knows the number of descriptors since 6.2; before, they have to be listed, and
    twenty thousand take a fifth of a second."""
    return directory.stat().st_size or _listed_count(directory, int(monotonic() / LISTED_FOR_S))


@lru_cache(maxsize=1)
def _listed_count(directory: Path, period: int) -> int:
    return sum(1 for _ in directory.iterdir())


def _stat() -> list[str]:
    """The fields after the process's name, which may have blanks in it: from the third of `proc(5)` on."""
    return (PROC / "stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()


@cache
def _started() -> float:
    booted = next(
        int(line.split()[1]) for line in Path("/proc/stat").read_text("ascii").splitlines() if line.startswith("btime")
    )
    return booted + int(_stat()[19]) / os.sysconf("SC_CLK_TCK")
