"""`klamm pipeline run`: what is shown while it runs and when it ends; `klamm.pipeline.running` does it."""

import argparse
import json
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from rich.console import RenderableType
from rich.live import Live

from klamm.cli.carried_out import nobody
from klamm.cli.console import OwnConsole
from klamm.cli.options import Misused, bootstrap_of, pairs_of
from klamm.cli.saying import FAILED, failed, is_terminal, say, say_result
from klamm.cli.tips import way_back
from klamm.local.asking import Address, NoAnswer
from klamm.local.asking_several import first_answer
from klamm.pipeline import Table, view
from klamm.pipeline.kafka.settings import addresses
from klamm.pipeline.keeping import Directory
from klamm.pipeline.loading import Loaded, loaded
from klamm.pipeline.metrics import Page, exposition, served
from klamm.pipeline.progress import Standing, document
from klamm.pipeline.queries import Wishes
from klamm.pipeline.resetting import Reset
from klamm.pipeline.running import Failed, Job, Outcome, run
from klamm.pipeline.stopping import INTERRUPTED, Interrupted
from klamm.pipeline.topics import ANSWER_SECONDS

WIDEST = 10_000
DIAL_SECONDS = 2.0
LINE_SECONDS = 3.0
"""Between two lines where there is no terminal."""
BUSY_SECONDS = 10.0
"""The same while there is nothing new but that a batch goes on."""


def run_pipeline(options: argparse.Namespace) -> int:
    if options.batch_records < 1 or options.every < 0:
        raise Misused("--batch-records is at least 1, and --every no less than 0")
    if options.drop_tables and not options.reset:
        raise Misused(
            "--drop-tables goes with --reset: tables that begin empty would lack whatever was read before, and is not "
            "read again"
        )
    metrics = _metrics_address(options.metrics_port)
    file = loaded(options.file)
    job = _job(options, file)
    why = way_back(options.dir, job.wishes.bootstrap)
    if why is not None:
        return failed("pipeline run", f"no broker answers: {why}")
    if job.reset is not None and not _is_agreed(job, job.reset, options.yes):
        return FAILED
    silence = _silence(job.wishes.bootstrap)
    if silence is not None and job.wishes.once:
        return failed("pipeline run", silence)
    if silence is not None:
        say(f"{silence}. Waiting {ANSWER_SECONDS:.0f} s for one ...")
    shown = _Shown(options.once, options.json)
    page = Page()

    def watch(standing: Standing, spoke: list[str]) -> None:
        page.text = exposition(standing)
        shown.show(standing, spoke)

    with ExitStack() as stack:
        if metrics is not None:
            port = stack.enter_context(served(*metrics, page))
            say(f"metrics at http://{metrics[0]}:{port}/metrics")
        stack.enter_context(shown.opened())
        try:
            outcome = run(job, watch, shown.say, shown.close)
        except Failed as problem:
            return _told_failure(shown, problem, job)
        except Interrupted as problem:
            shown.say(str(problem))
            return INTERRUPTED
    return _told_end(shown, outcome, job)


def _job(options: argparse.Namespace, file: Loaded) -> Job:
    pipeline = file.pipeline
    bootstrap = options.bootstrap or (pipeline.bootstrap if not options.dir else "") or bootstrap_of(options)
    wishes = Wishes(bootstrap, options.once, options.batch_records, options.every, pairs_of("--kafka", options.kafka))
    return Job(
        file,
        Directory(Path(options.data or f"pipeline-data/{pipeline.name}").absolute()),
        wishes,
        options.master,
        pairs_of("--conf", options.conf),
        makes_topics=not options.no_create_topics,
        reset=Reset(options.drop_tables) if options.reset else None,
        is_verbose=options.verbose,
    )


def _silence(bootstrap: str) -> str | None:
    """That nobody takes connections, which the client library would see after ten seconds; None if somebody does."""
    asked = [Address(*each) for each in addresses(bootstrap)]
    try:
        first_answer(asked, DIAL_SECONDS, lambda broker: None)
    except NoAnswer as problem:
        return nobody(problem)
    return None


def _metrics_address(text: str | None) -> tuple[str, int] | None:
    if text is None:
        return None
    host, _, port = text.rpartition(":")
    if not port.isdigit() or int(port) > 65_535:
        raise Misused(f"--metrics-port {text}: expected a port, as 9400, or HOST:PORT, as 0.0.0.0:9400")
    return host or "127.0.0.1", int(port)


