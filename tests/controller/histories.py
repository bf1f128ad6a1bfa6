"""Random histories of a cluster, with a witness who knows what every replica really holds.

The witness is naive: a partition has so many committed records, and each replica holds so many of them. A led
partition with enough replicas in sync commits, and all in sync hold it. A replica that crashes may lose its last ones,
one whose disk is replaced loses all. Who becomes leader without being called unclean has to hold everything.
"""

from collections import Counter
from collections.abc import Iterator
from random import Random

from klamm.config import Change, Operation
from klamm.controller.wishes import (
    ConfigChanges,
    ElectionType,
    MorePartitions,
    NewTopic,
    PartitionAlteration,
    Reassignment,
    TopicToDelete,
)
from klamm.errors import ErrorCode
from klamm.ids import NO_BROKER, TopicPartition, Uuid
from klamm.metadata.image import ConfigResource, Image, PartitionState, ResourceType, Topic
from klamm.metadata.records import SAME_LEADER, MetadataRecord, PartitionChangeRecord
from tests.controller.world import World

BROKERS = 6
NAMES = ["invoice", "orders", "stores"]
Key = tuple[Uuid, int]


class History(World):
    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.committed: dict[Key, int] = {}
        self.held: dict[Key, Counter[int]] = {}
        self.lives: Counter[int] = Counter()
        self.seen: Counter[str] = Counter()
        self.under_way = 0
        """How many plans: others are carried out while one pauses."""
        self.distrusted: set[int] = set()
        """Who begins a new life after an unclean end."""
        self.let_in: set[int] = set()
        """Who has just caught up, while the leader asks for it."""
        self.directories = {broker: broker + 1 for broker in range(BROKERS)}
        racks = {broker: f"R{broker % 3}" for broker in range(BROKERS)}
        min_isr = str(self.random.choice([1, 1, 2, 2, 3]))
        super().__init__(BROKERS, racks, min_insync_replicas=min_isr, broker_session_timeout_ms="600000")
        self.allowed_unclean: set[Key] = set()
        """Partitions that a person wants to have a leader whatever it costs."""
        for name in NAMES[:2]:
            self.create(name, self.random.randint(1, 4), self.random.randint(2, 4))

    # Doing.

    def step(self) -> str:
        actions = [
            (self.crash, 3),
            (self.come_back, 8),
            (self.change_disk, 0.7),
            (self.stop, 1.5),
            (self.alter_isr, 10),
            (self.elect, 1.5),
            (self.reassign_one, 2),
            (self.create_or_delete, 1),
            (self.change_settings, 1.5),
            (self.pass_time, 1.5),
            (self.unregister, 0.3),
        ]
        (action,) = self.random.choices([each for each, _ in actions], [weight for _, weight in actions])
        action()
        self.produce()
        return action.__name__

    def interfere(self) -> None:
        """What others do between two pieces of a plan."""
        self.on_pause, on_pause = lambda: None, self.on_pause
        known = self.allowed_unclean, self.let_in
        self.produce()
        self.random.choice([self.alter_isr, self.elect, self.produce])()
        self.produce()
        self.allowed_unclean, self.let_in = known
        self.on_pause = on_pause

    def alive(self) -> list[int]:
        return [broker.broker_id for broker in self.controller.image.brokers.values() if not broker.fenced]

    def places(self) -> Iterator[tuple[Topic, int, PartitionState]]:
        for topic in self.controller.image.topics.values():
            for index, state in enumerate(topic.partitions):
                yield topic, index, state

    def crash(self) -> None:
        count = self.random.choice([1, 1, 1, 2, 3])
        for broker in self.random.sample(self.alive(), min(count, len(self.alive()))):
            self.wait(1_000)
            self.run(self.controller.broker_is_gone(broker, self.now))

    def come_back(self) -> None:
        """A process that was paused goes on; one that died begins a new life, which shows what it lost."""
        broker = self.random.randrange(BROKERS)
        known = self.controller.image.brokers.get(broker)
        how = self.random.choice(["paused", "clean", "clean", "crashed"])
        if known is not None and how == "paused":
            self.beat(broker)
            return
        clean = known is not None and how == "clean"
        if not clean:
            self.lose(broker, everything=False)
        self.begin_life(broker, clean=clean)
        self.maybe_beat(broker)

    def change_disk(self) -> None:
        broker = self.random.randrange(BROKERS)
        if broker in self.alive():
            self.crash_one(broker)
        self.directories[broker] += 20
        self.lose(broker, everything=True)
        self.begin_life(broker, clean=False)
        self.maybe_beat(broker)

    def crash_one(self, broker: int) -> None:
        self.wait(1_000)
        self.run(self.controller.broker_is_gone(broker, self.now))

    def begin_life(self, broker: int, *, clean: bool) -> None:
        self.lives[broker] += 1
        known = self.controller.image.brokers.get(broker)
        previous = known.epoch if clean and known is not None else -1
        self.distrusted = set() if clean else {broker}
        self.register(broker, f"R{broker % 3}", 2 + self.lives[broker], previous, self.directories[broker])
        self.distrusted = set()

    def maybe_beat(self, broker: int) -> None:
        if self.random.random() < 0.9:
            self.beat(broker)

    def lose(self, broker: int, *, everything: bool) -> None:
        for key, held in self.held.items():
            held[broker] = 0 if everything else self.random.randint(held[broker] // 2, held[broker])
            state = self.state_of(key)
            if state is not None and state.isr == (broker,) and not state.elr and state.leader == broker:
                # Nobody else could be asked. What the last one loses is lost.
                self.committed[key] = min(self.committed[key], held[broker])

    def stop(self) -> None:
        for broker in self.random.sample(self.alive(), min(1, len(self.alive()))):
            self.beat(broker, want_shut_down=True)

    def alter_isr(self) -> None:
        for topic, index, state in self.places():
            leader = self.controller.image.brokers.get(state.leader)
            if leader is None or not leader.is_active or self.random.random() < 0.3:
                continue
            wanted = [state.leader, *(each for each in state.replicas if each != state.leader)]
            isr = [wanted[0], *(each for each in wanted[1:] if self.random.random() < 0.8)]
            wish = self.alteration(isr, topic.name, index)
            if self.random.random() < 0.1:
                wish.partition_epoch -= 1
            self.ask(state, wish)

    def ask(self, state: PartitionState, wish: PartitionAlteration) -> ErrorCode:
        decision = self.controller.alter_partition(state.leader, self.broker(state.leader).epoch, [wish])
        error = decision.response[0].error
        if error in (ErrorCode.NONE, ErrorCode.NEW_LEADER_ELECTED):
            held = self.held[wish.topic_id, wish.index]
            for member, _ in wish.isr:
                # It is let in because it has caught up with the leader.
                held[member] = held[state.leader]
                self.let_in.add(member)
        self.run(decision)
        self.let_in = set()
        return error

    def elect(self) -> None:
        kind = self.random.choice(list(ElectionType))
        places = [TopicPartition(topic.name, index) for topic, index, _ in self.places()]
        chosen = None if self.random.random() < 0.2 else self.random.sample(places, len(places) // 2)
        if kind is ElectionType.UNCLEAN:
            self.allowed_unclean = {self.key(each) for each in (places if chosen is None else chosen)}
        self.run(self.controller.elect_leaders(kind, chosen))
        self.allowed_unclean = set()

    def reassign_one(self) -> None:
        for topic, index, _ in self.places():
            if self.random.random() < 0.2:
                brokers = list(self.controller.image.brokers)
                wanted = self.random.sample(brokers, min(len(brokers), self.random.randint(1, 4)))
                wish = Reassignment(TopicPartition(topic.name, index), self.random.choice([None, wanted, wanted]))
                self.run(self.controller.reassign([wish]))

    def create_or_delete(self) -> None:
        name, controller = self.random.choice(NAMES), self.controller
        match self.random.choice(["create", "create", "grow", "delete"]):
            case "create":
                factor = self.random.randint(1, 4)
                self.run(controller.create_topics([NewTopic(name, self.random.randint(1, 4), factor)]))
            case "grow":
                self.run(controller.create_partitions([MorePartitions(name, self.random.randint(1, 6))]))
            case "delete":
                self.run(controller.delete_topics([TopicToDelete(name)]))

    def change_settings(self) -> None:
        name = self.random.choice(["min.insync.replicas", "min.insync.replicas", "unclean.leader.election.enable"])
        value = str(self.random.randint(1, 3)) if name.startswith("min") else self.random.choice(["true", "false"])
        topic = self.random.choice([*NAMES, ""])
        resource = ConfigResource(ResourceType.TOPIC if topic else ResourceType.BROKER, topic)
        self.run(
            self.controller.incremental_alter_configs([ConfigChanges(resource, [Change(name, Operation.SET, value)])])
        )

    def pass_time(self) -> None:
        self.wait(self.random.choice([500, 5_000]))
        self.tick()

    def unregister(self) -> None:
        fenced = [each.broker_id for each in self.controller.image.brokers.values() if each.fenced]
        for broker in fenced[:1]:
            self.run(self.controller.unregister_broker(broker))

    def produce(self) -> None:
        """Leaders with enough in sync commit something, the others take in what is not committed."""
        for topic, index, state in self.places():
            key = (topic.topic_id, index)
            leader = self.controller.image.brokers.get(state.leader)
            if leader is None or not leader.is_active:
                continue
            if self.controller._state.leaving.intersection(state.isr):
                # One of them is dead: it takes nothing in, and what it does not take in is not committed.
                continue
            if len(state.isr) >= min(self.min_isr(topic), len(state.replicas)):
                self.committed[key] += 1
                for member in state.isr:
                    self.held[key][member] = self.committed[key]

    # Knowing.

    def key(self, partition: TopicPartition) -> Key:
        return self.topic(partition.topic).topic_id, partition.partition

    def state_of(self, key: Key) -> PartitionState | None:
        topic = self.controller.image.topic_with_id(key[0])
        return topic.partitions[key[1]] if topic is not None else None

    def setting(self, topic: Topic, name: str) -> str:
        image = self.controller.image
        everybodys = image.config_of(ConfigResource(ResourceType.BROKER, ""))
        return image.topic_config(topic.name).get(name) or everybodys.get(name) or str(self.config.value(name)).lower()

    def min_isr(self, topic: Topic) -> int:
        return int(self.setting(topic, "min.insync.replicas"))

    # Watching: every batch of the log passes here, and how it stands when a plan has been carried out.

    def run(self, decided):  # type: ignore[no-untyped-def]
        self.under_way += 1
        response = super().run(decided)
        self.under_way -= 1
        if not self.under_way:
            for topic, _, state in self.places():
                self.watch_state(topic, state)
        return response

    def commit(self, batch: list[MetadataRecord]) -> None:
        before = self.controller.image
        super().commit(batch)
        self.watch(before, batch)

    def watch(self, before: Image, records: list[MetadataRecord]) -> None:
        times = Counter(
            (each.topic_id, each.partition_id) for each in records if isinstance(each, PartitionChangeRecord)
        )
        named = Counter(
            (each.topic_id, each.partition_id)
            for each in records
            if isinstance(each, PartitionChangeRecord) and each.leader != SAME_LEADER
        )
        for topic, index, state in self.places():
            key = (topic.topic_id, index)
            old_topic = before.topic_with_id(topic.topic_id)
            if old_topic is None or index >= len(old_topic.partitions):
                self.committed[key], self.held[key] = 0, Counter()
                assert state.partition_epoch == state.leader_epoch == 0
            else:
                self.watch_change(key, topic, old_topic.partitions[index], state, times[key], named[key])

    def watch_change(
        self, key: Key, topic: Topic, old: PartitionState, new: PartitionState, times: int, named: int
    ) -> None:
        assert times <= 1, "one decision changes a partition once"
        assert new.partition_epoch == old.partition_epoch + times, "each change is a new partition epoch"
        assert new.leader_epoch == old.leader_epoch + named, "naming a leader begins a leader epoch, nothing else does"
        assert new.leader == old.leader or named, "a new leader is a new leader epoch"
        self.note_seen(old, new)
        if new.leader in (old.leader, NO_BROKER):
            return
        held, committed = self.held[key][new.leader], self.committed[key]
        was_entitled = new.leader in (*old.isr, *old.elr, *self.let_in)
        if held < committed or not was_entitled:
            may_be = (
                key in self.allowed_unclean
                or self.setting(topic, "unclean.leader.election.enable") == "true"
                or (old.last_known_elr == (new.leader,) and not {*old.isr, *old.elr}.difference(self.distrusted))
            )
            assert may_be, f"{new.leader} holds {held} of {committed} and was elected: {old} became {new}"
            assert new.recovering and new.isr == (new.leader,) and new.elr == ()
            self.committed[key] = min(committed, held)
            for other in self.held[key]:
                # They follow, and are cut where it ends.
                self.held[key][other] = min(self.held[key][other], held)

    def note_seen(self, old: PartitionState, new: PartitionState) -> None:
        """Rare things that the histories are for."""
        is_elected = new.leader not in (old.leader, NO_BROKER)
        self.seen["an eligible replica leads"] += is_elected and new.leader in old.elr and not new.recovering
        self.seen["the last known leader leads"] += (
            is_elected and (new.leader,) == old.last_known_elr and new.recovering
        )
        self.seen["an unclean leader"] += is_elected and new.recovering and new.leader not in old.last_known_elr
        self.seen["nobody leads"] += new.leader == NO_BROKER != old.leader
        self.seen["a move is done"] += bool(old.adding) and not new.adding and set(old.adding) <= set(new.replicas)
        self.seen["a move is taken back"] += bool(old.adding) and not set(old.adding) & set(new.replicas)
        self.seen["a replaced disk is known"] += old.directories != new.directories and old.replicas == new.replicas
        self.seen["a leader waits for its first heartbeat"] += (
            new.leader == old.leader != NO_BROKER and not self.broker(new.leader).is_active
        )

    def watch_state(self, topic: Topic, state: PartitionState) -> None:
        brokers = self.controller.image.brokers
        active = {broker.broker_id for broker in brokers.values() if broker.is_active}
        assert set(state.isr) | set(state.elr) | set(state.last_known_elr) <= set(state.replicas), "I12"
        assert not set(state.isr) & set(state.elr) and len(set(state.replicas)) == len(state.replicas)
        assert set(state.adding) | set(state.removing) <= set(state.replicas)
        assert len(state.directories) == len(state.replicas)
        assert not state.elr or len(state.isr) < min(self.min_isr(topic), len(state.replicas))
        assert state.isr or state.elr or state.last_known_elr, "there is a way back"
        if state.leader == NO_BROKER:
            assert not set(state.isr) & active, "who could lead, leads"
            assert state.isr or not self.could_lead(state, active)
        else:
            assert state.leader in state.isr and not state.last_known_elr
            waits_for_it = state.isr == (state.leader,) and not state.elr
            assert state.leader in active or waits_for_it, "a leader is there, or the only one that could be"
            assert set(state.isr) <= active or waits_for_it

    def could_lead(self, state: PartitionState, active: set[int]) -> bool:
        homes = {each.broker_id: each.directories for each in self.controller.image.brokers.values()}
        here = {
            broker
            for broker, directory in zip(state.replicas, state.directories, strict=True)
            if broker in active and (len(state.replicas) == 1 or directory in homes[broker])
        }
        return bool(here & set(state.elr)) or (not state.elr and bool(here & set(state.last_known_elr)))

    # In the end.

    def heal(self) -> None:
        """Everybody comes back, a person helps where nothing else does, everybody catches up, time passes."""
        for broker in range(BROKERS):
            known = self.controller.image.brokers.get(broker)
            if known is None or known.fenced or known.in_controlled_shutdown:
                self.begin_life(broker, clean=known is not None)
                self.beat(broker)
        self.allowed_unclean = {(topic.topic_id, index) for topic, index, _ in self.places()}
        self.run(self.controller.elect_leaders(ElectionType.UNCLEAN, None))
        self.allowed_unclean = set()
        # A reassignment that is completed moves the leader, and the rest of its replicas catch up with that one.
        for _ in range(2):
            for topic, index, state in list(self.places()):
                isr = [state.leader, *(each for each in state.replicas if each != state.leader)]
                error = self.ask(state, self.alteration(isr, topic.name, index))
                assert error in (ErrorCode.NONE, ErrorCode.NEW_LEADER_ELECTED), (error, state)
        self.wait(5_000)
        self.tick()
