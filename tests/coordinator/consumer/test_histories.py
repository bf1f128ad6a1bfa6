"""Whatever members do and whatever is lost: no partition is ever with two of them, and in the end all is assigned.

A partition is a member's from the reply that gave it until the member reports to have it no longer, or is told that it
is out, or its session has been over on its own clock. A reply may be lost, a request may be lost, an append may fail;
the member then says everything again. The clients here do as they are told, some of them late. What one reports it
stands by: if it has not yet taken something that it was told to take, and says so, and hears no answer, it does not
take it before it is told again. (Somebody else may have got it, with KIP-848 as it is.)
"""

import subprocess
import sys
from collections.abc import Mapping
from random import Random

import pytest

from klamm.coordinator.groups.consumer import ConsumerGroup
from klamm.coordinator.groups.member_timers import REVOCATION
from klamm.coordinator.records import GroupRecord
from klamm.coordinator.settings import GroupSettings
from klamm.coordinator.wishes import HeartbeatReply
from klamm.errors import ErrorCode, KafkaError
from tests.coordinator.consumer.bench import GROUP, Bench, by_name, durable

TOPICS = "abc"
WHEN_LEAVING = (
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.FENCED_INSTANCE_ID,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
)
"""What somebody may hear who leaves: it may not have been in, or not any more."""


class Client:
    """One consumer. `has` is what it reads from; `should` what it was told."""

    def __init__(self, name: str, random: Random, instance_id: str | None) -> None:
        self.name = name
        self.member_id = name
        self.instance_id = instance_id
        self.random = random
        self.epoch = 0
        self.has: set[tuple[str, int]] = set()
        self.should: set[tuple[str, int]] = set()
        self.says_everything = True
        self.topics = self.drawn_topics()
        self.regex: str | None = None
        self.heard_ms = 0

    def drawn_topics(self) -> list[str]:
        return sorted(self.random.sample(TOPICS, self.random.randint(1, len(TOPICS))))

    @property
    def owned(self) -> dict[str, set[int]]:
        return of_partitions(self.has)

    def heard(self, reply: HeartbeatReply) -> None:
        self.epoch = reply.member_epoch
        self.says_everything = False
        if reply.assignment is not None:
            named = by_name(reply.assignment)
            self.should = {(topic, partition) for topic, found in named.items() for partition in found}

    def was_not_heard(self, reported: Mapping[str, set[int]] | None) -> None:
        self.says_everything = True
        if reported is not None:
            self.should &= self.has

    def obey(self) -> None:
        self.has = set(self.should)

    def forget_everything(self) -> None:
        self.epoch, self.says_everything = 0, True
        self.has, self.should = set(), set()


def of_partitions(partitions: set[tuple[str, int]]) -> dict[str, set[int]]:
    by_topic: dict[str, set[int]] = {}
    for topic, partition in partitions:
        by_topic.setdefault(topic, set()).add(partition)
    return by_topic


