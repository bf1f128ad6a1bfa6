"""The invoice pipeline, reckoned up: what `klamm pipeline run` keeps in its tables is what the generator sent.

Calm: as many invoices as asked for into six brokers on two racks, then through the example with `--once`. Harmed: the
invoices flow while brokers, a whole rack, Spark's driver and an executor are killed with kill -9 and come back, until
the last has healed; then what is left is drained. In both, the tables are held against the generator's ledger: no
invoice lost, none doubled, sums to the cent, quarantine byte for byte.
"""

import argparse
import shutil
import tempfile
import time
from pathlib import Path
from random import Random
from typing import Any

from klamm.pipeline.invoice import sending
from klamm.pipeline.invoice.ledger import Ledger
from klamm.pipeline.invoice.reckoning import late_and_counted, reckoning
from proof.cluster import Klamm
from proof.pipeline_harm import Scene, harms
from proof.pipeline_jobs import Generating, Pipeline
from proof.store import ROOT, Line, Store, table

EXAMPLE = ROOT / "examples" / "invoice.py"
TOPIC = "invoice"
CALM, HARMED = "calm", "harmed"
CALM_MASTER, HARMED_MASTER = "local[2]", "local-cluster[2,1,1024]"
CALM_COUNT, HARMED_COUNT, RUNS = 1_000_000, 45_000, 10
SHARES = ["--malformed", "0.01", "--copied", "0.01", "--late", "0.02"]
CALM_STEP_MS, HARMED_STEP_MS = 36, 100
"""By their times, so much lies between two invoices: windows close in harmed runs too, and yet the brokers that are up
are never an hour ahead of one that is down."""
FLOW_SECONDS = 150.0
"""So long harmed invoices flow, unless told, or until nothing is down any more, whichever is later."""
PATIENCE_SECONDS = 3_600.0
LOOK_SECONDS = 0.5
MOST_STARTS = 3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", choices=[CALM, HARMED], help="one of the two")
    parser.add_argument("--runs", type=int, default=RUNS, help="harmed runs (%(default)s)")
    parser.add_argument(
        "--count", type=int, help=f"invoices a run ({CALM_COUNT:,} calm, at least {HARMED_COUNT:,} harmed)"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the first harmed run; the others follow")
    parser.add_argument(
        "--flow-seconds", type=float, default=FLOW_SECONDS, help="of a harmed run, at least (%(default)s)"
    )
    parser.add_argument("--file", type=Path, default=EXAMPLE, help="the pipeline")
    parser.add_argument("--batch-records", type=int, help="as `klamm pipeline run` has it")


def run(options: argparse.Namespace) -> int:
    store = Store(options.results, "pipeline", options.fresh)
    if options.only != HARMED and not store.of("run", how=CALM):
        _told(_calm(store, options))
    for seed in range(options.seed, options.seed + options.runs):
        if options.only != CALM and not store.of("run", how=HARMED, seed=seed):
            _told(_harmed(store, options, seed))
    store.write_summary(summary(store))
    return 1 if violations(store) else 0


def _calm(store: Store, options: argparse.Namespace) -> Line:
    with _Stage(options, CALM_MASTER) as stage:
        count, began = options.count or CALM_COUNT, time.monotonic()
        generating = stage.generate(options.seed, CALM_STEP_MS, ["--count", str(count)])
        generating.wait(PATIENCE_SECONDS)
        generated = time.monotonic()
        stage.pipeline.drain(PATIENCE_SECONDS, MOST_STARTS)
        drained = time.monotonic()
        spent = {"generate_seconds": round(generated - began, 1), "run_seconds": round(drained - generated, 1)}
        return stage.reckoned(store, CALM, options.seed, [], **spent)


def _harmed(store: Store, options: argparse.Namespace, seed: int) -> Line:
    with _Stage(options, HARMED_MASTER) as stage:
        began, done = time.monotonic(), []
        rate = (options.count or HARMED_COUNT) / options.flow_seconds
        generating = stage.generate(seed, HARMED_STEP_MS, ["--rate", str(rate)])
        stage.pipeline.start()
        scene = Scene(stage.cluster, stage.pipeline, Random(f"harm {seed}"), stage.wait)
        for harm in harms(scene):
            done.append(f"{time.monotonic() - began:.0f} s: {harm}")
            print(f"seed {seed}, {done[-1]}", flush=True)
        scene.wait_for_commit()
        stage.wait(began + options.flow_seconds - time.monotonic())
        generating.stop(PATIENCE_SECONDS)
        flowed_seconds = round(time.monotonic() - began, 1)
        stage.pipeline.stop()
        stage.pipeline.drain(PATIENCE_SECONDS, MOST_STARTS)
        run_seconds = round(time.monotonic() - began, 1)
        return stage.reckoned(store, HARMED, seed, done, flowed_seconds=flowed_seconds, run_seconds=run_seconds)


class _Stage:
    """A cluster with the topic, and a directory for tables, checkpoints and logs. Leaving it ends what was started."""

    def __init__(self, options: argparse.Namespace, master: str) -> None:
        self.cluster = Klamm(brokers=6, racks=2, keep=options.keep)
        self.directory = Path(tempfile.mkdtemp(prefix="klamm-pipeline-"))
        self._keep = options.keep
        self._file, self._master = options.file, master
        self._options = ["--batch-records", str(options.batch_records)] if options.batch_records else []
        self._generating: Generating | None = None

    def __enter__(self) -> "_Stage":
        self.cluster.__enter__()
        sending.create_topic(self.cluster.servers, TOPIC)
        self.cluster.wait_full_isr(TOPIC)
        self.pipeline = Pipeline(self.directory, self.cluster.servers, self._file, self._master, self._options)
        return self

    def __exit__(self, kind: object, *rest: object) -> None:
        self.pipeline.kill()
        if self._generating is not None:
            self._generating.kill()
        self.cluster.__exit__(kind, *rest)
        if self._keep or kind is not None:
            print(f"tables, checkpoints and logs stay in {self.directory}", flush=True)
        else:
            shutil.rmtree(self.directory, ignore_errors=True)

    def generate(self, seed: int, step_ms: int, how: list[str]) -> Generating:
        how = [*SHARES, "--step-ms", str(step_ms), *how]
        self._generating = Generating(self.directory, self.cluster.servers, seed, how)
        return self._generating

    def wait(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            self.pipeline.maybe_start_again()
            time.sleep(min(left, LOOK_SECONDS))

    def reckoned(self, store: Store, how: str, seed: int, harm: list[str], **spent: Any) -> Line:
        assert self._generating is not None
        ledger = Ledger.load(self._generating.ledger)
        differences = reckoning(ledger, self.pipeline.tables)
        late, counted = late_and_counted(ledger, self.pipeline.tables)
        if differences:
            self._keep = True
        return store.append(
            "run",
            how=how,
            seed=seed,
            count=ledger.issued,
            records=ledger.records,
            fates=dict(ledger.fates),
            lines=ledger.lines,
            cents=ledger.cents,
            late=late,
            late_counted=counted,
            starts=self.pipeline.starts,
            harm=harm,
            differences=differences,
            **spent,
        )


def violations(store: Store) -> list[Line]:
    return [line for line in store.of("run") if line["differences"]]


def summary(store: Store) -> str:
    heads = ["run", "seed", "invoices", "records", "malformed", "copies", "late", "… counted", "line items", "total",
             "starts", "seconds", "differences"]  # fmt: skip
    rows = [
        [
            line["how"], line["seed"], f"{line['count']:,}", f"{line['records']:,}", line["fates"].get("malformed", 0),
            line["fates"].get("copy", 0), line["late"], line["late_counted"], f"{line['lines']:,}",
            f"{line['cents'] / 100:,.2f}", line["starts"], line["run_seconds"], len(line["differences"]),
        ]
        for line in store.of("run")
    ]  # fmt: skip
    harm = [f"- seed {line['seed']}: {'; '.join(line['harm'])}" for line in store.of("run", how=HARMED)]
    return "\n".join(["# The invoice pipeline", "", table(heads, rows), "", *harm])


def _told(line: Line) -> None:
    verdict = "as the ledger says" if not line["differences"] else "\n  ".join(["differs:", *line["differences"]])
    print(
        f"{line['how']}, seed {line['seed']}, {line['count']:,} invoices, {line['run_seconds']} s: {verdict}",
        flush=True,
    )
