"""How long producers wait while gigabytes are removed beside them: three brokers, replication 3, acks=all.

One topic is written at a fixed rate, in turns: in peace; while another topic, filled before, is deleted; in peace once
more; while retention takes a segment of a gigabyte off another topic every few seconds. What it comes to is the ratio
of neighbours: the 99th percentile under removal over that in peace, and the longest waits likewise.
"""

import os
import platform
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from statistics import median
from threading import Thread
from typing import Any

import confluent_kafka
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)
from rich.console import Console
from rich.table import Table

from bench import process, replicated, store
from bench.clusters import Cluster, prepared
from bench.systems import Kafka, Klamm, NotAvailableError
from bench.worker import python_module, watched

PARTITIONS = 6
RECORD_BYTES = 1024
BATCH_BYTES = 1 << 20
GIB = 1 << 30
WARMUP_SECONDS = 3
QUIET_SECONDS = 2
PEACE, DELETION, RETENTION = "peace", "deletion", "retention"
TURNS = (PEACE, DELETION, PEACE, RETENTION)
MOST_P99, MOST_LONGEST = 1.5, 3.0


@dataclass(frozen=True, slots=True)
class Wish:
    """What was asked for on the command line."""

    system: str
    rounds: int
    gigabytes: int
    seconds: float
    rate: int
    every_seconds: float
    settings: tuple[str, ...]
    resume: bool
    scratch: Path
    results: Path

    @property
    def path(self) -> Path:
        return self.results / "removals.jsonl"

    def header(self) -> dict[str, Any]:
        return {
            "kind": "run", "system": self.system, "gigabytes": self.gigabytes, "seconds": self.seconds,
            "rate": self.rate, "every_seconds": self.every_seconds, "settings": list(self.settings),
            "machine": {
                "cpus": os.cpu_count(),
                "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / GIB, 1),
                "python": platform.python_version(),
                "librdkafka": confluent_kafka.libversion()[0],
            },
        }  # fmt: skip


Tell = Callable[[str], None]
Line = dict[str, Any]


def run(wish: Wish, tell: Tell) -> list[Line]:
    """Measure the rounds that are missing, and return the turns of all."""
    wish.scratch.mkdir(parents=True, exist_ok=True)
    needed, free = 4 * wish.gigabytes * GIB, shutil.disk_usage(wish.scratch).free
    if free < needed:
        raise NotAvailableError(
            f"{needed / GIB:.0f} GiB of disk are needed, {free / GIB:.0f} are free: --gigabytes asks for less"
        )
    lines = _measured_before(wish) if wish.resume else []
    if not lines:
        store.append(wish.path, wish.header())
    done = {line["round"] for line in lines}
    for number in range(1, wish.rounds + 1):
        if number not in done:
            lines += _one_round(number, wish, tell)
    return lines


def _measured_before(wish: Wish) -> list[Line]:
    """The complete rounds of the last run, if that was asked for in the same way."""
    lines = store.lines(wish.path)
    begins = [number for number, line in enumerate(lines) if line["kind"] == "run"]
    if not begins or lines[begins[-1]] != wish.header():
        return []
    turns = lines[begins[-1] + 1 :]
    whole = {line["round"] for line in turns if line["turn"] == len(TURNS) - 1}
    return [line for line in turns if line["round"] in whole]


def _one_round(number: int, wish: Wish, tell: Tell) -> list[Line]:
    settings = ("log.retention.check.interval.ms=500", *wish.settings)
    system = Klamm(settings=settings) if wish.system == "klamm" else Kafka(settings=settings)
    lines = []
    with prepared(system, wish.scratch / "removals") as cluster:
        replicated.started(cluster)
        admin = replicated.admin_of(cluster)
        replicated.create(cluster, "load", PARTITIONS)
        replicated.wait_in_sync(admin, "load", PARTITIONS)
        for turn, kind in enumerate(TURNS):
            lines.append(_one_turn(number, turn, kind, cluster, admin, wish))
            tell(_described(lines[-1]))
            store.append(wish.path, lines[-1])
    return lines


