"""A group with a log and a clock that are ours: what is decided is written, and replayed, unless we say otherwise."""

from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from random import Random
from typing import Any

from klamm.coordinator.groups.consumer import ConsumerGroup
from klamm.coordinator.groups.group import Surroundings, TimerName
from klamm.coordinator.records import GroupRecord, decoded, encoded
from klamm.coordinator.settings import GroupSettings
from klamm.coordinator.wishes import HeartbeatReply, HeartbeatWish, Verdict
from klamm.errors import ErrorCode, KafkaError
from klamm.ids import Now, Uuid
from klamm.metadata.buckets import Buckets, BucketsDraft
from klamm.metadata.image import Broker, Image, PartitionState, Topic

GROUP = "readers"
WALL_MS = 1_700_000_000_000


def topic_id(name: str) -> Uuid:
    return blake2b(name.encode(), digest_size=16).digest()


def image_of(
    topics: Mapping[str, int], offset: int = 1, racks: Sequence[str] = (), ids: Mapping[str, Uuid] | None = None
) -> Image:
    """Topics by name with so many partitions; replicas go round the brokers, one in each rack."""
    ids = ids or {name: topic_id(name) for name in topics}
    by_name: BucketsDraft[str, Topic] = BucketsDraft(Buckets())
    names: BucketsDraft[Uuid, str] = BucketsDraft(Buckets())
    for name, partitions in topics.items():
        states = tuple(PartitionState((index % max(len(racks), 1),), (0,)) for index in range(partitions))
        by_name[name] = Topic(name, ids[name], states)
        names[ids[name]] = name
    brokers = {index: Broker(index, 1, bytes(16), rack=rack) for index, rack in enumerate(racks)}
    return Image(offset, 1, by_name.finished(), names.finished(), brokers)


class Bench:
    def __init__(self, topics: Mapping[str, int], settings: GroupSettings | None = None, seed: int = 0) -> None:
        self.passed_ms = 0
        self.surroundings = Surroundings(settings or GroupSettings(), Random(seed), image_of(topics))
        self.group = ConsumerGroup(GROUP, self.surroundings)
        self.group.begin(self.now)
        self.log: list[GroupRecord] = []
        self.append_fails = False

    @property
    def now(self) -> Now:
        return Now(self.passed_ms, WALL_MS + self.passed_ms)

    def done(self, verdict: Verdict) -> Any:
        """Write what was decided and hand back the reply, if there is one. An error that was decided is raised."""
        if self.append_fails and verdict.records:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        self.write(verdict.records)
        if not verdict.response:
            return None
        [answered] = verdict.response
        if isinstance(answered.reply, KafkaError):
            assert not verdict.records, "who is refused changes nothing"
            raise answered.reply
        return answered.reply

    def write(self, records: Iterable[GroupRecord]) -> None:
        for record in records:
            record = through_bytes(record)
            self.log.append(record)
            self.group.replay(record)

    def beat(
        self, member_id: str, epoch: int, owned: "Mapping[str, Iterable[int]] | None" = None, **more: Any
    ) -> HeartbeatReply:
        """A heartbeat; `owned` is by the topics' names."""
        told = None if owned is None else {topic_id(name): frozenset(found) for name, found in owned.items()}
        wish = HeartbeatWish(GROUP, member_id, epoch, owned=told, **more)
        reply = self.done(self.group.heartbeat(wish, "ticket", self.now))
        assert isinstance(reply, HeartbeatReply)
        return reply

    def join(self, member_id: str, *topics: str, **more: Any) -> HeartbeatReply:
        names = more.pop("subscribed_topic_names", list(topics))
        return self.beat(member_id, 0, {}, **{"rebalance_timeout_ms": 60_000, "subscribed_topic_names": names, **more})

    def refused(
        self, member_id: str, epoch: int, owned: "Mapping[str, Iterable[int]] | None" = None, **more: Any
    ) -> ErrorCode:
        before = len(self.log)
        try:
            reply = self.beat(member_id, epoch, owned, **more)
        except KafkaError as error:
            assert len(self.log) == before
            return error.code
        raise AssertionError(f"it was answered {reply}")

    def settle(self, owned: dict[str, dict[str, set[int]]], epochs: dict[str, int], rounds: int = 10) -> None:
        """Members do what they are told, one after the other, until nothing changes."""
        for _ in range(rounds):
            before = len(self.log)
            for member_id in sorted(epochs):
                reply = self.beat(member_id, epochs[member_id], owned[member_id])
                epochs[member_id] = reply.member_epoch
                if reply.assignment is not None:
                    owned[member_id] = by_name(reply.assignment)
            if len(self.log) == before:
                return
        raise AssertionError(f"it does not come to rest: {self.group}")

    def change_topics(self, topics: Mapping[str, int], racks: Sequence[str] = ()) -> None:
        self.surroundings.image = image_of(topics, self.surroundings.image.offset + 1, racks)
        self.group.topics_changed()

    def pass_ms(self, passed_ms: int) -> list[TimerName]:
        """Time goes by, and what is due rings, one after the other."""
        until_ms, rang = self.passed_ms + passed_ms, []
        while (due_ms := self.surroundings.timers.next_due_ms) is not None and due_ms <= until_ms:
            self.passed_ms = max(self.passed_ms, int(due_ms))
            timer = self.surroundings.timers.take_due(self.now)
            assert timer is not None
            rang.append(timer)
            verdict = self.group.rang(timer, self.now)
            assert not verdict.response
            if not self.append_fails:
                self.write(verdict.records)
        self.passed_ms = until_ms
        return rang

    def reloaded(self) -> ConsumerGroup:
        """The group another coordinator would have from the log."""
        group = ConsumerGroup(GROUP, Surroundings(self.surroundings.settings, Random(0), self.surroundings.image))
        for record in self.log:
            group.replay(record)
        return group

    @property
    def state_name(self) -> str:
        return self.group.listed().state


def by_name(partitions: Mapping[Uuid, Iterable[int]], names: Iterable[str] = "abcdefgh") -> dict[str, set[int]]:
    known = {topic_id(name): name for name in names}
    return {known[topic]: set(found) for topic, found in partitions.items()}


def has(reply: HeartbeatReply) -> dict[str, set[int]] | None:
    """What a reply gives, by the topics' names; None: as it was."""
    return None if reply.assignment is None else by_name(reply.assignment)


def through_bytes(record: GroupRecord) -> GroupRecord:
    """As it comes out of the log."""
    back = decoded(*encoded(record))
    assert back == record
    return back


def durable(group: ConsumerGroup) -> dict[str, object]:
    """Everything that must be the same after a failover."""
    return dict(vars(group.state))
