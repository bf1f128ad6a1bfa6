"""The command: `python -m bench run`, `… cluster`, `… removals`, `… partitions`, `… groups`, `… spark`, `… report`."""

import argparse
import signal
import sys
import time
from pathlib import Path
from types import FrameType

from rich.console import Console

from bench import (
    cluster_round,
    cluster_run,
    group_round,
    groups,
    groups_plot,
    groups_report,
    partitions,
    plot,
    removals,
    report,
    run,
    store,
)
from bench.one_round import FULL, QUICK
from bench.start import StartError
from bench.systems import NotAvailableError


def main() -> int:
    arguments = _parser().parse_args()
    console = Console() if sys.stdout.isatty() else Console(width=160)
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        return int(arguments.command(arguments, console))
    except (NotAvailableError, StartError) as problem:
        console.print(problem, style="red", markup=False)
        return 2
    except KeyboardInterrupt:
        console.print("interrupted; what was measured is kept: `--resume` goes on with the missing rounds")
        return 130


def _run(arguments: argparse.Namespace, console: Console) -> int:
    partial = arguments.quick or arguments.only or arguments.set
    wish = run.Wish(
        plan=QUICK if arguments.quick else FULL,
        rounds=arguments.rounds,
        subject=arguments.subject,
        only=tuple(arguments.only),
        settings=tuple(arguments.set),
        resume=arguments.resume,
        scratch=arguments.scratch,
        results=arguments.results or (run.SCRATCH_RESULTS if partial else run.RESULTS),
    )
    finished = run.run(wish, lambda words: console.print(f"{time.strftime('%H:%M:%S')} {words}", highlight=False))
    return _show(finished, wish.results, console)


def _cluster(arguments: argparse.Namespace, console: Console) -> int:
    partial = arguments.quick or arguments.only or arguments.set or arguments.rate
    wish = cluster_run.Wish(
        plan=cluster_round.QUICK if arguments.quick else cluster_round.FULL,
        rounds=arguments.rounds,
        only=tuple(arguments.only),
        settings=tuple(arguments.set),
        rate=arguments.rate,
        resume=arguments.resume,
        scratch=arguments.scratch,
        results=arguments.results or (run.SCRATCH_RESULTS if partial else run.RESULTS),
    )
    with console.status("…") as status:
        finished = cluster_run.run(
            wish, lambda words: console.print(f"{time.strftime('%H:%M:%S')} {words}", highlight=False), status.update
        )
    return _show(finished, wish.results, console)


def _report(arguments: argparse.Namespace, console: Console) -> int:
    results = arguments.results or run.RESULTS
    finished = store.last_run(results / ("cluster.jsonl" if arguments.cluster else "runs.jsonl"))
    if finished is None:
        console.print("nothing has been measured yet")
        return 1
    return _show(finished, results, console)


def _show(finished: store.Run, results: Path, console: Console) -> int:
    name = "cluster" if finished.is_cluster else "noise" if finished.is_noise else "latest"
    console.print(report.table(finished))
    (results / f"{name}.md").write_text(report.markdown(finished))
    plot.draw(finished, results / f"{name}.png")
    for note in report.notes(finished):
        console.print(note, style="red", highlight=False)
    return 1 if finished.failures else 0


def _partitions(arguments: argparse.Namespace, console: Console) -> int:
    wish = partitions.Wish(
        system=arguments.system,
        counts=tuple(arguments.counts),
        shapes=tuple(arguments.shapes),
        produces=arguments.produces,
        settings=tuple(arguments.set),
        scratch=arguments.scratch,
        results=arguments.results or run.RESULTS,
    )
    return partitions.run(wish, console)


def _removals(arguments: argparse.Namespace, console: Console) -> int:
    partial = arguments.quick or arguments.set or arguments.system != "klamm"
    wish = removals.Wish(
        system=arguments.system,
        rounds=1 if arguments.quick else arguments.rounds,
        gigabytes=2 if arguments.quick else arguments.gigabytes,
        seconds=10 if arguments.quick else arguments.seconds,
        rate=arguments.rate,
        every_seconds=arguments.every,
        settings=tuple(arguments.set),
        resume=arguments.resume,
        scratch=arguments.scratch,
        results=arguments.results or (run.SCRATCH_RESULTS if partial else run.RESULTS),
    )
    lines = removals.run(wish, lambda words: console.print(f"{time.strftime('%H:%M:%S')} {words}", highlight=False))
    (wish.results / "removals.md").write_text(removals.markdown(wish, lines))
    console.print(removals.table(lines))
    return 0


def _groups(arguments: argparse.Namespace, console: Console) -> int:
    partial = arguments.quick or arguments.set or len(arguments.parts) < len(group_round.PARTS)
    wish = groups.Wish(
        plan=group_round.QUICK if arguments.quick else group_round.FULL,
        rounds=arguments.rounds,
        parts=tuple(arguments.parts),
        settings=tuple(arguments.set),
        resume=arguments.resume,
        scratch=arguments.scratch,
        results=arguments.results or (run.SCRATCH_RESULTS if partial else run.RESULTS),
    )
    finished = groups.run(
        wish,
        lambda words: console.print(f"{time.strftime('%H:%M:%S')} {words}", highlight=False),
        lambda current: _write_groups(current, wish.results),
    )
    _write_groups(finished, wish.results)
    for table in groups_report.tables(finished):
        console.print(table)
    return 1 if finished.failures else 0


