"""Acceptance 4: how long nobody can write after kill -9 of a leader, or create a topic after that of the controller.

The client adds nothing of its own: it holds connections to the survivors, asks one of them every two milliseconds who
leads, and writes with acks=all as soon as somebody does. What is measured is the time from the signal to the answer
that says it is safe. The leader may be the active controller at the same time; that case is also shown on its own. The
same is measured as a user of confluent-kafka feels it, with the back-off that library comes with, and beside Apache
Kafka with default settings. To reach: p99 at most 1.5 s.
"""

import argparse
import time
from collections.abc import Callable

from confluent_kafka import KafkaError, Message, Producer

from klamm.errors import ErrorCode
from proof import raw
from proof.cluster import Klamm, ProofError
from proof.kafka import Kafka
from proof.raw import Line
from proof.store import Line as StoredLine
from proof.store import Store, percentile, table

TOPIC, PARTITIONS = "failover", 6
LOOK_AGAIN_SECONDS = 0.002
GIVE_UP_SECONDS = 60.0
ANSWER_SECONDS = 5.0
REST_SECONDS = 0.6
"""A broker that has just registered is not believed to be dead at once; nobody is killed that young here."""
REACH_SECONDS = 1.5

System = Klamm | Kafka


def run(options: argparse.Namespace) -> int:
    store = Store(options.results, "failover", options.fresh)
    counts = {"klamm": options.times, "kafka": options.kafka_times}
    for name in options.systems:
        missing = {
            what: counts[name] - len(store.of("failover", system=name, what=what)) for what in options.what or MEASURED
        }
        if any(count > 0 for count in missing.values()):
            with Klamm(keep=options.keep) if name == "klamm" else Kafka() as system:
                _measure(system, store, missing)
    store.write_summary(summary(store))
    return 0 if reached(store) else 1


def _measure(system: System, store: Store, missing: dict[str, int]) -> None:
    system.create(TOPIC, PARTITIONS, 3, min_insync_replicas="2")
    time.sleep(REST_SECONDS)
    for what, count in missing.items():
        for _ in range(count):
            seconds, victim, was_controller = MEASURED[what](system)
            line = store.append(
                "failover",
                system=system.name,
                what=what,
                seconds=round(seconds, 4),
                victim=victim,
                was_controller=was_controller,
            )
            also = " (the controller)" if was_controller else ""
            print(f"{system.name} {what}: node {victim}{also} {line['seconds'] * 1000:.0f} ms", flush=True)
            system.start([victim])
            system.wait_full_isr(TOPIC, 120)
            time.sleep(REST_SECONDS)


def leader_raw(system: System) -> tuple[float, int, bool]:
    victim = _leader(system)
    was_controller = controller(system) == victim
    with _Survivors(system, victim) as survivors:
        _check_writes(system, victim)
        began = time.monotonic()
        system.kill([victim])
        survivors.until(lambda line: _write(survivors, line, victim))
        return time.monotonic() - began, victim, was_controller


def leader_library(system: System) -> tuple[float, int, bool]:
    """The next record of a producer that was writing to it all the time, with the library's own settings."""
    answers: list[KafkaError | None] = []

    def delivered(error: KafkaError | None, _: Message) -> None:
        answers.append(error)

    producer = Producer({"bootstrap.servers": system.servers, "log_level": 0})
    victim = _leader(system)
    for _ in range(20):
        producer.produce(TOPIC, b"before", partition=0, on_delivery=delivered)
        producer.flush(GIVE_UP_SECONDS)
    was_controller = controller(system) == victim
    began = time.monotonic()
    system.kill([victim])
    producer.produce(TOPIC, b"after", partition=0, on_delivery=delivered)
    producer.flush(GIVE_UP_SECONDS)
    seconds = time.monotonic() - began
    if len(answers) != 21 or any(answers):
        raise ProofError(f"the library gave up: {answers[-1] if answers else 'no answer'}")
    return seconds, victim, was_controller


