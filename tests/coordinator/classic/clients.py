"""Consumers as simple as can be: they do what they are told, one thing at a time, and forget what they lost.

The leader shares the partitions out by range. Everybody remembers what it was told, and `Promises` holds the
coordinator to it.
"""

from random import Random

from klamm.coordinator.wishes import Joined, LeavingMember, OffsetToCommit, Synced
from klamm.errors import ErrorCode, KafkaError
from tests.coordinator.classic.bench import Bench

PARTITIONS = range(7)
SESSION_MS, REBALANCE_MS = 8_000, 15_000


class Promises:
    """What members of one generation heard. A generation that was never written may be had again elsewhere."""

    def __init__(self) -> None:
        self.owners: dict[tuple[int, int], str] = {}
        self.agreed: dict[tuple[int, int], tuple[str, str | None]] = {}

    def joined(self, joined: Joined, term: int) -> None:
        says = (identity(joined.leader), joined.protocol_name)
        assert self.agreed.setdefault((term, joined.generation), says) == says

    def synced(self, generation: int, who: str, assignment: bytes) -> None:
        for partition in assignment:
            owner = self.owners.setdefault((generation, partition), who)
            assert owner == who, f"in generation {generation} partition {partition} is with {owner} and {who}"


def identity(member_id: str) -> str:
    """Static members have many ids, which all begin with the same name."""
    return member_id.split("-")[0] if member_id.startswith("static") else member_id


class Client:
    def __init__(self, bench: Bench, promises: Promises, random: Random, instance_id: str | None) -> None:
        self.bench, self.promises, self.random = bench, promises, random
        self.instance_id = instance_id
        self.must_know_its_id = random.random() < 0.7
        self.skips = random.random() < 0.5
        self.metadata = b"0"
        self.member_id = ""
        self.joined: Joined | None = None
        self.is_in = False
        self.is_dead = False
        self.ticket: int | None = None

    def act(self) -> None:
        """The next thing a client does by itself."""
        if self.ticket is not None:
            if self.bench.waits(self.ticket):
                return
            self.hear(self.bench.replies[self.ticket], self.bench.terms[self.ticket])
        if self.is_dead:
            return
        if self.joined is None:
            self.join()
        elif not self.is_in:
            self.sync(self.joined)
        else:
            self.obey(self.bench.beat(self.member_id, self.joined.generation, self.instance_id))

    def join(self) -> None:
        protocols = [("range", self.metadata), ("other", b"")]
        self.ticket = self.bench.join(
            self.member_id,
            self.instance_id,
            protocols[:: self.random.choice([1, 1, -1])],
            session_ms=SESSION_MS,
            rebalance_ms=REBALANCE_MS,
            must_know_its_id=self.must_know_its_id,
            can_skip_assignment=self.skips,
        )

    def sync(self, joined: Joined) -> None:
        shares = {}
        if joined.leader == self.member_id and not joined.skip_assignment:
            names = sorted(each.member_id for each in joined.members)
            shares = {name: bytes(PARTITIONS[number :: len(names)]) for number, name in enumerate(names)}
        self.ticket = self.bench.sync(joined, shares, self.instance_id)

    def hear(self, reply: object, term: int) -> None:
        self.ticket = None
        if isinstance(reply, Joined):
            self.member_id = reply.member_id
            if not reply.error:
                self.promises.joined(reply, term)
                self.joined = reply
        elif isinstance(reply, Synced):
            assert self.joined is not None
            self.promises.synced(self.joined.generation, identity(self.member_id), reply.assignment)
            self.is_in = True
        else:
            assert isinstance(reply, KafkaError)
            self.obey(reply.code)

    def obey(self, code: ErrorCode) -> None:
        if code is ErrorCode.NONE:
            return
        self.joined, self.is_in = None, False
        if code is ErrorCode.UNKNOWN_MEMBER_ID:
            self.member_id = ""
        elif code is ErrorCode.FENCED_INSTANCE_ID:
            self.is_dead = True
        else:
            assert code in (
                ErrorCode.REBALANCE_IN_PROGRESS,
                ErrorCode.ILLEGAL_GENERATION,
                ErrorCode.NOT_COORDINATOR,
                ErrorCode.COORDINATOR_NOT_AVAILABLE,
            ), code

    # What befalls it.

    def lose_answer(self) -> None:
        """Its connection broke. It asks again; the coordinator may still hold the former request."""
        self.ticket = None

    def change_its_mind(self) -> None:
        self.metadata = b"%d" % self.random.randrange(9)
        if self.ticket is None:
            self.joined, self.is_in = None, False

    def restart(self) -> None:
        self.ticket, self.joined, self.is_in, self.member_id = None, None, False, ""

    def leave(self) -> None:
        if self.member_id or self.instance_id:
            self.bench.leave(LeavingMember(self.member_id, self.instance_id))
        self.restart()

    def commit(self, offset: int) -> dict[tuple[str, int], int]:
        """What it committed, if it could."""
        if self.joined is None:
            return {}
        partition = self.random.choice(PARTITIONS)
        codes = self.bench.commit(
            OffsetToCommit("orders", partition, offset),
            member_id=self.member_id,
            generation=self.joined.generation,
            instance_id=self.instance_id,
        )
        return {("orders", partition): offset} if codes == [ErrorCode.NONE] else {}