def _one_turn(number: int, turn: int, kind: str, cluster: Cluster, admin: AdminClient, wish: Wish) -> Line:
    name = f"{kind}-{turn}"
    if kind != PEACE:
        _fill(cluster, admin, name, PARTITIONS if kind == DELETION else 1, wish.gigabytes * GIB)
    os.sync()
    busy = process.busy_share(QUIET_SECONDS)
    worker = Thread(target=_trouble, args=(kind, name, admin, wish))
    worker.start()
    work = watched(
        python_module("paced", cluster.address, "load", RECORD_BYTES, wish.rate, WARMUP_SECONDS, wish.seconds),
        cluster,
        "load",
    )
    worker.join()
    if kind == RETENTION:
        replicated.delete(admin, name)
    return {
        "kind": "turn", "round": number, "turn": turn, "what": kind, "busy": round(busy, 3),
        "cpu_seconds": round(work.cpu_seconds, 2), "figures": work.said,
    }  # fmt: skip


def _trouble(kind: str, name: str, admin: AdminClient, wish: Wish) -> None:
    """What is removed beside the load, from its first measured second on."""
    time.sleep(WARMUP_SECONDS)
    if kind == DELETION:
        replicated.delete(admin, name)
    elif kind == RETENTION:
        left, ends = wish.gigabytes, time.monotonic() + wish.seconds
        while left > 1 and time.monotonic() < ends:
            left -= 1
            _keep_only(admin, name, left * GIB)
            time.sleep(wish.every_seconds)


def _fill(cluster: Cluster, admin: AdminClient, name: str, partitions: int, size: int) -> None:
    replicated.create(cluster, name, partitions)
    replicated.wait_in_sync(admin, name, partitions)
    replicated.fill(cluster, admin, name, RECORD_BYTES, BATCH_BYTES // 2, size)


def _keep_only(admin: AdminClient, name: str, size: int) -> None:
    entry = ConfigEntry("retention.bytes", str(size), incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, name, incremental_configs=[entry])
    for altered in admin.incremental_alter_configs([resource]).values():
        altered.result()


# What it came to.


def ratios(lines: list[Line], kind: str, figure: str) -> list[float]:
    """Of each turn of this kind to the turn in peace before it."""
    found = {(line["round"], line["turn"]): line["figures"][figure] for line in lines}
    return [
        found[line["round"], line["turn"]] / found[line["round"], line["turn"] - 1]
        for line in lines
        if line["what"] == kind
    ]


def table(lines: list[Line]) -> Table:
    shown = Table("turn", "p50", "p99", "p99.9", "longest", "p99 × peace", "longest × peace", "reached", "others busy")
    for kind in (PEACE, DELETION, RETENTION):
        of_kind = [line for line in lines if line["what"] == kind]
        figures = [f"{median(line['figures'][name] for line in of_kind):.1f}" for name in ("p50", "p99", "p999")]
        longest = f"{max(line['figures']['max'] for line in of_kind):.0f}"
        busy = f"{max(line['busy'] for line in of_kind):.0%}"
        compared = ["", "", ""]
        if kind != PEACE:
            p99, most = median(ratios(lines, kind, "p99")), median(ratios(lines, kind, "max"))
            compared = [f"{p99:.2f}", f"{most:.2f}", "yes" if p99 <= MOST_P99 and most <= MOST_LONGEST else "no"]
        shown.add_row(kind, *figures, longest, *compared, busy)
    return shown


def markdown(wish: Wish, lines: list[Line]) -> str:
    console = Console(width=120, record=True, file=StringIO())
    console.print(table(lines))
    return (
        f"# Latency while gigabytes are removed: {wish.system}\n\n"
        f"{len(lines) // len(TURNS)} rounds; {wish.rate:,} records of 1 KiB a second, three brokers, acks=all, "
        f"{wish.seconds:g} s a turn; milliseconds, medians over the rounds (`longest`: of all). Deletion: a topic of "
        f"{wish.gigabytes} GiB in each of three copies; retention: 1 GiB every {wish.every_seconds:g} s.\n\n"
        f"```\n{console.export_text()}```\n"
    )


def _described(line: Line) -> str:
    figures = line["figures"]
    return (
        f"round {line['round']}, {line['what']}: p50 {figures['p50']:.1f} ms, p99 {figures['p99']:.1f} ms, "
        f"longest {figures['max']:.0f} ms (the client itself was late by up to {figures['late']:.0f} ms; others used "
        f"{line['busy']:.0%} of the cores before)"
    )