def _write_groups(current: groups.GroupRun, results: Path) -> None:
    (results / "groups.md").write_text(groups_report.markdown(current))
    groups_plot.draw(current, results / "groups.png")


def _spark(arguments: argparse.Namespace, console: Console) -> int:
    # Spark is an extra, which the other benches do without.
    from bench import spark, spark_report

    partial = arguments.quick or arguments.codecs or arguments.sinks
    wish = spark.Wish(
        plan=spark.QUICK if arguments.quick else spark.FULL,
        rounds=arguments.rounds,
        codecs=tuple(arguments.codecs or spark.CODECS),
        sinks=tuple(arguments.sinks or spark.SINKS),
        scratch=arguments.scratch,
        results=arguments.results or (run.SCRATCH_RESULTS if partial else run.RESULTS),
    )
    spark.run(wish, lambda words: console.print(f"{time.strftime('%H:%M:%S')} {words}", highlight=False))
    header, lines = spark_report.last_run(wish.path)
    (wish.results / "spark.md").write_text(spark_report.markdown(header, lines))
    console.print(spark_report.table(lines))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    commands = parser.add_subparsers(required=True)
    rounds = commands.add_parser("run", help="Klamm and Kafka in turns, a table of ratios")
    rounds.add_argument("--rounds", type=int, default=5)
    rounds.add_argument("--only", nargs="+", default=[], metavar="NAME", help="e.g. produce.java latency memory start")
    rounds.add_argument("--quick", action="store_true", help="a tenth of the volume: does it work?")
    rounds.add_argument("--resume", action="store_true", help="go on with the last run's missing rounds")
    rounds.add_argument("--subject", choices=["klamm", "kafka"], default="klamm", help="kafka: the noise")
    rounds.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a setting of the subject")
    rounds.set_defaults(command=_run)
    trio = commands.add_parser("cluster", help="three brokers each, replication 3, acks=all: a table of ratios")
    trio.add_argument("--rounds", type=int, default=5)
    trio.add_argument("--only", nargs="+", default=[], metavar="NAME", help="e.g. produce.java.1024 latency consume")
    trio.add_argument("--quick", action="store_true", help="less of everything: does it work?")
    trio.add_argument("--resume", action="store_true", help="go on with the last run's missing rounds")
    trio.add_argument("--rate", type=int, help="records a second for latency, instead of half the slower maximum")
    trio.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a setting of Klamm's brokers")
    trio.set_defaults(command=_cluster)
    again = commands.add_parser("report", help="table and plot of the last run once more")
    again.add_argument("--cluster", action="store_true", help="of the replicated set")
    again.set_defaults(command=_report)
    many = commands.add_parser("partitions", help="one node with 10 to 10,000 partitions")
    many.add_argument("--system", choices=["klamm", "kafka"], default="klamm")
    many.add_argument("--counts", type=int, nargs="+", default=[10, 100, 1_000, 10_000])
    many.add_argument("--shapes", nargs="+", choices=list(partitions.SHAPES), default=list(partitions.SHAPES))
    many.add_argument("--produces", type=int, default=10_000, help="measured requests, one a partition at least")
    many.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a setting of the system")
    many.set_defaults(command=_partitions)
    gone = commands.add_parser("removals", help="latency while a topic is deleted, and while retention takes segments")
    gone.add_argument("--system", choices=["klamm", "kafka"], default="klamm")
    gone.add_argument("--rounds", type=int, default=3)
    gone.add_argument("--gigabytes", type=int, default=10, help="of the topics that go, in each of three copies")
    gone.add_argument("--seconds", type=float, default=60, help="of each turn")
    gone.add_argument("--every", type=float, default=10, metavar="SECONDS", help="between two segments of 1 GiB")
    gone.add_argument("--rate", type=int, default=12_900, help="records of 1 KiB a second")
    gone.add_argument("--quick", action="store_true", help="one short round with 2 GiB: does it work?")
    gone.add_argument("--resume", action="store_true", help="go on with the last run's missing rounds")
    gone.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a setting of the brokers")
    gone.set_defaults(command=_removals)
    crowd = commands.add_parser("groups", help="one group of 10 to 500 members, and a thousand groups")
    crowd.add_argument("--rounds", type=int, default=5)
    crowd.add_argument("--parts", nargs="+", choices=list(group_round.PARTS), default=list(group_round.PARTS))
    crowd.add_argument("--quick", action="store_true", help="small groups, short loads: does it work?")
    crowd.add_argument("--resume", action="store_true", help="go on with the last run's missing turns")
    crowd.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a setting of Klamm's broker")
    crowd.set_defaults(command=_groups)
    stream = commands.add_parser("spark", help="format klamm beside Spark's own connector, records a second")
    stream.add_argument("--rounds", type=int, default=3)
    stream.add_argument("--codecs", nargs="+", choices=["none", "lz4", "zstd"], default=[])
    stream.add_argument("--sinks", nargs="+", choices=["noop", "delta"], default=[])
    stream.add_argument("--quick", action="store_true", help="a twentieth of the records: does it work?")
    stream.set_defaults(command=_spark)
    for command in (rounds, trio, gone, again, many, crowd, stream):
        command.add_argument("--results", type=Path, help="where tables, plots and lines of JSON go")
    for command in (rounds, trio, gone, many, crowd, stream):
        command.add_argument("--scratch", type=Path, default=run.SCRATCH, help="data directories: the disk to measure")
    return parser


def _interrupt(signal_number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
