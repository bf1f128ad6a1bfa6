"""`klamm bench`: how quick is this cluster, with this client, on this machine? Three lines, in some seconds."""

import argparse
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from klamm.cli.bench_measuring import (
    Latency,
    Throughput,
    measured_consume,
    measured_latency,
    measured_produce,
    random_values,
    versions,
)
from klamm.cli.carried_out import carried_out
from klamm.cli.group_asking import Cluster, Refused
from klamm.cli.librdkafka import ACKS, BIGGEST_MESSAGE, COMPRESSIONS
from klamm.cli.options import (
    MOST_32,
    MOST_REPLICAS,
    Misused,
    add_json,
    add_where,
    addresses_of,
    bootstrap_of,
    count_of,
    parser_of,
    whole_of,
)
from klamm.cli.progress import Progress
from klamm.cli.saying import print_json, say, say_result
from klamm.cli.topic_asking import partitions_made
from klamm.cli.topic_changes import BROKER_DEFAULT, CHANGE_SECONDS, admin_client, wait_done

DESCRIPTION = """\
Send records to a topic made for it, read them again, send some one at a time, and say how quick that was. The topic is
deleted at the end. It measures the cluster, this machine and the client library together, and nothing is repeated: run
it twice before you believe it. Any cluster will do, Apache Kafka's, too.
"""

EXAMPLES = """\
examples:
  klamm bench
  klamm bench --records 1000000 --size 1000 --partitions 6 --replication 3
  klamm bench --acks 1 --compression lz4 --json
  klamm bench --bootstrap-server 10.0.0.7:9092

exit code 0: measured; 1: the cluster refused it or did not answer; 2: asked for in a way that makes no sense
"""

RECORDS, SIZE, SINGLE = 200_000, 100, 500


def make_parser() -> argparse.ArgumentParser:
    parser = parser_of("bench", DESCRIPTION, EXAMPLES)
    parser.add_argument("--records", type=count_of, default=RECORDS, metavar="N", help=f"to send and read ({RECORDS})")
    parser.add_argument(
        "--size", type=whole_of(0, BIGGEST_MESSAGE), default=SIZE, metavar="BYTES", help=f"of each value ({SIZE})"
    )
    parser.add_argument("--single", type=count_of, default=SINGLE, metavar="N", help=f"sent one at a time ({SINGLE})")
    parser.add_argument(
        "--partitions", type=whole_of(1, MOST_32), metavar="N", help="of the topic; else the brokers' num.partitions"
    )
    parser.add_argument(
        "--replication",
        type=whole_of(1, MOST_REPLICAS),
        metavar="N",
        help="else the brokers' default.replication.factor",
    )
    parser.add_argument("--acks", choices=tuple(ACKS), default="all", help="who has to have a record (all)")
    parser.add_argument("--compression", choices=COMPRESSIONS, default="none", help="of the batches (none)")
    add_where(parser)
    add_json(parser)
    return parser


def run(arguments: Sequence[str]) -> int:
    options = make_parser().parse_args(arguments)
    return carried_out("bench", options, lambda: _run(options), Refused)


def _run(options: argparse.Namespace) -> int:
    if options.records < 1:
        raise Misused("--records: at least one, or there is nothing to measure")
    bootstrap = bootstrap_of(options)
    cluster = Cluster(addresses_of(bootstrap))
    values = random_values(options.size)
    settings = {
        "acks": ACKS[options.acks],
        "enable.idempotence": ACKS[options.acks] == ACKS["all"],
        "compression.type": options.compression,
    }
    progress = Progress()

    def shown(text: str) -> None:
        progress.show(lambda: text)

    with _topic(options, cluster) as topic:
        produced = measured_produce(bootstrap, topic, options.records, values, settings, shown)
        consumed = measured_consume(bootstrap, cluster, topic, options.records, options.size, shown)
        latency = (
            measured_latency(bootstrap, topic, options.single, values, settings, shown) if options.single else None
        )
        progress.clear()
    if options.json:
        print_json(_document(options, produced, consumed, latency))
    else:
        say_result(_text(options, produced, consumed, latency))
    return 0


@contextmanager
def _topic(options: argparse.Namespace, cluster: Cluster) -> Iterator[str]:
    name = f"klamm-bench-{os.getpid()}"
    admin = admin_client(options)
    from confluent_kafka.admin import NewTopic  # type: ignore[attr-defined]

    partitions = BROKER_DEFAULT if options.partitions is None else options.partitions
    replication = BROKER_DEFAULT if options.replication is None else options.replication
    new = NewTopic(name, num_partitions=partitions, replication_factor=replication)
    wait_done(admin.create_topics([new], operation_timeout=CHANGE_SECONDS, request_timeout=CHANGE_SECONDS))
    try:
        partitions_made(cluster, name)
        yield name
    finally:
        try:
            wait_done(admin.delete_topics([name], request_timeout=CHANGE_SECONDS))
        except Refused as problem:
            say(f"klamm bench: {problem}; `klamm topic delete {name}` tries again")


def _text(options: argparse.Namespace, produced: Throughput, consumed: Throughput, latency: Latency | None) -> str:
    lines = [
        f"produce  {_throughput(produced)}  acks={options.acks}",
        f"consume  {_throughput(consumed)}",
    ]
    if latency is not None:
        lines.append(
            f"single   p50 {latency.p50_ms:.2f} ms, p99 {latency.p99_ms:.2f} ms, at most {latency.most_ms:.2f} ms "
            f"until acknowledged, of {latency.records:,}"
        )
    return "\n".join(lines)


def _throughput(measured: Throughput) -> str:
    return (
        f"{measured.per_second:>11,.0f} records/s {measured.mb_per_second:>8,.1f} MB/s  "
        f"({measured.records:,} of {measured.size_bytes:,} bytes in {measured.seconds:.2f} s)"
    )


def _document(
    options: argparse.Namespace, produced: Throughput, consumed: Throughput, latency: Latency | None
) -> dict[str, object]:
    return {
        "records": options.records,
        "size_bytes": options.size,
        "acks": options.acks,
        "compression": options.compression,
        "produce": _throughput_document(produced),
        "consume": _throughput_document(consumed),
        "single": None
        if latency is None
        else {
            "records": latency.records,
            "p50_ms": round(latency.p50_ms, 3),
            "p99_ms": round(latency.p99_ms, 3),
            "max_ms": round(latency.most_ms, 3),
        },
        "client": versions(),
    }


def _throughput_document(measured: Throughput) -> dict[str, object]:
    return {
        "seconds": round(measured.seconds, 4),
        "records_per_second": round(measured.per_second, 1),
        "mb_per_second": round(measured.mb_per_second, 3),
    }
