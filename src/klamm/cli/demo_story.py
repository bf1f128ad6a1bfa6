"""The demo, played: every step said, done with real processes, and watched until what it is about has happened.

It looks at the cluster as `klamm up` does, and tells of what happens meanwhile. Whatever way it ends, what it started
is ended; with `--keep` the brokers stay.
"""

import argparse
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from confluent_kafka import KafkaException

from klamm.cli import demo_view
from klamm.cli.demo_reckoning import Outcome, from_tables, from_topic
from klamm.cli.demo_sending import Sending
from klamm.cli.demo_spark import SparkRun, what_is_missing
from klamm.cli.demo_view import Voice
from klamm.cli.tips import directory_option
from klamm.ids import TopicPartition
from klamm.local.agreeing import Wish
from klamm.local.asking import Address, NoAnswer
from klamm.local.cluster import LocalCluster
from klamm.local.happenings import happenings
from klamm.local.look import Look
from klamm.local.looking import Looker
from klamm.local.problems import NoCluster
from klamm.local.record import ClusterRecord
from klamm.local.view import ClusterSeen, UnknownTopic, cluster_seen
from klamm.pipeline.invoice.generator import Recipe
from klamm.pipeline.invoice.sending import IN_SYNC, PARTITIONS, REPLICAS, create_topic
from klamm.pipeline.problems import INSTALL

TOPIC = "invoice"
BROKERS, RACKS = 6, 2
PER_SECOND, PER_SECOND_WITHOUT_SPARK = 500, 2_000
KILL_FROM, KILL_AT_LAST = 0.35, 0.75
"""Of the invoices: then, if Spark has written some of them; and then in any case."""
DEAD_SECONDS, DEAD_SECONDS_WITHOUT_SPARK = 8.0, 4.0
LOOK_SECONDS, QUICK_SECONDS = 0.4, 0.1
PATIENCE_SECONDS = 60.0
SPARK_SECONDS = 900.0
"""On a busy machine Spark takes its time, and says so."""
ANSWER_SECONDS = 10.0
MOST_STARTS = 3


class DemoFailed(Exception):  # noqa: N818
    """What should have happened and did not."""


class Victim(NamedTuple):
    """The broker that is killed, and what it led until then."""

    broker_id: int
    partitions: list[int]

    @property
    def its_partitions(self) -> str:
        return ", ".join(f"P{each}" for each in self.partitions)


