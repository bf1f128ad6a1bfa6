"""What clients do in a run: producers and consumers of some topics (`topics.py`), and somebody who runs the cluster.

Clients of `again` know topics by their ids; the others speak old and new versions of the protocol.
"""

from collections import Counter
from collections.abc import Callable
from typing import Any

from klamm.sim.checkers.beginnings import BeginningChecker
from klamm.sim.checkers.fencing import Impostor
from klamm.sim.clients.admin import Admin
from klamm.sim.clients.client import Client, Desk
from klamm.sim.clients.consumer import Consumer, ConsumerSettings
from klamm.sim.clients.history import History
from klamm.sim.clients.producer import Producer, ProducerSettings
from klamm.sim.clients.stranger import Stranger
from klamm.sim.cluster import Cluster
from klamm.sim.groups import Groups
from klamm.sim.plan import Plan, rack_names
from klamm.sim.topics import AGAIN, FLUSH_MS, OF_GROUPS, PASSING, QUIET, TopicPlan, topics_of
from klamm.sim.trimming import Trimming
from klamm.sim.voters import VoterChanges
from klamm.sim.world import World

FIRST_CLIENT_PORT = 20_000
ALL = -1
FACTOR = 3
MOST_IN_THE_CROWD = 100
FIRST_VERSION_BY_ID = 13
PRODUCER_VERSIONS = (3, 7, 9, 11, 13)
CONSUMER_VERSIONS = (4, 7, 11, 12, 13, 15, 17)