def _is_agreed(job: Job, reset: Reset, without_asking: bool) -> bool:
    """Says what goes, and asks whoever is there. It goes later, when everything else is right."""
    with job.directory.held():
        what = reset.announced(job.directory, job.loaded.pipeline)
    if not what:
        return True
    say(what)
    if without_asking:
        return True
    if not is_terminal(sys.stdin):
        failed("pipeline run", "nobody is here to agree; say --yes")
        return False
    if input("Go on? [y/N] ").strip().lower() not in ("y", "yes"):
        say("nothing was changed")
        return False
    return True


class _Shown:
    """The one place that prints: a live view on a terminal, a line now and then elsewhere, JSON if that is wanted."""

    def __init__(self, once: bool, as_json: bool) -> None:
        self._once, self._as_json = once, as_json
        self.console = OwnConsole(stderr=True)
        self._live: Live | None = None
        self._last_line: float | None = None
        self._heard = 0

    @contextmanager
    def opened(self) -> Iterator[None]:
        if self._as_json or not self.console.is_terminal:
            yield
            return
        with Live(console=self.console, refresh_per_second=4, transient=True) as self._live:
            yield
        self._live = None

    def close(self) -> None:
        """Now, whatever else is going on: the view goes, and the terminal's cursor is back."""
        if self._live is not None:
            self._live.stop()

    def say(self, text: str) -> None:
        self.console.print(text, markup=False, soft_wrap=True)

    def show(self, standing: Standing, spoke: list[str]) -> None:
        for text in standing.said[self._heard :]:
            self.say(text)
        self._heard = len(standing.said)
        if self._as_json:
            if spoke:
                say_result(json.dumps(document(standing, spoke)))
        elif self._live is not None:
            self._live.update(view.live(standing, self._once))
        elif self._is_time_for_a_line(standing, bool(spoke)):
            self._last_line = time.monotonic()
            say(view.line(standing, self._once))

    def _is_time_for_a_line(self, standing: Standing, has_news: bool) -> bool:
        """Something new, or a batch that takes long: then it shall not look as if nothing went on."""
        if self._last_line is None:
            self._last_line = time.monotonic()
        waited = time.monotonic() - self._last_line
        is_busy = any(query.under_way is not None for query in standing.queries.values())
        return waited >= (LINE_SECONDS if has_news else BUSY_SECONDS) and (has_news or is_busy)

    def end(self, standing: Standing, how: str) -> None:
        if self._as_json:
            say_result(json.dumps({**document(standing), "ended": how}))
        else:
            _print(view.summary(standing, how))


def _print(what: RenderableType) -> None:
    """A file is as wide as it has to be, and has no spaces at the ends of its lines."""
    printer = OwnConsole()
    if printer.is_terminal:
        printer.print(what)
        return
    printer.width = WIDEST
    with printer.capture() as said:
        printer.print(what)
    say_result("\n".join(line.rstrip() for line in said.get().splitlines()))


def _told_failure(shown: _Shown, problem: Failed, job: Job) -> int:
    if job.is_verbose:
        say("".join(traceback.format_exception(problem.cause)))
    if problem.standing.records:
        shown.end(problem.standing, "failed")
    hint = "" if job.is_verbose else f" Spark's log is {job.log}; --verbose shows all of it here."
    return failed("pipeline run", f"{problem}{hint}")


def _told_end(shown: _Shown, outcome: Outcome, job: Job) -> int:
    shown.end(outcome.standing, "stopped" if outcome.was_stopped else "done")
    tables = [output for output in job.loaded.pipeline.outputs if isinstance(output, Table)]
    # Who stopped it before the first batch has none yet.
    tables = [table for table in tables if Path(job.directory.table(table.name)).is_dir()]
    if tables:
        name, is_delta = tables[0].name, tables[0].format == "delta"
        reads = f'DeltaTable("…/{name}").to_pandas()' if is_delta else f'pandas.read_parquet("…/{name}")'
        shown.say(f"tables in {job.directory.tables}; from Python: {reads}")
    return INTERRUPTED if outcome.was_stopped and job.wishes.once else 0
