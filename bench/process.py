"""What the kernel says about a process: processor time, memory, open descriptors.

Everything is summed over the process and its living descendants, so that a broker which one day works in several
processes is still counted whole. Processor time is user and system time of all threads, ended ones included.
"""

import os
import time
from dataclasses import dataclass
from pathlib import Path

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Memory:
    """Resident memory, its highest value since `forget_peak`, and the proportional share, in MiB."""

    resident_mib: float
    peak_mib: float
    proportional_mib: float


def cpu_seconds(pid: int) -> float:
    """User and system time so far, with that of children already waited for."""
    return sum(_ticks(member) for member in _family(pid)) / TICKS_PER_SECOND


def memory(pid: int) -> Memory:
    members = _family(pid)
    statuses = [_kilobytes(Path(f"/proc/{member}/status")) for member in members]
    rollups = [_kilobytes(Path(f"/proc/{member}/smaps_rollup")) for member in members]
    return Memory(
        resident_mib=sum(status.get("VmRSS", 0) for status in statuses) / 1024,
        peak_mib=sum(status.get("VmHWM", 0) for status in statuses) / 1024,
        proportional_mib=sum(rollup.get("Pss", 0) for rollup in rollups) / 1024,
    )


def forget_peak(pid: int) -> None:
    """Let the kernel's high-water mark of resident memory start again from now."""
    for member in _family(pid):
        Path(f"/proc/{member}/clear_refs").write_text("5")


def open_descriptors(pid: int) -> int:
    return sum(len(os.listdir(f"/proc/{member}/fd")) for member in _family(pid))  # noqa: PTH208 (names only, 10,000 of them)


def memory_maps(pid: int) -> int:
    """Regions of mapped memory: Kafka maps its indexes, and the kernel limits how many there may be."""
    return sum(Path(f"/proc/{member}/maps").read_bytes().count(b"\n") for member in _family(pid))


def busy_share(seconds: float) -> float:
    """How much of all cores the machine spends on something during the next seconds, from 0 to 1."""
    before = _machine_ticks()
    time.sleep(seconds)
    after = _machine_ticks()
    busy, total = after[0] - before[0], after[1] - before[1]
    return busy / total if total else 0.0


def _machine_ticks() -> tuple[int, int]:
    """Ticks of all cores since boot: busy ones, and all. The fourth and fifth are idle and waiting for the disk."""
    fields = [int(field) for field in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    return sum(fields) - fields[3] - fields[4], sum(fields)


def _ticks(pid: int) -> int:
    # The command's name may hold spaces and parentheses, so count the fields from the last parenthesis.
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(int(field) for field in fields[11:15])


def _family(pid: int) -> list[int]:
    found = [pid]
    for member in found:
        for task in Path(f"/proc/{member}/task").iterdir():
            children = task / "children"
            if children.exists():
                found.extend(int(child) for child in children.read_text().split())
    return found


def _kilobytes(path: Path) -> dict[str, int]:
    values = {}
    for line in path.read_text().splitlines():
        name, _, rest = line.partition(":")
        words = rest.split()
        if len(words) == 2 and words[1] == "kB":
            values[name] = int(words[0])
    return values