class Story:
    def __init__(self, options: argparse.Namespace, directory: Path) -> None:
        self._options, self._directory = options, directory
        self._voice = Voice(to_stderr=options.json, plain=options.plain)
        self._cluster = LocalCluster(directory / "cluster")
        self._sending: Sending | None = None
        self._spark: SparkRun | None = None
        self._last: Look | None = None

    @property
    def seconds(self) -> float:
        return self._voice.seconds

    def play(self) -> Outcome:
        """To its end. DemoFailed, or LocalError, if something did not happen that should have."""
        is_kept = False
        try:
            outcome = self._played()
            is_kept = self._options.keep
            if is_kept:
                self._say_how_to_go_on()
            return outcome
        except (NoAnswer, UnknownTopic, KafkaException) as problem:
            raise DemoFailed(str(problem)) from problem
        finally:
            self._end(is_kept)

    def _played(self) -> Outcome:
        with_spark = self._decided_on_spark()
        record = self._bring_up()
        with Looker(self._cluster) as self._looker:
            self._make_topic(record)
            if with_spark:
                # It takes a while to start, and may do so while people read.
                self._spark = SparkRun(self._directory, record.bootstrap_servers)
            self._show_placement("Where the replicas are, alternating the racks:")
            sending = self._flow(record)
            victim = self._kill()
            self._bring_back(victim)
            self._wait_all_sent(sending)
            return self._reckon(record, sending)

    def _decided_on_spark(self) -> bool:
        self._voice.say("Six brokers, invoices, a power cut in the middle, and everything counted in the end.", "bold")
        if self._options.no_spark:
            return False
        missing = what_is_missing()
        if missing is not None:
            self._voice.say(
                f"{missing} Until then this is the part without Spark: a client reads the invoices back.", "yellow"
            )
        return missing is None

    def _bring_up(self) -> ClusterRecord:
        self._voice.step(f"{BROKERS} brokers on {RACKS} racks, and a witness, so that no rack decides alone")
        began = time.monotonic()
        with self._voice.working("starting"):
            record = self._cluster.up(Wish(BROKERS, RACKS, first_port=0))
        self._voice.to_copy(f"{record.bootstrap_servers}, after {time.monotonic() - began:.1f} s")
        return record

    def _make_topic(self, record: ClusterRecord) -> None:
        self._voice.step(
            f"topic {TOPIC}: {PARTITIONS} partitions, {REPLICAS} replicas each, {IN_SYNC} of them have to be in sync"
        )
        create_topic(record.bootstrap_servers, TOPIC)
        self._until(self._is_healthy, f"the replicas of {TOPIC} are in sync")

    def _show_placement(self, why: str) -> None:
        self._voice.say(why)
        self._voice.show(demo_view.placement(self._seen()))

    def _seen(self) -> ClusterSeen:
        host = self._cluster.record().host
        running = [node for node, state in self._cluster.states() if node.is_broker and state == "running"]
        return cluster_seen([Address(host, node.port) for node in running], ANSWER_SECONDS, [TOPIC])

    def _flow(self, record: ClusterRecord) -> Sending:
        count, spark = self._options.count, self._spark
        began_ms = int(time.time() * 1_000) - count * Recipe(0).step_ms
        recipe = Recipe(self._options.seed, count, began_ms, huge=0)
        per_second = PER_SECOND
        if spark is None:
            # Nobody sorts out what is malformed or comes twice: what is read back has to be what was sent.
            recipe = replace(recipe, late=0, malformed=0, copied=0)
            per_second = PER_SECOND_WITHOUT_SPARK
        into = "; some come twice, and Spark makes tables of them" if spark is not None else ""
        self._voice.step(f"{count:,} invoices from the tills of 64 stores, acks=all, {per_second:,} a second{into}")
        self._sending = sending = Sending(record.bootstrap_servers, TOPIC, recipe, per_second)

        def is_time_to_kill() -> bool:
            share = sending.acknowledged / count
            return share >= KILL_AT_LAST or (share >= KILL_FROM and (spark is None or spark.rows > 0))

        self._until(is_time_to_kill, "invoices are acknowledged", seconds=PATIENCE_SECONDS + count / per_second)
        return sending

    def _kill(self) -> Victim:
        look = self._looked()
        leader = next(each.leader for each in look.own if each.topic == TOPIC and each.partition == 0)
        its_own = [each.partition for each in look.own if each.topic == TOPIC and each.leader == leader]
        victim = Victim(leader, its_own)
        self._voice.step(f"kill -9 to broker {victim.broker_id}, in the middle of it; it leads {victim.its_partitions}")
        self._cluster.kill([victim.broker_id])
        began = time.monotonic()
        while not all(each.leader not in (victim.broker_id, -1) for each in self._seen().partitions):
            if time.monotonic() - began > PATIENCE_SECONDS:
                raise DemoFailed(f"nobody leads {victim.its_partitions} after {PATIENCE_SECONDS:.0f} s")
        spent_ms = 1000 * (time.monotonic() - began)
        self._looked()
        self._voice.say(f"Every partition has a leader again, {spent_ms:.0f} ms after the broker was gone.")
        self._show_placement("Who leads now:")
        dead_until = began + (DEAD_SECONDS if self._spark is not None else DEAD_SECONDS_WITHOUT_SPARK)
        self._until(lambda: time.monotonic() > dead_until, "time passes")
        return victim

    def _bring_back(self, victim: Victim) -> None:
        broker_id = victim.broker_id
        self._voice.step(f"broker {broker_id} starts again: it cuts off what was never committed, and catches up")
        began = time.monotonic()
        with self._voice.working("starting"):
            self._cluster.start([broker_id])
        self._until(self._is_healthy, f"broker {broker_id} is in sync", QUICK_SECONDS)
        self._voice.say(f"Everything is in sync again, {time.monotonic() - began:.1f} s after its start.")
        self._until(lambda: self._leads_again(victim), f"broker {broker_id} leads again", QUICK_SECONDS)

    def _leads_again(self, victim: Victim) -> bool:
        """A leader that was preferred gets back what it led."""
        look = self._last
        assert look is not None, "one looks first"
        return all(
            look.partitions[TopicPartition(TOPIC, each)].leader == victim.broker_id for each in victim.partitions
        )

    def _wait_all_sent(self, sending: Sending) -> None:
        spark = self._spark
        self._voice.step("the rest of the invoices" + (", and what Spark still has to do" if spark is not None else ""))
        patience = PATIENCE_SECONDS + sending.count / PER_SECOND
        self._until(lambda: sending.is_over, "all invoices are acknowledged", seconds=patience)
        if spark is None:
            return
        starts = 1
        self._until(
            lambda: spark.is_over or spark.records >= sending.records, "Spark has written all", seconds=SPARK_SECONDS
        )
        while spark.is_over and spark.records < sending.records and spark.code != 0:
            if starts == MOST_STARTS:
                raise DemoFailed(f"the pipeline ended with {spark.code}:\n{spark.last_words}")
            starts += 1
            self._voice.happened(
                f"the pipeline ended ({spark.code}); it is started again, and goes on from where it was"
            )
            spark.drain()
            self._until(lambda: spark.is_over, "Spark has written all", seconds=SPARK_SECONDS)
        self._voice.say(f"All {sending.records:,} records are in the tables.")

    def _reckon(self, record: ClusterRecord, sending: Sending) -> Outcome:
        self._voice.step("the reckoning")
        with self._voice.working("counting"):
            if self._spark is not None:
                self._spark.ask_to_stop()
                outcome = from_tables(sending.ledger, sending.acknowledged, self._spark.tables, sending.problems)
            else:
                servers = record.bootstrap_servers
                outcome = from_topic(sending.ledger, sending.acknowledged, servers, TOPIC, sending.problems)
        self._voice.show(demo_view.reckoned(outcome))
        for problem in (*outcome.problems, *outcome.differences):
            self._voice.say(problem, "red")
        self._voice.say()
        self._voice.show(demo_view.revenue(outcome))
        self._voice.say()
        if outcome.is_right:
            self._voice.say(f"Nothing lost, nothing doubled, right to the cent. {self.seconds:.0f} s.", "bold green")
        else:
            self._voice.say("This must not happen. Please tell us.", "bold red")
        if self._spark is None and not self._options.no_spark:
            self._voice.say(f"With Spark there is more to see: {INSTALL}", "yellow")
        return outcome

    def _say_how_to_go_on(self) -> None:
        at = directory_option(self._cluster.directory)
        self._voice.step("it is yours now")
        self._voice.to_copy(f"klamm status --watch{at}")
        self._voice.to_copy(f"klamm node kill 1{at}")
        if self._spark is not None:
            self._voice.to_copy(f"the pipeline: {self._spark.file}; its tables (Delta): {self._spark.tables}")
        self._voice.to_copy(f"klamm down{at} && rm -r {self._directory}     when you are done")

    # Watching.

    def _until(
        self,
        holds: Callable[[], bool],
        what: str,
        pause_seconds: float = LOOK_SECONDS,
        seconds: float = PATIENCE_SECONDS,
    ) -> None:
        deadline = time.monotonic() + seconds
        with self._voice.working(what):
            while True:
                self._looked()
                if holds():
                    return
                if self._sending is not None and self._sending.problems:
                    raise DemoFailed(f"invoices could not be sent: {self._sending.problems[0]}")
                if time.monotonic() > deadline:
                    raise DemoFailed(f"not within {seconds:.0f} s: {what}")
                self._voice.progress(self._how_far())
                time.sleep(pause_seconds)

    def _looked(self) -> Look:
        look = self._looker.look()
        for what in happenings(self._last, look) if self._last is not None else ():
            if not what.startswith(f"topic {TOPIC} is new"):
                self._voice.happened(what)
        self._last = look
        return look

    def _is_healthy(self) -> bool:
        look = self._last
        assert look is not None, "one looks first"
        return bool(look.own) and not any(each.is_under_replicated for each in look.partitions.values())

    def _how_far(self) -> str:
        parts = []
        if self._sending is not None:
            parts.append(self._sending.how_far)
        if self._spark is not None:
            parts.append(self._spark.how_far)
        if self._last is not None and self._last.own:
            in_sync = sum(len(each.in_sync) for each in self._last.own)
            parts.append(f"{in_sync} of {sum(len(each.replicas) for each in self._last.own)} replicas in sync")
        return "   ".join(parts)

    def _end(self, brokers_stay: bool) -> None:
        """Whatever was started. Who is impatient may say so twice."""
        if self._sending is not None:
            self._sending.stop()
        try:
            if self._spark is not None:
                self._spark.end()
            if not brokers_stay:
                with suppress(NoCluster):
                    self._cluster.down()
        except KeyboardInterrupt:
            with suppress(NoCluster):
                self._cluster.kill(node.node_id for node in self._cluster.record().nodes)
            raise
