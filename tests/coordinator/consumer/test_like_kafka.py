"""The same requests to Kafka and to our group, and the answers are the same: members of both protocols come and go,
say what they own or nothing, miss replies, come with wrong epochs, and commit.

The assignor is `range`, which leaves nothing to the order of a hash table. What is left out: time, because Kafka's is
its own; patterns, which Kafka resolves a moment later; and two things that are better here. A static member that did
not hear that it has joined may say so again; and classic members that are left alone, where downgrades are switched
off, are told to rejoin. And nobody subscribes to nothing: Kafka may assign it something nevertheless.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest

from klamm.coordinator.groups import classic_members
from klamm.coordinator.groups.consumer import ConsumerGroup
from klamm.coordinator.groups.group import Surroundings
from klamm.coordinator.groups.subscription import Subscription, read_assignment, subscription_bytes
from klamm.coordinator.settings import UPGRADE, GroupSettings
from klamm.coordinator.wishes import (
    BeatWish,
    CommitWish,
    HeartbeatWish,
    JoinWish,
    LeaveWish,
    LeavingMember,
    OffsetsWish,
    OffsetToCommit,
    SyncWish,
    Verdict,
)
from klamm.errors import ErrorCode, KafkaError
from klamm.ids import Now, Uuid
from klamm.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from klamm.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions
from klamm.wire.messages.find_coordinator import FindCoordinatorRequest
from klamm.wire.messages.heartbeat import HeartbeatRequest
from klamm.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from klamm.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from klamm.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from klamm.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from klamm.wire.messages.sync_group import SyncGroupRequest
from tests.coordinator.consumer.bench import image_of
from tests.harness.kafka_node import KafkaNode, skip_without_kafka
from tests.harness.raw import Raw
from tests.harness.requests import create
from tests.harness.waiting import wait_until

pytestmark = pytest.mark.compat

TOPICS = {"a": 3, "b": 4, "c": 2}
SETTINGS = {
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "1",
    "group.consumer.assignors": "range",
    "group.consumer.assignment.interval.ms": "0",
    "group.consumer.migration.policy": "upgrade",
}
OURS = GroupSettings(assignors=("range",), migrations=(UPGRADE,))
NOW = Now(0, 1_700_000_000_000)
Owned = Mapping[str, set[int]]


class Kafka:
    """Kafka with a coordinator that knows the topics."""

    def __init__(self, raw: Raw) -> None:
        self.raw = raw
        find = FindCoordinatorRequest(key_type=0, coordinator_keys=["g"])
        wait_until(lambda: raw.call("FindCoordinator", 4, find).coordinators[0].error_code == 0, "a coordinator")
        self.ids = {name: create(raw, name, partitions=size) for name, size in TOPICS.items()}
        wait_until(self.knows_topics, "the coordinator knows the topics")

    def knows_topics(self) -> bool:
        """Which it hears of a moment later than the broker."""
        wish = ConsumerGroupHeartbeatRequest(
            "scouts", "scout", 0, rebalance_timeout_ms=1, subscribed_topic_names=list(TOPICS), topic_partitions=[]
        )
        assignment = self.raw.call("ConsumerGroupHeartbeat", 1, wish).assignment
        return assignment is not None and len(assignment.topic_partitions) == len(TOPICS)


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    skip_without_kafka()
    node = KafkaNode(Path(tmp_path_factory.mktemp("kafka")), SETTINGS)
    node.start()
    try:
        with Raw(node.port, client_id="c") as raw:
            yield Kafka(raw)
    finally:
        node.kill9()


class Twins:
    """Asks both, and compares. What it hands back is the answer of either."""

    def __init__(self, kafka: Kafka, group_id: str) -> None:
        self.raw = kafka.raw
        self.ids = kafka.ids
        self.names = {topic_id: name for name, topic_id in kafka.ids.items()}
        self.group_id = group_id
        self.group = ConsumerGroup(group_id, Surroundings(OURS, Random(0), image_of(TOPICS, ids=kafka.ids)))
        self.group.begin(NOW)

    def heartbeat(self, member_id: str, epoch: int, owned: Owned | None, **more: Any) -> "tuple[Any, ...]":
        told = None if owned is None else {self.ids[name]: frozenset(found) for name, found in owned.items()}
        listed = None if told is None else [TopicPartitions(topic, sorted(told[topic])) for topic in sorted(told)]
        request = ConsumerGroupHeartbeatRequest(self.group_id, member_id, epoch, topic_partitions=listed, **more)
        theirs = self.raw.call("ConsumerGroupHeartbeat", 1, request)
        wish = HeartbeatWish(
            self.group_id, member_id, epoch, owned=told, client_id="c", client_host="/127.0.0.1", **more
        )
        ours = self.decided(self.group.heartbeat(wish, "ticket", NOW))
        if isinstance(ours, ErrorCode):
            assert ours == theirs.error_code or theirs.error_code == ErrorCode.GROUP_ID_NOT_FOUND
            return (ours,)
        assigned = None if theirs.assignment is None else self.listed(theirs.assignment)
        assert (theirs.error_code, theirs.error_message) == (0, None)
        assert (ours.member_id, ours.member_epoch) == (theirs.member_id, theirs.member_epoch)
        assert self.named(ours.assignment) == assigned
        return ErrorCode.NONE, ours.member_epoch, assigned

    def join(self, member_id: str, instance_id: str | None, metadata: bytes) -> Any:
        protocols = [JoinGroupRequestProtocol("range", metadata)]
        request = JoinGroupRequest(self.group_id, 45_000, 60_000, member_id, instance_id, "consumer", protocols)
        theirs = self.raw.call("JoinGroup", 9, request)
        wish = JoinWish(
            self.group_id, member_id, instance_id, "c", "/127.0.0.1", 45_000, 60_000, "consumer", [("range", metadata)]
        )
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(classic_members, "uuid_text", lambda _: theirs.member_id)
            ours = self.decided(self.group.join(wish, "ticket", NOW))
        if isinstance(ours, ErrorCode):
            assert ours == theirs.error_code
            return ours
        assert (theirs.error_code, theirs.member_id, theirs.generation_id) == (0, ours.member_id, ours.generation)
        assert (theirs.protocol_type, theirs.protocol_name) == (ours.protocol_type, ours.protocol_name)
        assert (theirs.leader, theirs.members, ours.members) == (ours.leader, [], ())
        return ours

    def sync(self, member_id: str, instance_id: str | None, generation: int) -> "dict[str, set[int]] | ErrorCode":
        request = SyncGroupRequest(self.group_id, generation, member_id, instance_id, "consumer", "range", [])
        theirs = self.raw.call("SyncGroup", 5, request)
        wish = SyncWish(self.group_id, generation, member_id, instance_id, "consumer", "range", {})
        ours = self.decided(self.group.sync(wish, "ticket", NOW))
        if isinstance(ours, ErrorCode):
            assert ours == theirs.error_code
            return ours
        given = read_assignment(theirs.assignment)
        assert read_assignment(ours.assignment) == given
        return {name: set(found) for name, found in given.partitions.items()}

    def beat(self, member_id: str, instance_id: str | None, generation: int) -> ErrorCode:
        request = HeartbeatRequest(self.group_id, generation, member_id, instance_id)
        theirs = self.raw.call("Heartbeat", 4, request)
        ours = self.decided(self.group.beat(BeatWish(self.group_id, generation, member_id, instance_id), "t", NOW))
        assert isinstance(ours, ErrorCode)
        if not all(member.is_classic for member in self.group.state.members.values()):
            assert ours == theirs.error_code
        return ours

    def leave(self, member_id: str, instance_id: str | None) -> None:
        request = LeaveGroupRequest(self.group_id, members=[MemberIdentity(member_id, instance_id, None)])
        theirs = self.raw.call("LeaveGroup", 5, request)
        members = [LeavingMember(member_id, instance_id)]
        [ours] = self.decided(self.group.leave(LeaveWish(self.group_id, members), "ticket", NOW))
        [found] = theirs.members
        assert (found.member_id, found.group_instance_id, found.error_code) == tuple(ours)

    def commit(self, member_id: str, epoch: int, topic: str, partition: int) -> None:
        partitions = [OffsetCommitRequestPartition(partition, 5, -1, "")]
        topics = [OffsetCommitRequestTopic(name=topic, partitions=partitions)]
        theirs = self.raw.call("OffsetCommit", 9, OffsetCommitRequest(self.group_id, epoch, member_id, topics=topics))
        wish = CommitWish(
            self.group_id, epoch, member_id, None, [OffsetToCommit(topic, partition, 5)], knows_epochs=True
        )
        assert theirs.topics[0].partitions[0].error_code == code_of(self.group.check_commit, wish, NOW)

    def read_offsets(self, member_id: str, epoch: int) -> None:
        asked = OffsetFetchRequestGroup(self.group_id, member_id, epoch, topics=None)
        [theirs] = self.raw.call("OffsetFetch", 9, OffsetFetchRequest(groups=[asked])).groups
        assert theirs.error_code == code_of(self.group.check_reading, OffsetsWish(self.group_id, member_id, epoch))

    def describe(self) -> None:
        [theirs] = self.raw.call("ConsumerGroupDescribe", 1, ConsumerGroupDescribeRequest([self.group_id])).groups
        if theirs.error_code == ErrorCode.GROUP_ID_NOT_FOUND:
            return
        ours = self.group.described()
        assert (ours.state, ours.group_epoch, ours.assignment_epoch, ours.assignor) == (
            theirs.group_state,
            theirs.group_epoch,
            theirs.assignment_epoch,
            theirs.assignor_name,
        )
        for ours_of, member in zip(ours.members, sorted(theirs.members, key=lambda each: each.member_id), strict=True):
            assert (ours_of.member_id, ours_of.member_epoch) == (member.member_id, member.member_epoch)
            assert (ours_of.instance_id, not ours_of.is_classic) == (member.instance_id, member.member_type)
            assert sorted(ours_of.subscribed_topic_names) == sorted(member.subscribed_topic_names)
            assert self.named(ours_of.assignment) == self.listed(member.assignment)
            assert self.named(ours_of.target_assignment) == self.listed(member.target_assignment)

    def decided(self, verdict: Verdict) -> Any:
        for record in verdict.records:
            self.group.replay(record)
        [answered] = verdict.response
        return answered.reply.code if isinstance(answered.reply, KafkaError) else answered.reply

    def named(self, partitions: Mapping[Uuid, Any] | None) -> dict[str, set[int]] | None:
        return None if partitions is None else {self.names[topic]: set(found) for topic, found in partitions.items()}

    def listed(self, assignment: Any) -> dict[str, set[int]]:
        return {self.names[found.topic_id]: set(found.partitions) for found in assignment.topic_partitions}


def code_of(check: Any, *arguments: Any) -> ErrorCode:
    try:
        check(*arguments)
    except KafkaError as error:
        return error.code
    return ErrorCode.NONE


class Client:
    """One of the newer protocol."""

    def __init__(self, name: str, random: Random, twins: Twins) -> None:
        self.member_id = name
        self.random = random
        self.twins = twins
        self.instance_id = f"i{random.randint(0, 2)}" if random.random() < 0.4 else None
        self.topics = self.drawn_topics()
        self.forget()

    def forget(self) -> None:
        self.epoch = 0
        self.has: dict[str, set[int]] = {}
        self.should: dict[str, set[int]] = {}
        self.says_everything = True

    def drawn_topics(self) -> list[str]:
        return sorted(self.random.sample(sorted(TOPICS), self.random.randint(1, 3)))

    def act(self) -> None:
        random, chance = self.random, self.random.random()
        if chance < 0.2:
            self.has = self.should
        elif chance < 0.26:
            wrong = random.choice([self.epoch - 1, self.epoch + 1, 1]) or 1
            owned = random.choice([None, {}, self.has])
            self.twins.heartbeat(self.member_id, wrong, owned, instance_id=self.instance_id)
        elif chance < 0.3:
            self.forget()
        elif chance < 0.36:
            self.topics, self.says_everything = self.drawn_topics(), True
        elif chance < 0.45 and not self.twins.group.is_empty:
            topic = random.choice(sorted(TOPICS))
            epoch = max(self.epoch + random.choice([-2, -1, 0, 0, 1]), 0)
            self.twins.commit(self.member_id, epoch, topic, random.randrange(TOPICS[topic]))
            self.twins.read_offsets(self.member_id, epoch)
        elif not self.has_not_heard_that_it_joined:
            self.beat()

    @property
    def has_not_heard_that_it_joined(self) -> bool:
        static = self.twins.group.state.static_member(self.instance_id)
        is_in = static is not None and static.member_id == self.member_id and not static.is_away
        return self.epoch == 0 and is_in

    def beat(self) -> None:
        more: dict[str, Any] = {"instance_id": self.instance_id}
        owned = self.has if self.random.random() < 0.7 else None
        if self.says_everything or self.epoch == 0:
            more |= {"rebalance_timeout_ms": 60_000, "subscribed_topic_names": self.topics}
            owned = self.has
        code, *reply = self.twins.heartbeat(self.member_id, self.epoch, owned, **more)
        if code != ErrorCode.NONE:
            self.forget()
        elif self.random.random() < 0.1:
            self.says_everything = True  # The reply is lost.
        else:
            self.epoch, assigned = reply
            self.should = self.should if assigned is None else assigned
            self.says_everything = False

    def leave(self) -> None:
        for_a_while = self.instance_id is not None and self.random.random() < 0.6
        self.twins.heartbeat(self.member_id, -2 if for_a_while else -1, None, instance_id=self.instance_id)


class ClassicClient(Client):
    def __init__(self, name: str, random: Random, twins: Twins) -> None:
        super().__init__(name, random, twins)
        if self.instance_id is not None:
            self.member_id = ""
        self.phase = "join"

    def act(self) -> None:
        if self.phase == "join" or self.random.random() < 0.05:
            self.join()
        elif self.phase == "sync":
            given = self.twins.sync(self.member_id, self.instance_id, self.epoch)
            if isinstance(given, ErrorCode):
                self.start_anew(given)
            else:
                self.has, self.phase = given, "beat"
        else:
            code = self.twins.beat(self.member_id, self.instance_id, self.epoch)
            if code != ErrorCode.NONE:
                self.start_anew(code)

    def start_anew(self, code: ErrorCode) -> None:
        self.phase = "join"
        if code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID) and self.instance_id is not None:
            self.member_id = ""

    def join(self) -> None:
        if self.twins.group.is_empty:
            return  # It would be a classic group.
        if self.random.random() < 0.3:
            self.has = {}
        if self.random.random() < 0.15:
            self.topics = self.drawn_topics()
        owned = {name: frozenset(found) for name, found in self.has.items()}
        metadata = subscription_bytes(Subscription(frozenset(self.topics), owned=owned, version=1))
        joined = self.twins.join(self.member_id, self.instance_id, metadata)
        if isinstance(joined, ErrorCode):
            self.start_anew(joined)
            return
        self.member_id, self.epoch, self.phase = joined.member_id, joined.generation, "sync"

    def leave(self) -> None:
        if not self.twins.group.is_empty:
            self.twins.leave(self.member_id, self.instance_id)


@pytest.mark.parametrize("seed", range(12))
def test_kafka_answers_the_same(kafka: Kafka, seed: int) -> None:
    random, twins = Random(seed), Twins(kafka, f"group-{seed}")
    clients: list[Client] = []
    for number in range(200):
        chance = random.random()
        if not clients or (chance < 0.1 and len(clients) < 5):
            kind = ClassicClient if random.random() < 0.35 else Client
            clients.append(kind(f"m{number}", random, twins))
        elif chance < 0.14:
            clients.pop(random.randrange(len(clients))).leave()
        else:
            random.choice(clients).act()
        twins.describe()