class History:
    def __init__(self, seed: int) -> None:
        self.random = random = Random(seed)
        settings = GroupSettings(assignment_interval_ms=random.choice([0, 0, 3_000]))
        self.sizes = {topic: random.randint(1, 4) for topic in TOPICS}
        self.bench = Bench(self.sizes, settings, seed)
        self.clients: list[Client] = []
        self.named = 0
        self.lossy = True
        self.given: dict[tuple[str, int], Client] = {}
        """Who may be reading from a partition, as replies were sent, be it that they were lost."""

    def run(self, steps: int) -> None:
        for number in range(steps):
            self.step()
            self.check(with_replay=number % 10 == 0)
        self.lossy = False
        self.bench.append_fails = False
        self.rest()

    def step(self) -> None:
        random = self.random
        self.bench.append_fails = random.random() < 0.1
        kind = random.random()
        if not self.clients or (kind < 0.07 and len(self.clients) < 6):
            self.named += 1
            instance_id = f"i{random.randint(0, 2)}" if random.random() < 0.3 else None
            if instance_id not in {client.instance_id for client in self.clients} - {None}:
                self.clients.append(Client(f"m{self.named}", random, instance_id))
        elif kind < 0.1:
            self.leave(random.choice(self.clients))
        elif kind < 0.12:
            topic = random.choice(TOPICS)
            self.sizes[topic] += 1
            self.bench.change_topics(self.sizes)
        elif kind < 0.15:
            client = random.choice(self.clients)
            client.topics = client.drawn_topics()
            client.regex = random.choice([None, "", "a|b", "[bc]"])
            client.says_everything = True
        elif kind < 0.25:
            self.wait(random.choice([100, 5_000, 20_000, 50_000]))
        elif kind < 0.4:
            random.choice(self.clients).obey()
        else:
            self.beat(random.choice(self.clients))

    def beat(self, client: Client) -> None:
        more: dict[str, object] = {"instance_id": client.instance_id}
        owned: Mapping[str, set[int]] | None = client.owned if self.random.random() < 0.8 else None
        if client.says_everything:
            more |= {"rebalance_timeout_ms": 30_000, "subscribed_topic_names": client.topics}
            more |= {"subscribed_topic_regex": client.regex}
            owned = client.owned
        if self.lossy and self.random.random() < 0.05:
            client.was_not_heard(owned)
            return
        try:
            reply = self.bench.beat(client.member_id, client.epoch, owned, **more)
        except KafkaError as error:
            client.was_not_heard(owned)
            self.refused(client, error.code)
            return
        if owned is not None:
            self.released(client, client.has)
        assert reply.assignment is not None or client.epoch != 0
        if reply.assignment is not None:
            self.give(client, by_name(reply.assignment))
        if self.lossy and self.random.random() < 0.1:
            client.was_not_heard(owned)
            return
        client.heard_ms = self.bench.passed_ms
        client.heard(reply)
        self.give(client, of_partitions(client.should))

    def refused(self, client: Client, code: ErrorCode) -> None:
        if code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH):
            client.forget_everything()
            self.released(client, set())
        else:
            assert code in (ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.UNRELEASED_INSTANCE_ID), code

    def leave(self, client: Client) -> None:
        for_a_while = client.instance_id is not None and self.random.random() < 0.7
        if not (for_a_while and self.random.random() < 0.4):
            self.clients.remove(client)  # Else it comes back itself.
        client.forget_everything()
        self.released(client, set())
        try:
            self.bench.beat(client.member_id, -2 if for_a_while else -1, instance_id=client.instance_id)
        except KafkaError as error:
            assert error.code in WHEN_LEAVING, error.code

    def wait(self, passed_ms: int) -> None:
        """Somebody who has not heard anything for long, or took too long to revoke, stops reading by itself."""
        rang = self.bench.pass_ms(passed_ms)
        too_late = {timer.member_id for timer in rang if timer.kind == REVOCATION}
        for client in self.clients:
            if self.bench.passed_ms - client.heard_ms >= 30_000 or client.member_id in too_late:
                client.forget_everything()
                self.released(client, set())

    def give(self, client: Client, assignment: Mapping[str, set[int]]) -> None:
        for topic, found in assignment.items():
            for partition in found:
                holder = self.given.setdefault((topic, partition), client)
                assert holder is client, f"{topic}-{partition} is with {holder.name}, and given to {client.name}"

    def released(self, client: Client, still: set[tuple[str, int]]) -> None:
        for partition in [found for found, holder in self.given.items() if holder is client and found not in still]:
            del self.given[partition]

    def check(self, *, with_replay: bool) -> None:
        if with_replay:
            again = self.bench.reloaded()
            assert durable(again) == durable(self.bench.group)
            assert again.described() == self.bench.group.described()
            assert durable(self.folded()) == durable(self.bench.group)
        held = [found for client in self.clients for found in client.has]
        assert len(held) == len(set(held)), "two read from one partition"

    def folded(self) -> ConsumerGroup:
        """From the last value of each key, in any order: compaction and loading leave no more of the log."""
        last = {repr(key): GroupRecord(key, value) for key, value in self.bench.log}
        records = [record for record in last.values() if record.value is not None]
        Random(len(records)).shuffle(records)
        group = ConsumerGroup(GROUP, self.bench.surroundings)
        for record in records:
            group.state.replay(record)
        return group

    def rest(self) -> None:
        """Nothing is lost any more, and everybody does as told."""
        for _ in range(40):
            self.wait(4_000)
            for client in self.clients:
                self.beat(client)
                client.obey()
                self.beat(client)
            self.check(with_replay=False)
        self.check(with_replay=True)
        assert self.bench.state_name == ("Stable" if self.clients else "Empty"), self.bench.group
        assigned = {found: client for client in self.clients for found in client.has}
        for topic, size in self.sizes.items():
            readers = [client for client in self.clients if self.reads(client, topic)]
            for partition in range(size):
                assert ((topic, partition) in assigned) == bool(readers)
                assert not readers or assigned[topic, partition] in readers

    def reads(self, client: Client, topic: str) -> bool:
        member = self.bench.group.state.members[client.member_id]
        pattern = member.profile.topic_regex
        return topic in client.topics or (pattern is not None and topic in {"a|b": "ab", "[bc]": "bc"}[pattern])


@pytest.mark.parametrize("seed", range(40))
def test_no_partition_is_with_two_members(seed: int) -> None:
    History(seed).run(250)


def test_history_does_not_depend_on_the_hash_seed() -> None:
    """Two coordinators that are asked the same decide the same, whatever the order of their sets."""
    program = (
        "from tests.coordinator.consumer.test_histories import History; history = History(7); history.run(150);"
        "print([record for record in history.bench.log])"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(outputs) == 1