def controller_raw(system: System) -> tuple[float, int, bool]:
    victim = controller(system)
    topic = f"made-after-{time.monotonic_ns()}"

    def create(line: Line) -> bool:
        code = raw.create_topic(line, topic, 1, 2, timeout_ms=500)
        # Asked before, and decided by a controller that could not answer any more.
        return code in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)

    with _Survivors(system, victim) as survivors:
        began = time.monotonic()
        system.kill([victim])
        survivors.until(create)
        return time.monotonic() - began, victim, True


MEASURED: dict[str, Callable[[System], tuple[float, int, bool]]] = {
    "leader": leader_raw,
    "leader, confluent-kafka": leader_library,
    "controller": controller_raw,
}


class _Survivors:
    """Connections to all but the victim, opened before it dies, asked in turn."""

    def __init__(self, system: System, victim: int) -> None:
        self._system = system
        self.lines = {each: system.line(each, ANSWER_SECONDS) for each in system.running if each != victim}

    def __enter__(self) -> "_Survivors":
        return self

    def __exit__(self, *_: object) -> None:
        for line in self.lines.values():
            line.close()

    def until(self, done: Callable[[Line], bool]) -> None:
        deadline = time.monotonic() + GIVE_UP_SECONDS
        while True:
            for each, line in list(self.lines.items()):
                try:
                    if done(line):
                        return
                except OSError:
                    # As a client would: the connection ended without an answer, so another is opened.
                    line.close()
                    self.lines[each] = self._system.line(each, ANSWER_SECONDS)
                time.sleep(LOOK_AGAIN_SECONDS)
            if time.monotonic() > deadline:
                raise ProofError(f"nothing after {GIVE_UP_SECONDS:.0f} s")


def _write(survivors: _Survivors, line: Line, victim: int) -> bool:
    leader = raw.metadata(line, TOPIC).partitions[0].leader_id
    if leader in (victim, -1):
        return False
    return raw.produce(survivors.lines[leader], TOPIC, 0, b"after") == ErrorCode.NONE


def _check_writes(system: System, leader: int) -> None:
    with system.line(leader) as line:
        code = raw.produce(line, TOPIC, 0, b"before", timeout_ms=10_000)
    if code:
        raise ProofError(f"not even before the kill: {ErrorCode(code).name}")


def _leader(system: System) -> int:
    return system.leader(TOPIC, 0)


def controller(system: System) -> int:
    """The active one, as the quorum tells; it may take a moment until there is one."""
    found: list[int] = []

    def known() -> bool:
        with system.line() as line:
            found.append(int(raw.quorum(line).leader_id))
        return found[-1] >= 0

    system.wait_until(known, "there is no controller")
    return found[-1]


def reached(store: Store) -> bool:
    return all(
        percentile([line["seconds"] for line in lines], 0.99) <= REACH_SECONDS
        for what in ("leader", "controller")
        if (lines := store.of("failover", system="klamm", what=what))
    )


def summary(store: Store) -> str:
    rows = []
    for what in MEASURED:
        for system in ("klamm", "kafka"):
            lines = store.of("failover", system=system, what=what)
            rows += _rows(what, system, lines)
            if what != "controller":
                rows += _rows(f"{what}: was controller too", system, [each for each in lines if each["was_controller"]])
    heads = ["killed, client", "system", "times", "p50", "p90", "p99", "longest"]
    verdict = "reached" if reached(store) else "**not reached**"
    return f"""# Failover

Three nodes, each broker and controller, default settings; replication 3, min.insync.replicas=2. From kill -9 to the
next acks=all write that is acknowledged, or to the next topic that is created. Milliseconds. To reach: p99 at most
{REACH_SECONDS * 1000:.0f}: {verdict}.

{table(heads, rows)}"""


def _rows(what: str, system: str, lines: list[StoredLine]) -> list[list[object]]:
    if not lines:
        return []
    times = [line["seconds"] * 1000 for line in lines]
    shares = [f"{percentile(times, share):.0f}" for share in (0.5, 0.9, 0.99, 1.0)]
    return [[what, system, len(times), *shares]]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--times", type=int, default=100, help="of each, on Klamm")
    parser.add_argument("--kafka-times", type=int, default=10, help="of each, on Apache Kafka")
    parser.add_argument("--systems", nargs="+", default=["klamm", "kafka"], choices=["klamm", "kafka"])
    parser.add_argument("--what", nargs="+", default=[], choices=list(MEASURED))
