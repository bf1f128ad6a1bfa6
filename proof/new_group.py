"""How long the first consumer group ever waits for its first record, after kill -9 of the leader that was the
controller as well.

Every run has a new cluster of three brokers and a topic of one partition that the controller leads, with one record in
it. The controller is killed, and at once a consumer of confluent-kafka subscribes in a new group, with the library's
own settings: nobody has asked for a group before, so the topic of the groups' offsets does not exist yet. What is
measured is the time from the signal to the record. The three kinds of cluster are what `klamm_embedded`,
`klamm_cluster` and `klamm up` give; the two protocols are Kafka's older and newer one.

The library dials one of its bootstrap servers at random, and where that refuses it waits for a second before it dials
another: a time in which no broker has heard of it. So the consumer is given the two brokers that are left. With all
three (`--bootstrap all`) every third run takes a second longer, whatever the cluster does. To reach, with those that
are left: at most 1 s, every time.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import product

from confluent_kafka import Consumer, Producer

from klamm.testing import embedded_cluster, process_cluster
from klamm.testing.under_test import ClusterUnderTest
from proof import raw
from proof.cluster import Klamm, ProofError
from proof.raw import Line
from proof.store import Store, percentile, table

BROKERS = 3
REACH_SECONDS = 1.0
GIVE_UP_SECONDS = 60.0
PROTOCOLS = ("classic", "consumer")
LEFT, ALL = "left", "all"


class Victim:
    """A cluster of some kind, as far as this proof needs it."""

    def __init__(self, servers: str, kill: Callable[[int], None]) -> None:
        self.servers = servers
        self.kill = kill


@contextmanager
def _of_fixtures(opened: AbstractContextManager[ClusterUnderTest]) -> Iterator[Victim]:
    with opened as cluster:
        yield Victim(cluster.bootstrap_servers, cluster.kill)


@contextmanager
def _of_klamm_up() -> Iterator[Victim]:
    with Klamm(BROKERS) as cluster:
        yield Victim(cluster.servers, lambda broker: cluster.kill([broker]))


KINDS: dict[str, Callable[[], AbstractContextManager[Victim]]] = {
    "embedded": lambda: _of_fixtures(embedded_cluster(BROKERS)),
    "processes": lambda: _of_fixtures(process_cluster(BROKERS)),
    "klamm up": _of_klamm_up,
}


def run(options: argparse.Namespace) -> int:
    store = Store(options.results, "new_group", options.fresh)
    for bootstrap, kind, protocol in product(options.bootstrap, options.kinds, PROTOCOLS):
        case = {"cluster": kind, "protocol": protocol, "bootstrap": bootstrap}
        for _ in range(options.times - len(store.of("run", **case))):
            seconds = first_record_seconds(kind, protocol, bootstrap)
            print(store.append("run", **case, seconds=round(seconds, 3)), flush=True)
    store.write_summary(summary(store))
    return 0 if is_reached(store) else 1


def first_record_seconds(kind: str, protocol: str, bootstrap: str) -> float:
    with KINDS[kind]() as cluster:
        topic, controller = _topic_of_the_controller(cluster.servers)
        servers = cluster.servers if bootstrap == ALL else _without(controller, cluster.servers)
        began = time.monotonic()
        cluster.kill(controller)
        consumer = Consumer(
            {
                "bootstrap.servers": servers,
                "group.id": "first-ever",
                "group.protocol": protocol,
                "auto.offset.reset": "earliest",
                "log_level": 0,
            }
        )
        try:
            consumer.subscribe([topic])
            while time.monotonic() < began + GIVE_UP_SECONDS:
                message = consumer.poll(0.1)
                if message is not None and message.error() is None:
                    return time.monotonic() - began
        finally:
            consumer.close()
    raise ProofError(f"no record after {GIVE_UP_SECONDS:.0f} s")


def _without(broker: int, servers: str) -> str:
    """Brokers are numbered in the order of their ports, from 0."""
    return ",".join(each for number, each in enumerate(servers.split(",")) if number != broker)


def _topic_of_the_controller(servers: str) -> tuple[str, int]:
    with Line(int(servers.split(",")[0].rpartition(":")[2])) as line:
        controller = int(raw.quorum(line).leader_id)
        for number in range(BROKERS):
            topic = f"read-{number}"
            if code := raw.create_topic(line, topic, 1, BROKERS):
                raise ProofError(f"{topic} could not be created: code {code}")
            if raw.leader_and_ports(line, topic)[1] == controller:
                producer = Producer({"bootstrap.servers": servers, "log_level": 0})
                producer.produce(topic, b"the first")
                if producer.flush(GIVE_UP_SECONDS):
                    raise ProofError("the record was not acknowledged before the kill")
                return topic, controller
    raise ProofError(f"broker {controller}, the controller, leads none of {BROKERS} topics")


def is_reached(store: Store) -> bool:
    return all(line["seconds"] <= REACH_SECONDS for line in store.of("run", bootstrap=LEFT))


def summary(store: Store) -> str:
    rows = []
    for bootstrap, kind, protocol in product((LEFT, ALL), KINDS, PROTOCOLS):
        lines = store.of("run", cluster=kind, protocol=protocol, bootstrap=bootstrap)
        if times := [line["seconds"] * 1000 for line in lines]:
            shares = [f"{percentile(times, share):.0f}" for share in (0.5, 0.9, 1.0)]
            in_time = sum(each <= REACH_SECONDS * 1000 for each in times)
            rows.append([kind, protocol, bootstrap, len(times), in_time, *shares])
    heads = ["cluster", "protocol", "bootstrap", "times", "within a second", "p50", "p90", "longest"]
    return f"""# A new group after the controller was killed

{__doc__.partition(chr(10) * 2)[2].rstrip()} {"Reached" if is_reached(store) else "**Not reached**"}. Milliseconds.

{table(heads, rows)}"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--times", type=int, default=20, help="of each kind of cluster and protocol")
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=list(KINDS))
    parser.add_argument("--bootstrap", nargs="+", default=[LEFT], choices=[LEFT, ALL])