class Workload:
    def __init__(
        self, world: World, cluster: Cluster, plan: Plan, history: History, beginnings: BeginningChecker
    ) -> None:
        self._world = world
        self._cluster = cluster
        self._plan = plan
        self._history = history
        self._topics = topics_of(plan.topics, plan.flush_ms)
        self._trimming = Trimming(world, history, beginnings)
        self._chance = world.chance("workload")
        self._ports = FIRST_CLIENT_PORT
        self.done: Counter[str] = Counter()
        """Operations that were said to have been done."""
        self.is_operating = True
        self.admin = Admin(self._desk("admin"))
        self.producers = [self._producer(number) for number in range(plan.producers)]
        self.consumers = [self._consumer(number) for number in range(plan.consumers)]
        self.impostor = Impostor(self._desk("impostor"))
        self.stranger = Stranger(self._desk("stranger")) if plan.stranger_ms else None
        self._voters = VoterChanges(cluster, self.admin, world.chance("voters"))
        self._partitions = {topic.name: topic.partitions for topic in (*self._topics, OF_GROUPS)}
        self._moved = ("steady", "flushed", *([OF_GROUPS.name] if plan.groups else []))
        """Topics whose replicas move, and whose leaders are chosen anew."""
        self.groups = Groups(world, cluster, plan.groups, history, self._desk) if plan.groups else None

    @property
    def clients(self) -> list[Client]:
        members = self.groups.clients if self.groups is not None else []
        strangers = [] if self.stranger is None else [self.stranger]
        return [self.admin, *self.producers, *self.consumers, self.impostor, *strangers, *members]

    def begin(self) -> None:
        for topic in self._topics:
            self._create(topic)
        for producer in self.producers:
            producer.begin()
        for consumer in self.consumers:
            consumer.begin()
        if self.groups is not None:
            self.groups.begin()
        # (A topic that is created again begins again with the first epoch.)
        self.impostor.watch(self._cluster, ["steady", "flushed"])
        if self.stranger is not None:
            self.stranger.forge(self._cluster, self._plan.stranger_ms)
        if self._plan.operations:
            self._world.after(self._chance.expovariate(1.0 / self._plan.operation_ms), self._operate)

    def stop_writing(self) -> None:
        self.is_operating = False
        self.impostor.end()
        if self.stranger is not None:
            self.stranger.end()
        for producer in self.producers:
            producer.stop_writing()

    def reader(self) -> Consumer:
        """One more, who reads everything from the beginning."""
        settings = ConsumerSettings(tuple(topic.name for topic in self._topics), version=13, has_session=True)
        reader = Consumer(self._desk("reader"), settings, self._history)
        reader.begin()
        return reader

    def _desk(self, name: str) -> Desk:
        self._ports += 1
        return Desk(self._world, self._cluster.network, name, self._ports, self._cluster.addresses)

    def _producer(self, number: int) -> Producer:
        is_idempotent = self._chance.random() < 0.6
        acks = ALL if is_idempotent else self._chance.choice((0, 1, ALL))
        version = self._chance.choice(PRODUCER_VERSIONS)
        settings = ProducerSettings(
            topics=self._names(version),
            acks=acks,
            is_idempotent=is_idempotent,
            most_in_flight=self._chance.choice((1, 5)),
            version=version,
            pause_ms=self._chance.choice((15.0, 40.0, 100.0)),
        )
        return Producer(self._desk(f"producer-{number}"), settings, self._history)

    def _consumer(self, number: int) -> Consumer:
        version = self._chance.choice(CONSUMER_VERSIONS)
        names = (*self._names(version), QUIET.name)
        has_session = version >= 7 and self._chance.random() < 0.7
        rack = self._world.chance(f"rack of consumer-{number}").choice(("", *rack_names(self._plan.racks)))
        settings = ConsumerSettings(names, version=version, has_session=has_session, rack=rack)
        return Consumer(self._desk(f"consumer-{number}"), settings, self._history)

    def _names(self, version: int) -> tuple[str, ...]:
        """What a client that speaks this version of Fetch or Produce uses."""
        left_out = {QUIET.name} if version >= FIRST_VERSION_BY_ID else {QUIET.name, AGAIN.name}
        return tuple(each.name for each in self._topics if each.name not in left_out)

    # What the operator does.

    def _create(self, topic: TopicPlan) -> None:
        def heard(answer: Any) -> None:
            # Asked again until it is there, or was there.
            if answer is None or answer.topics[0].error_code not in (0, 36):
                self.admin.later(self._chance.uniform(100.0, 300.0), lambda: self._create(topic))

        self.admin.create(topic.name, topic.partitions, FACTOR, topic.settings, heard)

    def _operate(self) -> None:
        if not self.is_operating:
            return
        name = self._chance.choice(self._plan.operations)

        def then(answer: Any) -> None:
            if answer is not None:
                self.done[name] += 1
            self._world.after(self._chance.expovariate(1.0 / self._plan.operation_ms), self._operate)

        operations: dict[str, Callable[[Callable[[Any], None]], None]] = {
            "recreate": self._recreate,
            "add partition": self._add_partition,
            "reassign": self._reassign,
            "elect preferred": self._elect_preferred,
            "configure": self._configure,
            "change voters": self._voters.change,
            "elect unclean": lambda then: self.admin.elect_unclean("rescued", [0], then),
            "change the crowd": self._change_the_crowd,
            "delete records": lambda then: self._trimming.delete_records(self.admin, then),
        }
        self._world.tell(f"admin: {name}")
        operations[name](then)

    def _recreate(self, then: Callable[[Any], None]) -> None:
        def deleted(answer: Any) -> None:
            self._create(next(topic for topic in self._topics if topic.name == AGAIN.name))
            then(answer)

        self.admin.delete(AGAIN.name, deleted)

    def _add_partition(self, then: Callable[[Any], None]) -> None:
        count = min(self._partitions["steady"] + 1, 6)
        self._partitions["steady"] = count
        self.admin.add_partitions("steady", count, then)

    def _reassign(self, then: Callable[[Any], None]) -> None:
        topic = self._chance.choice(self._moved)
        index = self._chance.randrange(self._partitions[topic])
        brokers = sorted(self._cluster.machines)
        replicas = None if self._chance.random() < 0.2 else self._chance.sample(brokers, FACTOR)
        self.admin.reassign(topic, index, replicas, then)

    def _elect_preferred(self, then: Callable[[Any], None]) -> None:
        topic = self._chance.choice(self._moved)
        self.admin.elect_preferred(topic, list(range(self._partitions[topic])), then)

    def _change_the_crowd(self, then: Callable[[Any], None]) -> None:
        """Something that concerns all of its partitions, or all there are."""
        name, count = "crowd", self._partitions["crowd"]
        brokers = sorted(self._cluster.machines)
        match self._chance.randrange(6):
            case 0:
                self.admin.reassign_all(name, [self._chance.sample(brokers, FACTOR) for _ in range(count)], then)
            case 1:
                self.admin.reassign_all(name, [None] * count, then)
            case 2:
                self.admin.elect_preferred_everywhere(then)
            case 3:
                self._partitions[name] = min(count + 20, MOST_IN_THE_CROWD)
                self.admin.add_partitions(name, self._partitions[name], then)
            case 4:
                self.admin.configure_brokers("log.segment.bytes", self._chance.choice(("1048576", "4194304")), then)
            case _:
                self._pass_by(then)

    def _pass_by(self, then: Callable[[Any], None]) -> None:
        """Many topics come and go."""
        names = [f"{PASSING}{number}" for number in range(self._chance.randint(5, 20))]
        self.admin.create_many(
            names, self._chance.randint(1, 4), FACTOR, lambda answer: self.admin.delete_many(names, then)
        )

    def _configure(self, then: Callable[[Any], None]) -> None:
        if self._chance.random() < 0.5:
            value = self._chance.choice(("1048576", "2097152", "4194304"))
            self.admin.configure("steady", "segment.bytes", value, then)
        else:
            topic = self._chance.choice(("steady", "flushed", QUIET.name))
            self.admin.configure(topic, "flush.ms", self._chance.choice(FLUSH_MS), then)
