"""`klamm broker`: one broker in the foreground, from options, `--set` and a server.properties file.

Command-line options win over `--set`, which wins over the file. What is wrong with the settings is said in whole, one
line a problem, and nothing is started.
"""

import argparse
import shlex
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from klamm.cli.options import directory_of, id_of, parser_of
from klamm.cli.saying import MISUSED, failed
from klamm.config import BrokerConfig, ConfigError, parse_properties

CLUSTER = "cluster.json"
"""As `klamm.local.record` calls it, which a broker has no need to import."""

DESCRIPTION = """\
Run one broker in the foreground. When it takes connections it prints one line: where, and where its data is. Ctrl-C
or SIGTERM stops it cleanly.
"""

EXAMPLES = """\
examples:
  klamm broker --dir data
      a broker on 127.0.0.1:9092; topics and records stay in ./data
  klamm broker --id 1 --listen 127.0.0.1:9192 --rack R1 --dir data-1 --set num.partitions=6
      Kafka's own setting names work with --set
  klamm broker --id 0 --listen 127.0.0.1:9092 --dir data-0 --quorum 0@127.0.0.1:9092,1@127.0.0.1:9093,2@127.0.0.1:9094
      the first of three brokers of a cluster (`klamm up` starts a whole one)
  klamm broker --dir data --set klamm.metrics.listener=127.0.0.1:9404
      /metrics for Prometheus, /healthz and /readyz at that address
  klamm broker --config server.properties
      a Kafka configuration file; settings that mean nothing here are named, unknown ones refused
"""


def run(arguments: Sequence[str]) -> int:
    options = make_parser().parse_args(arguments)
    try:
        config = _config(options)
    except ConfigError as error:
        return failed("broker", f"cannot start:\n{_indented(str(error))}", MISUSED)
    # A directory that cannot be looked into is refused further on, with the reason.
    with suppress(OSError):
        if (Path(config.log_dir) / CLUSTER).exists():
            return failed("broker", f"cannot start: {_of_a_cluster(config.log_dir)}")
    from klamm.runtime.problems import AddressTaken, CannotStart
    from klamm.runtime.process import run_broker

    try:
        # Who ends without having been told to has said why in the log.
        return 0 if run_broker(config, options.cluster_id) else 1
    except CannotStart as error:
        by_whom = _taken_by(error.port) if isinstance(error, AddressTaken) else ""
        return failed("broker", f"cannot start: {error}{by_whom}")


def make_parser() -> argparse.ArgumentParser:
    parser = parser_of("broker", DESCRIPTION, EXAMPLES)
    parser.add_argument("--id", type=id_of, metavar="N", help="the broker's id (node.id), 0 unless told otherwise")
    parser.add_argument("--listen", metavar="HOST:PORT", help="where to take connections, 127.0.0.1:9092 by default")
    parser.add_argument("--advertise", metavar="HOST:PORT", help="what clients are told to connect to; else --listen")
    parser.add_argument(
        "--dir",
        type=directory_of,
        metavar="DIR",
        help="the data directory (log.dirs); made if it is not there. Without it, and without log.dirs, Kafka's own "
        "/tmp/kafka-logs",
    )
    parser.add_argument("--rack", metavar="RACK", help="the rack this broker stands in (broker.rack)")
    parser.add_argument(
        "--quorum",
        metavar="ID@HOST:PORT,…",
        help="the nodes that agree on the cluster's metadata (controller.quorum.voters); without it, this one alone",
    )
    parser.add_argument(
        "--roles",
        metavar="ROLES",
        help="broker (holds partitions), controller (is of the quorum), or both: broker,controller (process.roles)",
    )
    parser.add_argument("--cluster-id", metavar="ID", help="the cluster's id; else nodes of one quorum agree on one")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="any of Kafka's broker settings; may be repeated",
    )
    parser.add_argument("--config", metavar="FILE", help="a Kafka server.properties file")
    return parser


def _config(options: argparse.Namespace) -> BrokerConfig:
    pairs = []
    if options.config:
        try:
            pairs = parse_properties(Path(options.config).read_text(encoding="utf-8", errors="replace"))
        except OSError as error:
            raise ConfigError([f"cannot read {options.config}: {error.strerror}"]) from error
    return BrokerConfig.from_properties(pairs, _overrides(options, {key for key, _, _ in pairs}))


def _overrides(options: argparse.Namespace, in_file: set[str]) -> dict[str, str]:
    overrides = {}
    for pair in options.set:
        key, equals, value = pair.partition("=")
        if not equals:
            raise ConfigError([f"--set {pair}: expected KEY=VALUE, as in --set num.partitions=6"])
        overrides[key.strip()] = value.strip()
    if options.id is not None:
        overrides["node.id"] = str(options.id)
    elif not in_file & {"node.id", "broker.id"} and "node.id" not in overrides:
        overrides["node.id"] = "0"
    if options.listen:
        overrides["listeners"] = f"PLAINTEXT://{_address('--listen', options.listen)}"
    elif "listeners" not in in_file and "listeners" not in overrides:
        overrides["listeners"] = "PLAINTEXT://127.0.0.1:9092"
    if options.advertise:
        overrides["advertised.listeners"] = f"PLAINTEXT://{_address('--advertise', options.advertise)}"
    if options.dir:
        overrides["log.dirs"] = options.dir
    if options.quorum:
        overrides["controller.quorum.voters"] = options.quorum
    if options.roles:
        overrides["process.roles"] = options.roles
    elif options.quorum and "process.roles" not in in_file and "process.roles" not in overrides:
        # Who is of the quorum is a controller too.
        numbers = {voter.partition("@")[0] for voter in options.quorum.split(",")}
        overrides["process.roles"] = "broker,controller" if overrides.get("node.id") in numbers else "broker"
    if options.rack:
        overrides["broker.rack"] = options.rack
    return overrides


def _of_a_cluster(directory: str) -> str:
    return (
        f"{directory} is the directory of a cluster (it has a {CLUSTER}), not of a broker; "
        f"`klamm up --dir {shlex.quote(directory)}` starts that cluster, or choose another with --dir"
    )


def _taken_by(port: int) -> str:
    """As far as the system tells us who listens there."""
    from klamm.local.listeners import listener_on

    holder = listener_on(port)
    if holder is None:
        return ""
    directory = holder.cluster_directory
    if directory is None:
        return f", or end {holder}, which has it"
    return f", or stop the cluster in {directory}, which has it: `klamm down --dir {shlex.quote(str(directory))}`"


def _address(option: str, text: str) -> str:
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdigit() or int(port) > 65535:
        raise ConfigError([f"{option} {text}: expected HOST:PORT, as in 127.0.0.1:9092"])
    return f"{host}:{port}"


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())
