"""Members of both protocols in one group, whatever is lost: no partition is ever with two of them.

A classic client is eager, and gives up everything before it joins, or cooperative, and says with each join what it
still has. It reads from what its sync gave it.
"""

from random import Random
from typing import Any

import pytest

from klamm.coordinator.groups.subscription import Subscription, read_assignment, subscription_bytes
from klamm.coordinator.settings import UPGRADE, GroupSettings
from klamm.coordinator.wishes import BeatWish, Joined, JoinWish, LeaveWish, LeavingMember, Synced, SyncWish
from klamm.errors import ErrorCode, KafkaError
from tests.coordinator.consumer.bench import GROUP, Bench
from tests.coordinator.consumer.test_histories import Client, History


class ClassicClient(Client):
    def __init__(self, name: str, random: Random) -> None:
        super().__init__(name, random, None)
        self.eager = random.random() < 0.5
        self.phase = "join"
        self.unsure = False
        """It does not know whether it has joined."""

    def forget_everything(self) -> None:
        super().forget_everything()
        self.phase = "join"

    def obey(self) -> None:
        """It does what it should with its next request."""

    @property
    def metadata(self) -> bytes:
        owned = {topic: frozenset(found) for topic, found in self.owned.items()}
        return subscription_bytes(Subscription(frozenset(self.topics), owned=owned, version=1))


class MixedHistory(History):
    """Groups are not downgraded, so that the group stays what it is."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        settings = GroupSettings(migrations=(UPGRADE,), assignment_interval_ms=self.random.choice([0, 0, 3_000]))
        self.bench = Bench(self.sizes, settings, seed)

    def step(self) -> None:
        if self.random.random() < 0.03 and len(self.clients) < 6:
            self.named += 1
            self.clients.append(ClassicClient(f"c{self.named}", self.random))
            return
        super().step()

    def beat(self, client: Client) -> None:
        if not isinstance(client, ClassicClient):
            super().beat(client)
            return
        if client.says_everything:
            client.says_everything = False
            client.phase = "join"
        request = {"join": self.classic_join, "sync": self.classic_sync, "beat": self.classic_beat}[client.phase]
        if self.lossy and self.random.random() < 0.05:
            return
        try:
            request(client)
        except KafkaError as error:
            self.refused(client, error.code)

    def refused(self, client: Client, code: ErrorCode) -> None:
        if not isinstance(client, ClassicClient):
            super().refused(client, code)
        elif code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION):
            client.forget_everything()
            self.released(client, set())
        elif code in (ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE):
            client.phase = "join"
        else:
            raise AssertionError(code)

    def classic_join(self, client: ClassicClient) -> None:
        if client.eager:
            client.has.clear()
        protocols = [("range", client.metadata)]
        wish = JoinWish(GROUP, client.member_id, None, "c", "/h", 45_000, 30_000, "consumer", protocols)
        joined = self.answer(self.bench.group.join(wish, "ticket", self.bench.now))
        assert isinstance(joined, Joined)
        self.released(client, client.has)
        if self.was_heard(client):
            client.epoch, client.phase = joined.generation, "sync"

    def classic_sync(self, client: ClassicClient) -> None:
        wish = SyncWish(GROUP, client.epoch, client.member_id, None, "consumer", "range", {})
        synced = self.answer(self.bench.group.sync(wish, "ticket", self.bench.now))
        assert isinstance(synced, Synced)
        given = {name: set(found) for name, found in read_assignment(synced.assignment).partitions.items()}
        self.give(client, given)
        if self.was_heard(client):
            client.phase = "beat"
            client.has = {(topic, partition) for topic, found in given.items() for partition in found}

    def classic_beat(self, client: ClassicClient) -> None:
        wish = BeatWish(GROUP, client.epoch, client.member_id, None)
        code = self.answer(self.bench.group.beat(wish, "ticket", self.bench.now))
        if self.was_heard(client) and code == ErrorCode.REBALANCE_IN_PROGRESS:
            client.phase = "join"

    def answer(self, verdict: Any) -> Any:
        return self.bench.done(verdict)

    def was_heard(self, client: ClassicClient) -> bool:
        """Who gets no answer to a request joins again, as clients do that have to find the coordinator first."""
        if self.lossy and self.random.random() < 0.1:
            client.phase = "join"
            return False
        client.heard_ms = self.bench.passed_ms
        return True

    def leave(self, client: Client) -> None:
        if not isinstance(client, ClassicClient):
            super().leave(client)
            return
        self.clients.remove(client)
        client.forget_everything()
        self.released(client, set())
        wish = LeaveWish(GROUP, [LeavingMember(client.member_id)])
        verdict = self.bench.group.leave(wish, "ticket", self.bench.now)
        if not self.bench.append_fails:
            self.bench.write(verdict.records)

    def wait(self, passed_ms: int) -> None:
        super().wait(passed_ms)
        gone = [client for client in self.clients if client.member_id not in self.bench.group.state.members]
        for client in gone:
            # One that took too long to join or to sync knows its own timeout.
            if isinstance(client, ClassicClient):
                client.forget_everything()
                self.released(client, set())

    def rest(self) -> None:
        for client in self.clients:
            client.says_everything = True
        super().rest()


@pytest.mark.parametrize("seed", range(40))
def test_no_partition_is_with_two_members_of_either_protocol(seed: int) -> None:
    MixedHistory(seed).run(300)
